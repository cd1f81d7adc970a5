"""What a stream says of a log that lost offsets, before or after they were read; and the stream as a data source."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay.decode.sources import METADATA_FOLDER
from kquorum.spark_replay.stream.log_stream import LogStream
from kquorum.spark_replay.stream.read_positions import TruncatedLog
from kquorum.spark_replay.stream.state import NOOPS_BEHIND
from kquorum.wire.metadata_records.features import NoOpRecord
from tests.support.sample_logs import LogBuilder, write_sample
from tests.support.spark.whole_rows import rows_of_whole

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def noops(log: LogBuilder, count: int) -> bytes:
    for _ in range(count):
        log.records(1000 + log.next_offset, NoOpRecord())
    return bytes(log.data)


@pytest.mark.slow
def test_what_retention_took_first_is_a_gap_and_what_was_cut_off_afterwards_ends_the_stream(
    spark: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "node-1" / METADATA_FOLDER
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(noops(LogBuilder(), 3))
    out = tmp_path / "out"
    LogStream(spark, folder.parent, out).read()
    (folder / f"{0:020d}.log").unlink()
    (folder / f"{9:020d}.log").write_bytes(noops(LogBuilder(9), 4))
    stream = LogStream(spark, folder.parent, out)
    stream.read()
    assert stream.state.rows == {"record": 7, "batch": 7, "damage": 1}
    assert stream.state.behind > NOOPS_BEHIND
    (gap,) = pq.read_table(out / "damage").to_pylist()
    assert (gap["kind"], gap["offset"], gap["file"]) == ("gap", 3, f"{9:020d}.log")
    assert gap["reason"] == f"batch begins at offset 9; 3 was expected after {0:020d}.log"
    other = LogBuilder(9)
    noops(other, 2)
    other.epoch = 2
    (folder / f"{9:020d}.log").write_bytes(noops(other, 4))
    with pytest.raises(TruncatedLog, match=r"^/.*node-1.* was cut off below offset 13.*another folder"):
        LogStream(spark, folder.parent, out).read()
    assert pq.read_table(out / "records").num_rows == 7


def test_the_data_source_streams_the_rows_that_it_reads(spark: Any, tmp_path: Path) -> None:
    log = write_sample(tmp_path / "sample")
    rows = spark.readStream.format("kraft_log").option("rows", "records").load(str(log))
    found: list[Any] = []
    writer = rows.writeStream.foreachBatch(lambda frame, _: found.extend(frame.collect()))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    names = ("file", "offset", "record_type", "payload", "timestamp_ms", "problem")
    expected = rows_of_whole(log)["record"]
    assert sorted(repr([row[name] for name in names]) for row in found) == sorted(
        repr([row[name] for name in names]) for row in expected
    )
