"""`quorum history`: the elections of a quorum, from the folders of its nodes or from the nodes over gRPC."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kquorum.cli.failures import CliError, ExitStatus
from kquorum.node.config.addresses import HostPort
from kquorum.raft.adapters.election_log import read_role_events
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.elections_history import LeaderChangeAt, RoleEvent, leader_change_at
from kquorum.regular_files import read_regular
from kquorum.storage.errors import MetaPropertiesDamaged, NotFormatted
from kquorum.storage.meta_properties import read_meta_properties
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch, log_batch
from kquorum.wire.record_batch import BatchHeader, read_batch_header
from kquorum.wire.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from kquorum.raft.elections_history import Election


# Kafka rolls a segment before its offsets and positions need more than 32 bits.
_LARGEST_SEGMENT_BYTES = 2**31


@dataclass(frozen=True, slots=True)
class Noted:
    """What one place knows of elections."""

    place: str
    events: tuple[RoleEvent, ...]
    leader_changes: tuple[LeaderChangeAt, ...]


def read_folder(folder: Path) -> Noted:
    """A data folder or its `__cluster_metadata-0`, ours or Kafka's; nothing in it is changed, and it may be in use.

    Raises OSError.
    """
    inner = folder / FOLDER_NAME
    metadata_log = inner if inner.is_dir() else folder
    return Noted(str(folder), tuple(read_role_events(metadata_log)), tuple(_leader_changes(metadata_log)))


def read_folders(folders: Iterable[Path]) -> list[Noted]:
    """Raises CliError for one that is no folder or holds no metadata log, and for folders of different clusters."""
    found = []
    clusters: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise CliError(
                f"{folder} {what}: name a data folder or its {FOLDER_NAME}", status=ExitStatus.USAGE
            )
        noted = read_folder(folder)
        if not noted.events and not noted.leader_changes:
            within = sorted(each.parent for each in folder.glob(f"*/{FOLDER_NAME}"))
            names = " ".join(map(str, within)) if within else f"a data folder or its {FOLDER_NAME}"
            raise CliError(
                f"{folder} holds neither a metadata log with a leader change nor notes of elections; name {names}",
                status=ExitStatus.USAGE,
            )
        if (cluster_id := _cluster_of(folder)) is not None:
            clusters.setdefault(cluster_id, folder)
        if len(clusters) > 1:
            text = ", ".join(f"{place} is of cluster {cluster_id}" for cluster_id, place in clusters.items())
            raise CliError(f"{text}: ask for the history of one cluster at a time", status=ExitStatus.USAGE)
        found.append(noted)
    return found


def _cluster_of(folder: Path) -> str | None:
    """None where no file says it, as for the copy of a log alone."""
    try:
        return read_meta_properties(folder if (folder / FOLDER_NAME).is_dir() else folder.parent).cluster_id
    except (NotFormatted, MetaPropertiesDamaged):
        return None


def _leader_changes(metadata_log: Path) -> Iterator[LeaderChangeAt]:
    """A LeaderChange opens each epoch; what follows a damaged place is left out, as a node would."""
    epoch, previous_ms = -1, None
    for header, data in _batches(metadata_log):
        # Only the first batch of an epoch can hold its LeaderChange; the others are not decoded.
        if header.partition_leader_epoch > epoch:
            epoch = header.partition_leader_epoch
            change = _leader_change_of(data, previous_ms)
            if change is not None:
                yield change
        # The time before the LeaderChange tells how long no leader wrote.
        previous_ms = header.max_timestamp_ms


def _batches(metadata_log: Path) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The headers and bytes of all batches that are whole, segment by segment."""
    for path in _segments(metadata_log):
        data = memoryview(read_regular(path, _LARGEST_SEGMENT_BYTES))
        position = 0
        while position < len(data):
            try:
                header = read_batch_header(data, position)
            except DecodeError:
                return
            end = position + header.size_in_bytes
            # A running node may be in the middle of a write, so the last batch may be cut.
            if header.size_in_bytes <= 0 or end > len(data):
                return
            yield header, data[position:end]
            position = end


def _segments(metadata_log: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in metadata_log.glob("*.log") if path.stem.isdecimal()))


def _leader_change_of(data: memoryview, previous_ms: int | None) -> LeaderChangeAt | None:
    try:
        batch: LogBatch = log_batch(bytes(data))
        return leader_change_at(batch, previous_ms)
    except DecodeError:
        return None


async def fetch_elections(
    addresses: Sequence[HostPort], from_epoch: int, timeout_ms: int, tell: Callable[[str], None]
) -> list[Noted]:
    """The elections that each reachable node noted; `tell` gets a line for each of the others. Raises CliError when no
    node answers."""
    # gRPC takes 0.1 s to import, and a history that is read from folders needs none.
    import grpc

    from kquorum.cli.clients.grpc_client import Failures, call, reason_of
    from kquorum.metadata.grpc.quorum.service import history_of
    from kquorum.wire.proto import quorum_pb2 as pb

    request = pb.GetElectionsRequest(from_epoch=from_epoch)
    failures = Failures("no node tells of its elections")

    async def ask(address: HostPort) -> Noted | str:
        try:
            response = await call(address, lambda stub: stub.GetElections(request, timeout=timeout_ms / 1000))
        except grpc.aio.AioRpcError as error:
            failures.note(address, error)
            return f"{address}: {reason_of(address, error)}"
        return Noted(f"node {response.node_id}", *history_of(response))

    answers = await asyncio.gather(*(ask(address) for address in addresses))
    found = [answer for answer in answers if isinstance(answer, Noted)]
    if not found:
        raise failures.error()
    for reason in (answer for answer in answers if isinstance(answer, str)):
        tell(f"without {reason}")
    return found


def history_table(elections: "Sequence[Election]", sources: Sequence[str]) -> "Table":
    """The title names the nodes that were asked: what others noted is not in the table."""
    from kquorum.cli.output import make_table, utc_text

    rows: list[tuple[object, ...]] = [
        (
            election.epoch,
            utc_text(election.began_ms),
            election.cause.value,
            election.stood,
            "none" if election.winner is None else str(election.winner),
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
