"""Folders as old brokers of Kafka wrote them, of every message format, are read whole, go on and open again."""

from pathlib import Path

import pytest

from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.log.log_config import LogConfig
from tests.interop.kafka_release import Unavailable
from tests.interop.old_kafka import SCALA, OldKafka
from tests.support.broker.disk_logs import DIRECTORY_ID, data, values_in

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CODECS = ("none", "gzip", "snappy", "lz4")
RECORDS = 300
# Long after the records were written; nothing is to be deleted by its age.
NOW_MS = 4_000_000_000_000
KEEP = LogConfig(retention_ms=-1, message_timestamp_after_max_ms=2**62, segment_bytes=20_000)


def values(codec: str, first: int = 0) -> list[str]:
    return [f"{codec} value number {number}" for number in range(first, first + RECORDS)]


def written_by(version: str, folder: Path, *, ends: str) -> dict[str, list[str]]:
    """What the logs of each topic hold. A broker of 1.1 writes message format 1 first, then 2 into the same logs."""
    formats = ["0.10.2", None] if version == "1.1.1" else [None]
    held: dict[str, list[str]] = {f"t-{codec}": [] for codec in CODECS}
    for number, message_format in enumerate(formats):
        configs: dict[str, object] = {"log.segment.bytes": 20_000}
        if message_format is not None:
            configs["log.message.format.version"] = message_format
        with OldKafka(version, folder, **configs) as kafka:
            for codec in CODECS:
                more = values(codec, number * RECORDS)
                if not number:
                    kafka.create(f"t-{codec}")
                kafka.produce(f"t-{codec}", more, codec)
                held[f"t-{codec}"] += more
            if ends == "in order":
                kafka.stop()
            else:
                kafka.kill()
    return held


def opened(folder: Path) -> LogManager:
    manager = LogManager([LogDir(folder, DIRECTORY_ID)], config_of=lambda _topic: KEEP)
    manager.load(NOW_MS)
    assert manager.offline_dirs == ()
    return manager


@pytest.mark.parametrize(
    ("version", "ends"),
    [("0.8.2.2", "by a kill"), ("1.1.1", "in order"), ("2.8.2", "by a kill"), ("3.9.2", "in order")],
)
def test_a_folder_of_an_old_broker_is_read_whole_and_goes_on(tmp_path: Path, version: str, ends: str) -> None:
    assert version in SCALA
    try:
        held = written_by(version, tmp_path, ends=ends)
    except Unavailable as error:
        pytest.skip(str(error))
    manager = opened(tmp_path / "logs")
    for topic, expected in held.items():
        log = manager.get(topic, 0)
        assert log is not None
        assert values_in(log) == expected
        assert log.log_end_offset == len(expected)
        log.assign_epoch_start(1_000)
        log.append_as_leader(data("more", timestamp_ms=NOW_MS), leader_epoch=1_000, now_ms=NOW_MS)
        log.roll(NOW_MS)
        expected.append("more")
    run_work(manager.tick(NOW_MS + 60_000))
    manager.close(5)
    again = opened(tmp_path / "logs")
    for topic, expected in held.items():
        log = again.get(topic, 0)
        assert log is not None
        assert values_in(log) == expected
