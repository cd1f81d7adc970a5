"""What is left of a quorum: what each folder knows, which is the best, and what may be lost by going on from it.

Pure functions of `Survivor` values; `reading.py` makes them from folders.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kquorum.cli.failures import CliError, ExitStatus
from kquorum.wire.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlace:
    """One batch: where it begins and ends, in which epoch it was written, and its checksum."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """One folder. Its log has the records below `end_offset`; all below `committed_offset` are known to be committed
    (the end of its newest snapshot), more may be. `epoch` is that of the last record, `state_epoch` the newest epoch
    that the node knew. `voters` are those of its log, as text (`1`, or `1@directory`). `damage` says why the log cannot
    be used."""

    folder: Path
    node_id: int
    cluster_id: str
    directory_id: str | None
    epoch: int = -1
    end_offset: int = 0
    committed_offset: int = 0
    last_timestamp_ms: int | None = None
    state_epoch: int = 0
    state_hash: str = ""
    kraft_version: int = 0
    metadata_version: int = 0
    voters: tuple[str, ...] = ()
    topics: int = 0
    is_lost: bool = False
    damage: str | None = None
    batches: tuple[BatchPlace, ...] = field(default=(), repr=False)

    @property
    def names(self) -> tuple[str, str]:
        """How the voters of a log may name it."""
        return str(self.node_id), f"{self.node_id}@{self.directory_id}"

    @property
    def rank(self) -> tuple[int, int]:
        """As candidates are compared (Raft 5.4.1)."""
        return self.epoch, self.end_offset

    def as_json(self) -> dict[str, object]:
        found = {key: value for key, value in asdict(self).items() if key != "batches"}
        return found | {"folder": str(self.folder)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A folder that holds records which the best one lacks: those from `offset` to below `end_offset`."""

    survivor: Survivor
    offset: int
    end_offset: int

    @property
    def is_broker(self) -> bool:
        return self.survivor.node_id not in _ids(self.survivor.voters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`voters` are those of the best log, `left` the folders of voters that can be used."""

    best: Survivor
    survivors: tuple[Survivor, ...]
    voters: tuple[str, ...]
    left: tuple[Survivor, ...]
    ahead: tuple[Ahead, ...]

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def has_majority(self) -> bool:
        return len(self.left) >= self.majority

    @property
    def loses_nothing(self) -> bool:
        """Whether each majority of the voters has a member among those that are left: then the best of them has
        everything that was acknowledged (the last of two voters, or two of four)."""
        return len(self.left) + self.majority > len(self.voters)

    @property
    def lost_voters(self) -> tuple[str, ...]:
        known = {name for survivor in self.left for name in survivor.names}
        return tuple(voter for voter in self.voters if voter not in known)

    @property
    def highest_epoch(self) -> int:
        """Of all that any folder knows; the voters that are gone may have known later ones."""
        return max(max(each.epoch, each.state_epoch) for each in self.survivors)

    def losses(self) -> list[str]:
        """What may be lost, and what becomes committed that perhaps was not."""
        best = self.best
        lines = []
        if self.loses_nothing:
            lines.append(
                "nothing that was acknowledged is lost: every majority of the voters has a member that is left"
            )
        else:
            lines.append(
                f"every change from offset {best.end_offset} on that voters {', '.join(self.lost_voters)} "
                "acknowledged is "
                "lost; how many there were cannot be known"
            )
        if best.end_offset > best.committed_offset:
            lines.append(
                f"offsets {best.committed_offset} to {best.end_offset - 1} of this log are kept; of these it is not "
                "known "
                "here which were committed, and they count as committed from now on"
            )
        return lines

    def as_json(self) -> dict[str, object]:
        return {
            "best": str(self.best.folder),
            "voters": list(self.voters),
            "lost_voters": list(self.lost_voters),
            "majority": self.majority,
            "voters_left": [each.node_id for each in self.left],
            "has_majority": self.has_majority,
            "loses_nothing": self.loses_nothing,
            "losses": self.losses(),
            "ahead": [
                {
                    "folder": str(each.survivor.folder),
                    "node_id": each.survivor.node_id,
                    "is_broker": each.is_broker,
                    "from_offset": each.offset,
                    "to_offset": each.end_offset - 1,
                }
                for each in self.ahead
            ],
            "folders": [survivor.as_json() for survivor in self.survivors],
        }


def _ids(voters: Sequence[str]) -> set[int]:
    return {int(voter.partition("@")[0]) for voter in voters}


def make_plan(survivors: Sequence[Survivor]) -> Plan:
    """The best folder is that of the voter whose log ends with the greatest epoch, and then with the greatest offset.
    Raises CliError if there is none, and for folders of several clusters or twice the same node."""
    clusters = sorted({survivor.cluster_id for survivor in survivors})
    if len(clusters) > 1:
        listed = ", ".join(f"{each.folder} ({each.cluster_id})" for each in survivors)
        raise CliError(f"these folders belong to several clusters: {listed}", status=ExitStatus.USAGE)
    by_id: dict[int, Survivor] = {}
    for survivor in survivors:
        other = by_id.setdefault(survivor.node_id, survivor)
        if other is not survivor:
            raise CliError(
                f"{other.folder} and {survivor.folder} are both of node {survivor.node_id}: give only the newer copy",
                status=ExitStatus.USAGE,
            )
    usable = [each for each in survivors if each.damage is None and not each.is_lost]
    # A broker's log says as well who votes, but a broker may be ahead of all that is left of the voters.
    named = {name for each in usable for name in each.voters}
    of_voters = [each for each in usable if named.intersection(each.names)]
    if not of_voters:
        why = "; ".join(
            f"{each.folder}: {each.damage or ('its state was lost' if each.is_lost else 'a broker, or no voter')}"
            for each in survivors
        )
        raise CliError(
            f"none of these folders is that of a voter whose log can be used ({why}). Give the folder of a controller; "
            "brokers do not vote, and their logs may lack what was committed last",
            status=ExitStatus.DAMAGED_INPUT,
        )
    best = max(of_voters, key=lambda each: (*each.rank, -each.node_id))
    left = tuple(each for each in of_voters if set(best.voters).intersection(each.names))
    return Plan(
        best=best,
        survivors=tuple(survivors),
        voters=best.voters,
        left=left,
        ahead=tuple(
            _ahead(best, each)
            for each in usable
            if each is not best and _end_in_common(best, each) < each.end_offset
        ),
    )


def _ahead(best: Survivor, other: Survivor) -> Ahead:
    return Ahead(survivor=other, offset=_end_in_common(best, other), end_offset=other.end_offset)


def _end_in_common(best: Survivor, other: Survivor) -> int:
    """Up to where `other` has the same batches as `best`. What lies before the log of either begins is taken as
    common."""
    known = {batch.base_offset: batch for batch in best.batches}
    start = best.batches[0].base_offset if best.batches else best.end_offset
    end = min(start, other.end_offset)
    for batch in other.batches:
        if batch.next_offset <= start:
            continue
        if batch.base_offset in known and known[batch.base_offset] != batch:
            return batch.base_offset
        if batch.base_offset not in known:
            return max(end, batch.base_offset) if batch.base_offset >= best.end_offset else end
        end = batch.next_offset
    return end if other.batches else other.end_offset


def remedy_of(ahead: Ahead) -> str:
    """What to do about a folder that is ahead."""
    count = counted(ahead.end_offset - ahead.offset, "record")
    what = f"node {ahead.survivor.node_id} ({ahead.survivor.folder}) has {count} more, from offset {ahead.offset} on"
    see = f"`kquorum log dump {ahead.survivor.folder} --from-offset {ahead.offset}` shows which changes to make again"
    if ahead.is_broker:
        return (
            f"{what}: a broker. {see}; then remove its __cluster_metadata-0 before it starts (Kafka's broker and "
            "ours fetch "
            "the log again; its messages stay)"
        )
    return f"{what}: a voter of an older epoch. {see}; it is fenced"
