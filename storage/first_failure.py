"""What failed once on the disk fails for ever: after an fsync error the state of the disk is not known."""

from types import TracebackType

from kquorum.storage.errors import LogCorrupted, StorageFailed, StorageFull


class FirstFailure:
    """Around all that touches the disk; StorageFull passes, as it leaves things as they were. A LogCorrupted gets the
    `remedy` of the log's owner on its way.

    An object made once rather than a generator, which would cost several microseconds with every batch.
    """

    __slots__ = ("_remedy", "error")

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self.error: StorageFailed | LogCorrupted | None = None

    def __enter__(self) -> None:
        if self.error is not None:
            raise self.error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, StorageFailed | LogCorrupted) and not isinstance(error, StorageFull):
            self.error = error
        if isinstance(error, LogCorrupted):
            error.remedy = self._remedy
