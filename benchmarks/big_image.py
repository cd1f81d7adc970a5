"""An image of a million partitions: what it weighs, how long its snapshot takes to write and to load, and one change.

    python -m benchmarks.big_image [--topics 10000] [--partitions 100] [--fast] [--json]

Three replicas each, one partition in fifty with a smaller ISR, thirty brokers with a directory each. The snapshot goes
to a temporary folder. It is loaded by a fresh process from a mapped file, as a node does, and the memory of that
process is read before, while and after: anonymous memory, as the pages of a mapped file can be dropped at any time.
"""

import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import numpy as np

from benchmarks._report import hardware, print_result
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.features import FeaturesDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partitions import NUMBER_COLUMNS, PADDING, table_of_cells
from kquorum.metadata.image.records import image_values
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.metadata.snapshot import load_snapshot
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord

REPLICAS = 3
BROKERS = 30
SNAPSHOT_ID = OffsetAndEpoch(5_000_000, 7)
PROVENANCE = Provenance(
    last_contained_offset=4_999_999, last_contained_epoch=7, timestamp_ms=1_700_000_000_000
)
POLL_S = 0.01


def big_image(topics: int, partitions: int) -> MetadataImage:
    random_source = np.random.default_rng(1)
    directory_ids = tuple(UUID(bytes=random_source.bytes(16)) for _ in range(BROKERS))
    features = FeaturesDelta(MetadataImage.empty().features)
    features.replay_feature_level(FeatureLevelRecord(name="metadata.version", feature_level=25))
    made = TopicsImage()
    for number in range(topics):
        replicas = random_source.random((partitions, BROKERS)).argsort(axis=1)[:, :REPLICAS].T
        isr = replicas.copy()
        isr[-1, random_source.random(partitions) < 0.02] = PADDING
        numbers = np.zeros((NUMBER_COLUMNS, partitions), dtype=np.int32)
        numbers[0], numbers[1], numbers[2], numbers[3] = np.arange(partitions), replicas[0], 3, 5
        cells = np.concatenate([numbers, replicas, isr, replicas], dtype=np.int32)
        table = table_of_cells(cells, (REPLICAS, REPLICAS), directory_ids)
        topic_id = UUID(bytes=random_source.bytes(16))
        made = made.with_topic(TopicImage(name=f"topic-{number:05}", id=topic_id, partitions=table))
    return MetadataImage(provenance=PROVENANCE, features=features.image, topics=made)


def anonymous_bytes(process_id: int | str = "self") -> int:
    """Resident memory that no file backs; 0 when the process is gone."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def write(image: MetadataImage, path: Path, codec: CompressionCodec) -> tuple[float, float]:
    """Seconds, and the longest batch in ms: for so long a node at work may have to share its processor."""
    writer = SnapshotWriter(
        SnapshotId(SNAPSHOT_ID.offset, SNAPSHOT_ID.epoch),
        timestamp_ms=1,
        last_contained_log_timestamp_ms=PROVENANCE.timestamp_ms,
        codec=codec,
    )
    begin = last = time.perf_counter()
    longest = 0.0
    with path.open("wb") as file:
        for batch in writer.write(image_values(image)):
            file.write(batch)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - begin, longest * 1e3


def load_in_this_process(path: Path) -> None:
    """The child: load, tell, and stay until the parent has read the memory."""
    before = anonymous_bytes()
    begin = time.perf_counter()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        view = memoryview(mapped)
        loaded = load_snapshot(view, SNAPSHOT_ID)
        view.release()
    seconds = time.perf_counter() - begin
    count = sum(len(topic.partitions) for topic in loaded.image.topics.by_id.values())
    print(json.dumps({"seconds": seconds, "before": before, "after": anonymous_bytes(), "count": count}))


def load(path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.big_image", "--load", str(path)]
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        while True:
            peak = max(peak, anonymous_bytes(child.pid))
            try:
                child.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue
            break
        assert child.stdout is not None
        told: dict[str, float] = json.loads(child.stdout.read())
    return told | {"peak": peak}


def median_ms(action: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1e3


def changes(image: MetadataImage) -> Iterator[dict[str, object]]:
    topic = next(iter(image.topics.by_name.values()))
    change = PartitionChangeRecord(partition_id=1, topic_id=topic.id, leader=1)

    def apply_one() -> MetadataImage:
        delta = MetadataDelta(image)
        delta.replay(change, 1)
        return delta.apply(PROVENANCE)

    other = apply_one()
    same = big_image(len(image.topics.by_id), len(topic.partitions))
    yield {"what": "replay and apply one partition change", "median_ms": median_ms(apply_one, 200)}
    yield {
        "what": "does a broker lead anything",
        "median_ms": median_ms(lambda: image.topics.is_leading_any(999), 200),
    }
    yield {
        "what": "delta to an image one change away",
        "median_ms": median_ms(lambda: MetadataDelta(other).become(image), 5),
    }
    yield {
        "what": "delta to it from nothing",
        "median_ms": median_ms(lambda: MetadataDelta(MetadataImage.empty()).become(image), 5),
    }
    yield {"what": "equal to one made apart", "median_ms": median_ms(lambda: image == same, 3)}


def snapshots(image: MetadataImage, count: int) -> Iterator[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        for codec in (CompressionCodec.LZ4, CompressionCodec.NONE):
            path = Path(folder) / f"{codec.name}.checkpoint"
            write_s, longest_ms = write(image, path, codec)
            told = load(path)
            assert told["count"] == count, "every partition came back"
            yield {
                "codec": codec.name.lower(),
                "file_mb": path.stat().st_size / 1e6,
                "write_s": write_s,
                "longest_batch_ms": longest_ms,
                "load_s": told["seconds"],
                "image_bytes_per_partition": (told["after"] - told["before"]) / count,
                "peak_mb_beyond_start": (told["peak"] - told["before"]) / 1e6,
            }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100, help="of each topic")
    parser.add_argument(
        "--fast", action="store_true", help="a hundredth of the topics, to see that all works"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.load is not None:
        load_in_this_process(options.load)
        return
    topics = options.topics // 100 if options.fast else options.topics
    machine = hardware()
    image = big_image(topics, options.partitions)
    tables: dict[str, Sequence[dict[str, object]]] = {
        "snapshot": list(snapshots(image, topics * options.partitions)),
        "changes": list(changes(image)),
    }
    settings = {"topics": topics, "partitions": topics * options.partitions, "replicas": REPLICAS}
    print_result("big_image", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
