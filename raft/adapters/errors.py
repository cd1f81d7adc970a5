"""Files that say who votes, and cannot be read: every error names the thing, the place and the remedy."""

from pathlib import Path

from kquorum.storage.errors import BatchUnreadable, DamagedInput, DamagedRange

FETCH_AGAIN = (
    "keep a copy of the folder, and if the other voters are healthy, empty this node's __cluster_metadata-0 folder and "
    "let it catch up from them"
)
RESTORE_THE_ONLY_COPY = (
    "this node is the only voter, so no other node has what is lost: restore the folder from a backup, and do not "
    "empty it (`kquorum log verify` and `kquorum log dump` read what is left)"
)
FORMAT_FIRST = (
    "run `kquorum format` for this node first; with --replaced-disk if it was a static voter and lost its disk, or it "
    "would vote without knowing what was committed"
)


class QuorumRecordUnreadable(BatchUnreadable):
    """A sound batch says of the voters what this version cannot read; no other copy of it would say otherwise."""

    def __init__(self, damage: DamagedRange) -> None:
        super().__init__(damage, FETCH_AGAIN)


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
