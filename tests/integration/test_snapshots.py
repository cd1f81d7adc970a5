"""Running nodes write snapshots and cut their logs below them; a replica that is behind catches up from one."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.commands.topics.topic_client import NewTopic, create_topic, describe_topics
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.snapshots.naming import snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.wire.uuids import uuid_to_text
from tests.integration.dynamic_cluster import DynamicCluster
from tests.support.cluster import Cluster, Overrides

WAIT_S = 40.0
# A few topics make a snapshot due, and a few snapshots are too many.
SMALL: Overrides = {
    "metadata.log.segment.bytes": 4096,
    "metadata.log.max.record.bytes.between.snapshots": 3000,
    "metadata.max.retention.bytes": 12_000,
}


def make_topics(cluster: Cluster, names: Iterable[str], broker_id: int = 101) -> None:
    async def create() -> None:
        address = HostPort("127.0.0.1", cluster.ports[broker_id])
        async with ClusterClient([address], 20_000) as client:
            for name in names:
                topic = NewTopic(name=name, partitions=2, replication_factor=1, configs={})
                await create_topic(client, topic, 20_000, if_not_exists=True)

    run_asking(create())


def topics_at(cluster: Cluster, broker_id: int) -> set[str]:
    async def ask() -> set[str]:
        async with ClusterClient([HostPort("127.0.0.1", cluster.ports[broker_id])], 10_000) as client:
            return {topic.name for topic in await describe_topics(client, None)}

    return run_asking(ask())


def metadata_folder(cluster: Cluster, node_id: int) -> Path:
    return cluster.data_folder(node_id) / FOLDER_NAME


def snapshots_of(cluster: Cluster, node_id: int) -> list[Path]:
    """Those with records, oldest first."""
    found = sorted(metadata_folder(cluster, node_id).glob("*.checkpoint"))
    return [path for path in found if (named := snapshot_id_of(path.name)) and named.end_offset > 0]


def log_start(cluster: Cluster, node_id: int) -> int:
    """Where the first segment begins; 0 while there is none."""
    return min((int(path.stem) for path in metadata_folder(cluster, node_id).glob("*.log")), default=0)


def has_no_older_ones(cluster: Cluster, node_id: int) -> bool:
    """Whether each snapshot's end is in the log, or where it begins."""
    found = map(snapshot_id_of, (path.name for path in metadata_folder(cluster, node_id).iterdir()))
    return min(each.end_offset for each in found if each) >= log_start(cluster, node_id)


def check_folders(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Every node stops in good order, and no checker finds anything in what it leaves."""
    for node_id in cluster.node_ids:
        # They go after the segments, a moment later; a node that gets a stop signal leaves the rest to its next start.
        assert wait_until(lambda node_id=node_id: has_no_older_ones(cluster, node_id), WAIT_S), (
            "older ones are gone with the log"
        )
    for node_id in cluster.node_ids:
        if cluster.is_running(node_id):
            assert cluster.terminate(node_id) == 0, cluster.tails()
    for node_id in cluster.node_ids:
        folder = metadata_folder(cluster, node_id)
        assert list(folder.glob("*.part")) == []
        for command in (["snapshot", "verify"], ["log", "verify"]):
            status = run([*command, str(folder)])
            assert status == 0, capsys.readouterr()


@pytest.mark.slow
def test_a_lagging_replica_catches_up_from_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path, overrides=SMALL) as cluster:
        cluster.start()
        made = [f"early-{number}" for number in range(60)]
        make_topics(cluster, made)
        for node_id in cluster.node_ids:
            assert wait_until(lambda node_id=node_id: log_start(cluster, node_id) > 0, WAIT_S), (
                cluster.tails()
            )
            assert snapshots_of(cluster, node_id)
            told = cluster.log_text(node_id)
            assert re.search(
                r"wrote snapshot \d{20}-\d{10}\.checkpoint \(\d+ records, \d+ bytes, because max bytes", told
            )
            assert "the log now begins at offset" in told

        leader = cluster.leader_id()
        behind, wiped = (node_id for node_id in cluster.controller_ids if node_id != leader)
        end_offset = cluster.quorum().high_watermark
        for node_id in (behind, 102):
            cluster.terminate(node_id)
        more = [f"late-{number}" for number in range(60)]
        make_topics(cluster, more)
        assert wait_until(lambda: log_start(cluster, leader) > end_offset, WAIT_S), cluster.tails()
        cluster.start_nodes((behind, 102))
        assert wait_until(lambda: {voter.lag for voter in cluster.quorum().voters} == {0}, WAIT_S)
        assert log_start(cluster, behind) > end_offset, "it came in through a snapshot"
        assert log_start(cluster, 102) > end_offset

        cluster.kill(wiped)
        shutil.rmtree(metadata_folder(cluster, wiped))
        cluster.start_node(wiped)
        assert wait_until(lambda: {voter.lag for voter in cluster.quorum().voters} == {0}, WAIT_S)
        assert log_start(cluster, wiped) > end_offset

        cluster.restart(leader)
        assert wait_until(lambda: "loaded" in cluster.output(leader), WAIT_S), cluster.tails()
        make_topics(cluster, ["last"], broker_id=102)
        everything = {*made, *more, "last"}
        for broker_id in cluster.broker_ids:
            assert wait_until(lambda broker_id=broker_id: topics_at(cluster, broker_id) == everything, WAIT_S)
        check_folders(cluster, capsys)


@pytest.mark.slow
def test_voters_that_only_a_snapshot_knows_survive_a_restart_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DynamicCluster(tmp_path, capsys, overrides=SMALL) as cluster:
        cluster.start_standalone()
        cluster.kquorum("quorum", "add-voter", "2", "--wait")
        voters = cluster.voters()
        assert set(voters) == {1, 2}
        names = [f"topic-{number}" for number in range(60)]
        make_topics(cluster, names)
        for node_id in cluster.node_ids:
            assert wait_until(lambda node_id=node_id: log_start(cluster, node_id) > 0, WAIT_S), (
                cluster.tails()
            )
        for node_id in cluster.node_ids:
            cluster.terminate(node_id)
            reader = SnapshotReader(snapshots_of(cluster, node_id)[-1].read_bytes())
            assert reader.kraft_version == 1
            assert reader.voters is not None
            found = {voter.voter_id: uuid_to_text(voter.voter_directory_id) for voter in reader.voters.voters}
            assert found == {node_id: voter.directory_id for node_id, voter in voters.items()}
        cluster.start_nodes(cluster.node_ids)
        assert cluster.voters().keys() == voters.keys()

        # An observer that has nothing, not even the voters, learns both from a snapshot; then it votes.
        cluster.lose_disk(3)
        cluster.start_node(3)
        cluster.kquorum("quorum", "add-voter", "3", "--wait")
        assert set(cluster.voters()) == {1, 2, 3}
        assert log_start(cluster, 3) > 0
        assert wait_until(lambda: topics_at(cluster, 101) == set(names), WAIT_S)
        check_folders(cluster, capsys)
