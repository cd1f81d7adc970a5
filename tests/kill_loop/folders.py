"""What the folders of the nodes show at the end, read offline: sound, of one mind, and with the right topics."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kquorum.cli.commands.log.files import FileCopy, MetadataLogFiles, the_log
from kquorum.cli.commands.log.states import Moment, state_at
from kquorum.cli.commands.log.verification import verify_log
from kquorum.cli.failures import CliError
from kquorum.metadata.log_check.findings import Severity
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.log_scan import ScannedBatch
from tests.kill_loop.ledger import Ledger

# What a batch is known by: end offset, epoch, CRC-32C.
Batches = Mapping[int, tuple[int, int, int]]
SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class LogContent:
    """The batches of one log by their base offset."""

    name: str
    batches: Batches

    @property
    def start_offset(self) -> int:
        return min(self.batches, default=0)

    @property
    def end_offset(self) -> int:
        return max((end for end, _, _ in self.batches.values()), default=0)


def log_content(name: str, log: MetadataLogFiles) -> LogContent:
    batches = {}
    for segment in log.segments:
        for found in walk_batches(FileCopy(Path(segment.path)).view):
            if isinstance(found, ScannedBatch):
                header = found.header
                batches[header.base_offset] = (header.next_offset, header.partition_leader_epoch, header.crc)
    return LogContent(name, batches)


def disagreements(first: LogContent, other: LogContent, committed: int) -> list[str]:
    """Where two logs differ below the committed offset, as far back as both reach."""
    start = max(first.start_offset, other.start_offset)
    short = [
        f"{log.name} ends at offset {log.end_offset}, though {committed} was committed"
        for log in (first, other)
        if log.end_offset < committed
    ]
    offsets = sorted(
        offset for offset in first.batches.keys() | other.batches.keys() if start <= offset < committed
    )
    differing = (
        [offset for offset in offsets if first.batches.get(offset) != other.batches.get(offset)]
        if not short
        else []
    )
    if differing:
        place = f"the batch at offset {differing[0]} ({len(differing)} batches in all)"
        return [f"{first.name} and {other.name} differ in {place}"]
    return short


def check_folders(data_folders: Mapping[str, Path], ledger: Ledger, committed: int) -> list[str]:
    """All that is wrong with the metadata logs in these data folders, whose nodes must have ended.

    `committed` is an offset below which everything was known to be committed.
    """
    wrong: list[str] = []
    contents = []
    for name, data_folder in data_folders.items():
        try:
            log = the_log(data_folder / FOLDER_NAME)
            wrong.extend(f"{name}: {reason}" for reason in unsound(log))
            state = state_at(log, Moment(), lambda words, name=name: wrong.append(f"{name}: {words}"))  # type: ignore[misc]
            wrong.extend(ledger.violations(set(state.image.topics.by_name), f"the log of {name}"))
            contents.append(log_content(name, log))
        except CliError as error:
            wrong.append(f"{name}: {error}")
    for other in contents[1:]:
        wrong.extend(disagreements(contents[0], other, committed))
    return wrong


def unsound(log: MetadataLogFiles) -> list[str]:
    """What `kquorum log verify` finds beyond notes."""
    findings = verify_log(log, lambda _: None, keep=SHOWN_MAX).findings
    return [
        f"{finding.file}: {finding.reason}"
        for result in findings.results()
        for finding in result.first
        if finding.severity > Severity.NOTE
    ]
