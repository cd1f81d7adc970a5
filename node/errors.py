"""Why a node cannot start or go on, where no part below has a word for it."""

from pathlib import Path

from kquorum.storage.errors import DamagedInput


class NodeError(Exception):
    """The message names the thing, the place and the remedy."""


class BootstrapDamaged(DamagedInput):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged: {reason}; restore the file, or format the folder afresh")


class NotRegistered(NodeError):
    """The broker gave up looking for a controller that takes it."""

    def __init__(self, broker_id: int, reason: str) -> None:
        super().__init__(
            f"broker {broker_id} was not admitted to the cluster: {reason}; check that a majority of the voters runs, "
            "that controller.quorum.voters or controller.quorum.bootstrap.servers names some of them, and the log file "
            "for what they answered"
        )


class BrokerGaveUp(NodeError):
    """The broker ran, and ends by itself."""

    def __init__(self, broker_id: int, reason: str) -> None:
        super().__init__(
            f"broker {broker_id} ends: {reason}; it must not go on leading what lies there: check that a majority of "
            "the voters runs and can be reached, then start the node again"
        )


class LogDirsFailed(NodeError):
    """The broker has no log directory left, or none for its metadata log."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the broker ends: {reason}; the log file says what failed: check the disk, then start the node again"
        )


class SnapshotUnusable(DamagedInput):
    """Its bytes are whole, but do not make a state."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} cannot be loaded: {reason}. Nothing was changed: move the file away, so that the node goes on "
            "from an older snapshot and the log, or fetches one from the leader; and keep it, for this version of "
            "kquorum may be older than the one that wrote it"
        )


class AssertionsOff(NodeError):
    def __init__(self) -> None:
        super().__init__(
            "a node does not run under `python -O`: its assertions are what stops it before it harms the log"
        )
