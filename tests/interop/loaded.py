"""A quorum of ours that has had much to do: its controllers and its broker have stopped, and their files are read.

Controller 1 and the broker cut their logs below their snapshots; controller 2 keeps everything, from offset 0 on. What
controller 1 leads is first compressed and then, after a restart of all, plain.
"""

import shutil
from pathlib import Path

from kquorum.cli.processes import wait_until
from tests.interop.dumps import Dumped, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.node_config import NodeConfig
from tests.interop.site import WAIT_S, Layout, Site

Settings = dict[str, object]

CUTS, KEEPS, BROKER = 1, 2, 101
NODES = (CUTS, KEEPS, BROKER)
WIDE = "wide"
OFTEN: Settings = {"metadata.log.max.record.bytes.between.snapshots": 3_000}
CUT: Settings = OFTEN | {"metadata.log.segment.bytes": 4_096, "metadata.max.retention.bytes": 12_000}
LZ4: Settings = {"metadata.log.compression": "lz4"}
PLAIN: Settings = {"metadata.log.compression": "none"}


def loaded_site(kafka: Kafka, folder: Path) -> Site:
    settings = {
        CUTS: CUT | LZ4,
        KEEPS: OFTEN | PLAIN | {"metadata.max.retention.bytes": -1},
        BROKER: CUT | LZ4,
    }
    layout = Layout(controllers=(CUTS, KEEPS), brokers=(BROKER,), is_dynamic=True, settings=settings)
    site = Site(kafka, folder, layout)
    site.format_with_ours()
    site.start_ours(CUTS, KEEPS, BROKER)
    site.add_voter(KEEPS)
    site.create_topic(WIDE, BROKER, partitions=60)
    _work(site, "early", 90)
    site.stop(BROKER, KEEPS, CUTS)
    site.nodes[CUTS].change_ours(CUT | PLAIN)
    site.start_ours(CUTS, KEEPS, BROKER)
    _work(site, "late", 60)
    cut = (site.nodes[CUTS], site.nodes[BROKER])
    assert wait_until(lambda: all(node.log_start() > 0 for node in cut), WAIT_S), site.tails()
    site.stop(BROKER, KEEPS, CUTS)
    return site


def _work(site: Site, kind: str, number: int) -> None:
    names = [f"{kind}-{each}" for each in range(number)]
    site.create_topics(names, BROKER)
    site.delete_topics(names[::3], BROKER)


def names_made() -> set[str]:
    return {WIDE} | {
        f"{kind}-{each}" for kind, number in (("early", 90), ("late", 60)) for each in range(number)
    }


def names_left() -> set[str]:
    return {name for name in names_made() if name == WIDE or int(name.rpartition("-")[2]) % 3}


def log_up_to(node: NodeConfig, offset: int, folder: Path) -> Path:
    """The log of one that keeps everything, up to an offset at which a batch begins or the log ends."""
    (whole,) = node.segments()
    target = folder / f"up-to-{offset}" / whole.name
    target.parent.mkdir()
    shutil.copyfile(whole, target)
    positions = {record.batch_base_offset: record.position for record in dump_with_ours(whole)}
    if offset in positions:
        with target.open("r+b") as file:
            file.truncate(positions[offset])
    assert max(record.offset for record in dump_with_ours(target)) == offset - 1
    return target


def notes_of(records: tuple[Dumped, ...]) -> list[object]:
    """The audit notes in them, as `kquorum log dump` prints them."""
    return [record.payload["auditnote"] for record in records if "auditnote" in record.payload]
