"""The shared session of the Spark tests, as commands get it."""

from typing import Any


class Unstopped:
    """The shared session, which no test may stop."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Left running for the other tests."""
