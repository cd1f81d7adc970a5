"""How the `quorum` commands show what they found."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cli.quorum_status import QuorumStatus, ReplicaLag
from cli.voter_points import size_in_words
from wire.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from cli.voter_points import Check
    from raft.elections_history import Election


def quorum_table(found: QuorumStatus, now_ms: int) -> "Table":
    """A row for each replica; the title says who leads."""
    from cli.output import make_table

    title = f"leader {found.leader_id}, epoch {found.leader_epoch}, high watermark {found.high_watermark:,}"
    replicas = (*found.voters, *found.observers)
    ids = [replica.replica_id for replica in replicas]
    roles = [*("leader" if node.replica_id == found.leader_id else "voter" for node in found.voters)]
    roles += ["observer"] * len(found.observers)
    rows = [_row(replica, role, now_ms) for replica, role in zip(replicas, roles, strict=True)]
    columns = ["#node", "role", "state", "#log end", "#lag", "#last\nfetch", "#last\ncaught up"]
    if any(replica.state is not None for replica in replicas):
        columns.append("metadata\nhash")
        states = (replica.state.short if replica.state is not None else "unknown" for replica in replicas)
        rows = [(*row, state) for row, state in zip(rows, states, strict=True)]
    if len(set(ids)) < len(ids):  # a node whose disk was replaced: only the directory id tells old from new
        columns.append("directory id")
        rows = [(*row, replica.directory_id) for row, replica in zip(rows, replicas, strict=True)]
    return make_table(title, columns, rows, spare=("#last\ncaught up", "#last\nfetch", "metadata\nhash"))


def silent_voters(found: QuorumStatus) -> str | None:
    """A line about the voters that do not fetch; None when all do."""
    silent = [voter for voter in found.voters if voter.alive is False]
    if not silent:
        return None
    named = ", ".join(
        str(voter.replica_id) + (f" (directory {voter.directory_id})" if voter.directory_id else "")
        for voter in silent
    )
    majority = len(found.voters) // 2 + 1
    spare = len(found.voters) - len(silent) - majority
    rest = f"{max(spare, 0) or 'none'} more may fail"
    told = f"silent: {len(silent)} of {counted(len(found.voters), 'voter')}, {named}; {rest}"
    return "\n".join((told, *_replaced_disks(found, silent)))


def _replaced_disks(found: QuorumStatus, silent: "Sequence[ReplicaLag]") -> "Iterator[str]":
    """A line for each silent voter whose node is there, with another directory."""
    for voter in silent:
        for observer in found.observers:
            is_same_node = observer.replica_id == voter.replica_id
            if is_same_node and None not in (voter.directory_id, observer.directory_id) and observer.alive:
                yield (
                    f"voter {voter.replica_id} is registered with directory {voter.directory_id}, but node "
                    f"{voter.replica_id} runs with directory {observer.directory_id}: its disk was replaced or "
                    f"formatted again; `kquorum quorum remove-voter {voter.replica_id}`, then `add-voter "
                    f"{voter.replica_id}`"
                )


_STATES = {True: "alive", False: "silent", None: "unknown"}


def _row(replica: ReplicaLag, role: str, now_ms: int) -> tuple[object, ...]:
    is_leader = role == "leader"
    return (
        replica.replica_id,
        role,
        _STATES[replica.alive],
        "unknown" if replica.log_end_offset is None else replica.log_end_offset,
        "unknown" if replica.lag is None else replica.lag,
        "" if is_leader else age(replica.last_fetch_timestamp_ms, now_ms),
        "" if is_leader else age(replica.last_caught_up_timestamp_ms, now_ms),
    )


def age(timestamp_ms: int | None, now_ms: int) -> str:
    """How long ago: `0.2 s`; `never` when it is not known to have happened."""
    if timestamp_ms is None:
        return "never"
    return f"{max(now_ms - timestamp_ms, 0) / 1000:,.1f} s ago"


def checks_table(command: str, checks: "Sequence[Check]") -> "Table":
    """A row for each point of a pre-flight, the remedies where they are needed."""
    from cli.output import make_table

    rows = [
        ("ok" if check.passed else "NO", check.name, check.detail, "" if check.passed else check.remedy)
        for check in checks
    ]
    return make_table(f"{command}: pre-flight", ("", "check", "~found", "~remedy"), rows)


def voters_table(before: QuorumStatus, after: QuorumStatus) -> "Table":
    """Who voted before, who votes now."""
    from cli.output import make_table

    then = {voter.replica_id: voter for voter in before.voters}
    now = {voter.replica_id: voter for voter in after.voters}
    rows = [
        (
            node_id,
            (now.get(node_id) or then[node_id]).directory_id,
            _place(after, node_id) or _place(before, node_id),
            _standing(before, then.get(node_id), node_id),
            _standing(after, now.get(node_id), node_id),
        )
        for node_id in sorted(then.keys() | now.keys())
    ]
    return make_table(
        size_in_words(len(now)),
        ("#node", "directory id", "listener", "before", "after"),
        rows,
        spare=("before",),
    )


def _place(status: QuorumStatus, node_id: int) -> str | None:
    place = status.place_of(node_id)
    return None if place is None else str(place)


def _standing(status: QuorumStatus, voter: ReplicaLag | None, node_id: int) -> str:
    if voter is None:
        return "-"
    return "leader" if status.leader_id == node_id else "voter"


def history_table(elections: "Sequence[Election]", sources: Sequence[str]) -> "Table":
    """The title names who was asked: what the others noted is not in it."""
    from cli.output import make_table

    rows: list[tuple[object, ...]] = [
        (
            election.epoch,
            moment(election.began_ms),
            election.cause.value,
            election.stood,
            "nobody" if election.winner is None else str(election.winner),
            None if election.leaderless_ms is None else f"{election.leaderless_ms:,} ms",
            "" if election.detail.lower() == election.cause.value else election.detail,
        )
        for election in elections
    ]
    columns = ["#epoch", "began (UTC)", "why", "stood", "#leader", "#without\na leader", "~as noted"]
    title = f"{counted(len(rows), 'epoch')}, as told by {_places(sources)}"
    return make_table(title, columns, rows, spare=("~as noted", "stood", "#without\na leader"))


def _places(sources: Sequence[str]) -> str:
    """Folders beside each other are named with the one that they are in."""
    parents = {str(Path(source).parent) for source in sources if "/" in source}
    if len(parents) == 1 and len(sources) > 1 and all("/" in source for source in sources):
        return f"{', '.join(Path(source).name for source in sources)} in {parents.pop()}"
    return ", ".join(sources)


def history_json(elections: "Sequence[Election]", sources: Sequence[str]) -> dict[str, object]:
    return {"sources": list(sources), "elections": [asdict(election) for election in elections]}


def moment(timestamp_ms: int) -> str:
    """UTC with milliseconds; the bare number where no calendar has such a date."""
    try:
        return (
            datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%F %T.") + f"{timestamp_ms % 1000:03d}"
        )
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
