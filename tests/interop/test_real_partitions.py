"""Log directories of real brokers (Kafka 0.11 to 4.3) that our broker's logs have opened, appended to, rolled and
closed: Kafka's tool reads every batch, index, producer snapshot and coordinator's record of them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.log.log_config import LogConfig
from tests.interop.kafka_process import Kafka
from tests.support.broker.disk_logs import DIRECTORY_ID, data, records_in
from tests.support.broker.real_data import REAL_FOLDERS, copied

pytestmark = [pytest.mark.interop, pytest.mark.slow]

NOW_MS = 1_900_000_000_000
KEEP = LogConfig(retention_ms=-1, message_timestamp_after_max_ms=2**62)
DUMP = "org.apache.kafka.tools.DumpLogSegments"

Dump = Callable[..., str]


def batched(files: list[Path]) -> Iterator[list[Path]]:
    """Linux takes no argument of more than 128 KiB."""
    for first in range(0, len(files), 500):
        yield files[first : first + 500]


@pytest.fixture
def dump(kafka: Kafka) -> Dump:
    def run(files: list[Path], *options: str) -> str:
        assert files
        return "".join(
            kafka.run(DUMP, "--files", ",".join(map(str, part)), *options, timeout_s=600)
            for part in batched(files)
        )

    return run


def gone_on(folder: Path) -> int:
    """Open the log directory, append to each log in a new epoch, roll it, append once more, and stop in order. The
    number of records that the logs hold then."""
    manager = LogManager([LogDir(folder, DIRECTORY_ID)], config_of=lambda _topic: KEEP)
    manager.load(NOW_MS)
    assert not manager.offline_dirs
    for log in manager.logs.values():
        # A coordinator's log holds its records alone.
        if not log.topic.startswith("__"):
            more = data("more", key=b"k", timestamp_ms=NOW_MS)
            for epoch in (1_000, 1_001):
                log.assign_epoch_start(epoch)
                log.append_as_leader(more, leader_epoch=epoch, now_ms=NOW_MS)
                log.roll(NOW_MS)
    # It removes segments below the start of a log, too.
    run_work(manager.tick(NOW_MS + 60_000))
    records = sum(
        len(records_in(each.read_at(0, each.size))) for log in manager.logs.values() for each in log.segments
    )
    manager.close(5)
    return records


def test_kafka_reads_what_our_logs_made_of_real_folders(real_data: Path, tmp_path: Path, dump: Dump) -> None:
    names = [name for name in REAL_FOLDERS if (real_data / name).is_dir()]
    records = sum(gone_on(copied(real_data, name, tmp_path / name)) for name in names)
    logs = sorted(each for each in tmp_path.rglob("*.log") if not each.parent.name.startswith("__cluster"))
    said = dump(logs, "--deep-iteration")
    assert "isvalid: false" not in said
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == records > 10_000
    for suffix in (".index", ".timeindex"):
        indexes = [each.with_suffix(suffix) for each in logs]
        said = dump(indexes, "--index-sanity-check")
        assert len(re.findall("passed sanity check|is empty", said)) >= len(indexes), said
        said = dump(indexes, "--verify-index-only")
        assert not re.search("mismatch|Index offset", said), said
    snapshots = sorted(tmp_path.rglob("*.snapshot"))
    assert len(re.findall(r"^producerId: \d+", dump(snapshots), re.MULTILINE)) > 20


def test_coordinators_records_are_read_as_before(real_data: Path, tmp_path: Path, dump: Dump) -> None:
    name = "kafka-4.3-transactions-1"
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    folder = copied(real_data, name, tmp_path / name)
    decoders = {"__transaction_state": "--transaction-log-decoder", "__consumer_offsets": "--offsets-decoder"}

    def decoded() -> dict[str, str]:
        return {
            topic: dump(sorted(folder.glob(f"{topic}-*/*.log")), decoder)
            for topic, decoder in decoders.items()
        }

    before = decoded()
    gone_on(folder)
    assert decoded() == before
    assert "transactionalId" in before["__transaction_state"], before
    assert "payload" in before["__consumer_offsets"], before
