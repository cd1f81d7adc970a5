"""A fault that goes on doing things between its beginning and its heal."""

import threading
from collections.abc import Callable

from tests.jepsen.net.network import Network

Work = Callable[[threading.Event], None]
_JOIN_TIMEOUT_S = 120.0


class Background:
    """Does the work in a thread of its own, which must look at the event often and end when it is set."""

    def __init__(self, name: str, network: Network, work: Work) -> None:
        self._name = name
        self._network = network
        self._work = work
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"jepsen-{name}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Raises what the work raised."""
        self._over.set()
        self._thread.join(_JOIN_TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self._name} does not end"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._network.enter_as_client()
            self._work(self._over)
        except Exception as error:  # noqa: BLE001 - carried over to who ends it
            self._failure = error
