"""What our nodes write under load, segments and snapshots, is read by Kafka's tools as it is by ours.

Plain and compressed, with audit notes in the log and at a snapshot's end, and a dynamic quorum's voters in its header.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kquorum.cli.main import run as run_kquorum
from kquorum.snapshots.naming import SnapshotId, snapshot_id_of
from tests.interop.dumps import Dumped, KafkaDump, assert_same_dumps, check_indexes_with_kafka, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import KafkaRelease
from tests.interop.loaded import (
    BROKER,
    CUTS,
    KEEPS,
    NODES,
    loaded_site,
    log_up_to,
    names_left,
    names_made,
    notes_of,
)
from tests.interop.node_config import NodeConfig
from tests.interop.shell import partitions_shown, shown, without_provenance
from tests.interop.site import Site

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def site(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("loaded")
    with loaded_site(Kafka(kafka_release, folder), folder) as stopped:
        yield stopped


def newest(node: NodeConfig) -> tuple[Path, SnapshotId]:
    path = node.snapshots()[-1]
    snapshot_id = snapshot_id_of(path.name)
    assert snapshot_id is not None
    return path, snapshot_id


@pytest.mark.slow
def test_the_dump_of_all_files(kafka: Kafka, site: Site) -> None:
    nodes = [site.nodes[node_id] for node_id in NODES]
    paths = [path for node in nodes for path in (*node.segments(), *node.checkpoints())]
    dumps = assert_same_dumps(kafka, paths)
    check_indexes_with_kafka(kafka, *(path for node in nodes for path in node.metadata.glob("*.*index")))
    (whole,) = site.nodes[KEEPS].segments()
    log = dump_with_ours(whole)
    check_log(dumps[whole], log, site)
    for node in nodes:
        check_snapshot(node.snapshots()[-1], dumps, log)
        assert run_kquorum(["log", "verify", str(node.metadata)]) == 0
        assert run_kquorum(["snapshot", "verify", str(node.metadata)]) == 0
    assert {"none", "lz4"} <= {
        codec for path in site.nodes[BROKER].snapshots() for codec in dumps[path].codecs
    }
    assert {codec for path in site.nodes[KEEPS].snapshots() for codec in dumps[path].codecs} == {"none"}


def check_log(theirs: KafkaDump, ours: tuple[Dumped, ...], site: Site) -> None:
    """All of it is there, in both forms, with a note on each change that was asked for."""
    assert set(theirs.codecs) == {"none", "lz4"}
    assert [record.offset for record in ours] == list(range(len(ours)))
    named = [record.payload["name"] for record in ours if record.type == "topicrecord"]
    assert sorted(named) == sorted(names_made())
    removed = sum(record.type == "removetopicrecord" for record in ours)
    assert removed == len(names_made()) - len(names_left())
    assert len(notes_of(ours)) >= len(named) + removed
    assert site.nodes[CUTS].log_start() > 0 < site.nodes[BROKER].log_start()


def check_snapshot(path: Path, dumps: dict[Path, KafkaDump], log: tuple[Dumped, ...]) -> None:
    """The voters stand in front, and the newest note below its offset at the end, which Kafka reads past."""
    ours, theirs = dump_with_ours(path), dumps[path].records
    snapshot_id = snapshot_id_of(path.name)
    assert snapshot_id is not None
    assert [record.type for record in theirs[:3]] == ["snapshotheader", "kraftversion", "kraftvoters"]
    assert theirs[1].payload["kraftversion"] == 1
    below = tuple(record for record in log if record.offset < snapshot_id.end_offset)
    voters = [record.payload["voters"] for record in below if record.type == "kraftvoters"]
    assert theirs[2].payload["voters"] == voters[-1]
    assert {voter["voterid"] for voter in voters[-1]} == {CUTS, KEEPS}
    assert [record.type for record in theirs[-2:]] == ["nooprecord", "snapshotfooter"]
    assert notes_of(ours) == notes_of(below)[-1:]


@pytest.mark.slow
def test_the_shell_on_snapshots_and_on_the_log_they_stand_for(
    kafka: Kafka, site: Site, tmp_path: Path
) -> None:
    """Kafka's own replay of our log comes to the state that our snapshots hold, plain and compressed."""
    replayed: dict[int, object] = {}
    for node_id in (BROKER, KEEPS):
        path, snapshot_id = newest(site.nodes[node_id])
        image = shown(kafka, path)
        records = dump_with_ours(path)
        assert partitions_shown(image) == partitions_in(records)
        offset = snapshot_id.end_offset
        if offset not in replayed:
            replayed[offset] = without_provenance(
                shown(kafka, log_up_to(site.nodes[KEEPS], offset, tmp_path))
            )
        assert without_provenance(image) == replayed[offset]
        assert sorted(image["cluster"]["brokers"]) == [str(BROKER)]
        assert sorted(image["cluster"]["controllers"]) == [str(CUTS), str(KEEPS)]


def partitions_in(records: tuple[Dumped, ...]) -> dict[str, dict[int, str]]:
    """The partition records of a snapshot as Kafka words a partition."""
    names = {
        record.payload["topicid"]: record.payload["name"]
        for record in records
        if record.type == "topicrecord"
    }
    found: dict[str, dict[int, str]] = {name: {} for name in names.values()}
    for record in records:
        if record.type == "partitionrecord":
            found[names[record.payload["topicid"]]][record.payload["partitionid"]] = worded(record)
    return found


def worded(partition: Dumped) -> str:
    said = partition.payload
    assert said["leaderrecoverystate"] == 0
    lists = {
        "replicas": said["replicas"],
        "directories": said["directories"],
        "isr": said["isr"],
        "removingReplicas": [],
        "addingReplicas": [],
        "elr": [],
        "lastKnownElr": [],
    }
    words = [f"{name}=[{', '.join(map(str, values))}]" for name, values in lists.items()]
    words += [f"leader={said['leader']}", "leaderRecoveryState=RECOVERED"]
    words += [f"leaderEpoch={said['leaderepoch']}", f"partitionEpoch={said['partitionepoch']}"]
    return f"PartitionRegistration({', '.join(words)})"


@pytest.mark.slow
def test_the_shell_reads_the_bootstrap_checkpoint(kafka: Kafka, site: Site) -> None:
    image = shown(kafka, site.nodes[CUTS].data / "bootstrap.checkpoint")
    assert not image["topics"]["byName"]
    assert len(image["features"]) > 1
