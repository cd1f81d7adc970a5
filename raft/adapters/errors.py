"""Files that say who votes, and cannot be read: every error names the thing, the place and the remedy."""

from pathlib import Path

from storage.errors import DamagedInput, LogCorrupted


class QuorumRecordUnreadable(LogCorrupted):
    """A sound batch says of the voters what this version cannot read; no other copy of it would say otherwise."""


class QuorumStateDamaged(DamagedInput):
    """The election state cannot be read; guessing it could let this node vote twice in one epoch."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path} is damaged: {reason}. It is not reset by itself, because this node could then vote twice in "
            "one epoch: restore the file, or take the node out of the quorum and format its folder afresh"
        )


class QuorumCheckpointDamaged(DamagedInput):
    """The first voters of a dynamic quorum cannot be read; with other voters this node could elect a second leader."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path} is damaged: {reason}. It names the quorum's first voters, which are not guessed: copy the file "
            "of that name from another node that was formatted with the same --initial-controllers, or format this "
            "node's folder afresh with --no-initial-controllers and let it learn the voters from the leader"
        )
