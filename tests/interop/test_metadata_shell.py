"""Kafka's metadata shell shows what our quorum's segments and snapshots say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.metadata_versions import name_of
from cli.processes import wait_until
from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage, Provenance
from metadata.image.records import image_values
from snapshots.bootstrap import DEFAULT_METADATA_VERSION
from snapshots.naming import SnapshotId
from snapshots.writer import SnapshotWriter
from tests.interop.dumps import assert_same_dumps
from tests.interop.kafka_process import Kafka, ToolHangs
from tests.interop.kafka_release import KafkaRelease
from tests.interop.site import Layout, Site
from wire.compression import CompressionCodec
from wire.record_batch import check_batch, read_records
from wire.record_frame import decode_record

pytestmark = pytest.mark.interop

SHELL = "org.apache.kafka.shell.MetadataShell"
WAIT_S = 45.0
SHELL_TIMEOUT_S = 20.0
TOPICS = {"orders": 40, "payments": 1}
VERSION = f"Optional[{name_of(DEFAULT_METADATA_VERSION)}]"


def shown(kafka: Kafka, path: Path) -> dict[str, Any]:
    """The image as the shell's `tree` draws it, folders as dicts and files as the key of an empty one.

    The shell runs its command when the file is read, which may be before the image is made of it (seen of Kafka's own
    snapshots too, one time in ten), and has been seen to wait for that image in vain: it is asked again then.
    """
    found: list[dict[str, Any]] = []
    hung: list[str] = []

    def is_loaded() -> bool:
        try:
            printed = kafka.run(SHELL, "--snapshot", str(path), "tree", "/image", timeout_s=SHELL_TIMEOUT_S)
        except ToolHangs as error:
            hung.append(str(error))
            return False
        found.append(_parse_tree(printed)["image"])
        return not next(iter(found[-1]["provenance"])).startswith("offset -1,")

    assert wait_until(is_loaded, WAIT_S), f"{found[-1:]} {hung}"
    return found[-1]


def _parse_tree(text: str) -> dict[str, Any]:
    root: dict[str, Any] = {}
    levels = [root]
    for line in ("image:", *(f"  {line}" for line in text.splitlines())):
        depth = (len(line) - len(line.lstrip())) // 2
        child: dict[str, Any] = {}
        levels[depth][line.strip().removesuffix(":")] = child
        levels[depth + 1 :] = [child]
    return root


@pytest.fixture(scope="module")
def node_folder(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site after a controller and a broker of ours have made topics and stopped."""
    folder = tmp_path_factory.mktemp("shell")
    with Site(Kafka(kafka_release, folder), folder, Layout(is_dynamic=True)) as site:
        site.format_with_ours()
        site.start_ours(1, 101)
        for name, partitions in TOPICS.items():
            site.create_topic(name, 101, partitions)
        site.stop(101, 1)
        yield site


def image_of_log(path: Path) -> MetadataImage:
    data, position = path.read_bytes(), 0
    delta, header = MetadataDelta(MetadataImage.empty()), check_batch(path.read_bytes())
    while position < len(data):
        header = check_batch(data, position)
        for record in () if header.is_control else read_records(data, position, header):
            assert record.value is not None
            delta.replay(decode_record(record.value), record.offset)
        position += header.size_in_bytes
    last = Provenance(
        last_contained_offset=header.last_offset,
        last_contained_epoch=header.partition_leader_epoch,
        timestamp_ms=header.max_timestamp_ms,
    )
    return delta.apply(last)


def check_shown(image: dict[str, Any]) -> None:
    by_name = image["topics"]["byName"]
    assert {name: len(set(topic) - {"name", "id"}) for name, topic in by_name.items()} == TOPICS
    first = next(iter(by_name["orders"]["0"]))
    assert "replicas=[101]" in first
    assert list(image["cluster"]["brokers"]) == ["101"]
    assert list(image["cluster"]["controllers"]) == ["1"]
    assert list(image["features"]["metadataVersion"]) == [VERSION]


def test_the_shell_reads_a_segment_of_ours(kafka: Kafka, node_folder: Site) -> None:
    check_shown(shown(kafka, node_folder.nodes[1].segments()[0]))


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
def test_the_shell_and_the_dump_read_a_snapshot_of_ours(
    kafka: Kafka, node_folder: Site, tmp_path: Path, codec: CompressionCodec
) -> None:
    image = image_of_log(node_folder.nodes[1].segments()[0])
    snapshot_id = SnapshotId(image.end_offset, image.provenance.last_contained_epoch)
    writer = SnapshotWriter(
        snapshot_id,
        timestamp_ms=image.provenance.timestamp_ms,
        last_contained_log_timestamp_ms=image.provenance.timestamp_ms,
        codec=codec,
    )
    path = tmp_path / snapshot_id.file_name
    path.write_bytes(b"".join(writer.write(image_values(image))))
    check_shown(shown(kafka, path))
    dumps = assert_same_dumps(kafka, [path])
    assert (codec is CompressionCodec.LZ4) == ("lz4" in dumps[path].codecs)


def test_the_shell_reads_the_bootstrap_checkpoint(kafka: Kafka, node_folder: Site) -> None:
    image = shown(kafka, node_folder.nodes[1].data / "bootstrap.checkpoint")
    assert list(image["features"]["metadataVersion"]) == [VERSION]
    assert not image["topics"]["byName"]
