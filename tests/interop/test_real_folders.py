"""Folders of clusters in the field, written by Kafka of several versions, go on with our controller, then Kafka's."""

import shutil
from pathlib import Path

import pytest

from kquorum.cli.main import run as run_kquorum
from kquorum.cli.processes import wait_until
from tests.interop.dumps import assert_same_dumps
from tests.interop.kafka_process import Kafka
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BROKER = 901
# Each the only voter of a static quorum.
FOLDERS = ("six-snapshots", "seven-epochs", "single-node-3.6")
OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": 3_000,
    "metadata.log.max.snapshot.interval.ms": 1_000,
    "metadata.max.retention.bytes": 12_000,
}


def properties_of(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("name", FOLDERS)
def test_ours_goes_on_then_kafka_does(kafka: Kafka, real_logs: Path, tmp_path: Path, name: str) -> None:
    if not (real_logs / name).is_dir():
        pytest.skip(f"there is no {name} in {real_logs}")
    properties = properties_of(real_logs / name)
    node_id = int(properties["node.id"])
    layout = Layout(
        controllers=(node_id,),
        brokers=(BROKER,),
        cluster_id=properties["cluster.id"],
        ours=OFTEN,
        kafkas=OFTEN,
    )
    with Site(kafka, tmp_path, layout) as site:
        node = site.nodes[node_id]
        shutil.copytree(real_logs / name, node.data)
        site.format_with_ours([BROKER])
        snapshots = set(node.snapshots())
        site.start_ours(node_id, BROKER)
        before = site.topics(BROKER)
        assert before
        site.create_topics([f"ours-{each}" for each in range(30)], BROKER)
        assert wait_until(lambda: not snapshots & set(node.snapshots()) and node.log_start() > 0, WAIT_S), (
            site.tails()
        )
        site.stop(node_id)
        assert_same_dumps(kafka, [*node.segments(), *node.checkpoints()])
        assert run_kquorum(["log", "verify", str(node.metadata)]) == 0

        site.start_kafka(node_id)
        site.await_quorum(lambda status: status.leader_id == node_id)
        site.create_topic("kafkas", BROKER)
        expected = before | {f"ours-{each}" for each in range(30)} | {"kafkas"}
        assert wait_until(lambda: site.topics(BROKER) == expected, WAIT_S), site.tails()
        site.stop(BROKER, node_id)
        assert_same_dumps(kafka, [*node.segments(), *node.checkpoints()])
