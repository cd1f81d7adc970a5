"""A voter that lies to a running quorum: floods, absurd epochs and positions. Each is answered, and ends no node.

Raft does not tolerate voters that lie: one can depose leaders, and use the epochs up, as with Kafka. Nothing that was
acknowledged may be lost by that, each node must say what is wrong, and an operator can bring the quorum back. A single
Vote request of the last epoch ended all three controllers, by a failed assertion.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.kafka_codec.codec import CALLED_APIS, api_key_of
from kquorum.raft.adapters.kafka_codec.codec import encode_request as encode_body
from kquorum.raft.adapters.quorum_state_file import CHECKSUM_KEY
from kquorum.raft.messages import (
    MAX_EPOCH,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.protocol.headers import encode_request
from tests.attacks.rig import send
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

LIAR = ReplicaKey(2)
FAR = 2**63 - 1


def vote(epoch: int, *, pre_vote: bool = False) -> VoteRequest:
    """Of a candidate with a log that no node has reason to prefer."""
    return VoteRequest(
        cluster_id=None,
        replica_epoch=epoch,
        candidate=LIAR,
        voter=ReplicaKey(-1),
        last_offset=0,
        last_offset_epoch=0,
        pre_vote=pre_vote,
    )


def absurd(epoch: int) -> list[Request]:
    """Requests that no honest voter sends in this epoch, and that change nothing."""
    fetch = FetchRequest(
        cluster_id=None,
        replica=LIAR,
        current_leader_epoch=epoch,
        fetch_offset=FAR,
        last_fetched_epoch=epoch,
        max_wait_ms=0,
        max_bytes=2**31 - 1,
    )
    piece = FetchSnapshotRequest(
        cluster_id=None,
        replica=LIAR,
        current_leader_epoch=epoch,
        snapshot_id=OffsetAndEpoch(FAR, epoch),
        position=FAR,
        max_bytes=2**31 - 1,
    )
    return [
        vote(epoch, pre_vote=True),
        vote(epoch),
        vote(MAX_EPOCH + 1),
        vote(MAX_EPOCH + 1, pre_vote=True),
        BeginQuorumEpochRequest(cluster_id=None, leader_id=99, leader_epoch=epoch),
        BeginQuorumEpochRequest(cluster_id=None, leader_id=2, leader_epoch=MAX_EPOCH + 1),
        EndQuorumEpochRequest(cluster_id=None, leader_id=99, leader_epoch=epoch),
        EndQuorumEpochRequest(cluster_id=None, leader_id=2, leader_epoch=MAX_EPOCH + 1),
        fetch,
        replace(fetch, current_leader_epoch=MAX_EPOCH + 1),
        replace(fetch, fetch_offset=0, last_fetched_epoch=epoch),
        piece,
        replace(piece, snapshot_id=OffsetAndEpoch(0, 0)),
        replace(piece, current_leader_epoch=MAX_EPOCH + 1),
    ]


def send_all(cluster: Cluster, requests: Iterable[Request]) -> list[bytes | None]:
    """Each to every controller."""
    frames = []
    for request in requests:
        api_key = api_key_of(request)
        version = CALLED_APIS[api_key][1]
        frames.append(encode_request(api_key, version, 1, "liar", encode_body(request, version)))

    async def attack() -> list[bytes | None]:
        ports = [cluster.ports[node_id] for node_id in cluster.controller_ids]
        return await asyncio.gather(*(send(port, frame) for frame in frames for port in ports))

    return asyncio.run(attack())


def check_all_run(cluster: Cluster) -> None:
    for node_id in cluster.controller_ids:
        assert cluster.is_running(node_id), cluster.output(node_id)
        told = cluster.output(node_id) + cluster.log_text(node_id)
        assert "Traceback" not in told
        assert "internal error" not in told


def test_a_quorum_outlives_the_lies_of_a_voter_and_is_brought_back_from_the_last_epoch(
    tmp_path: Path,
) -> None:
    with Cluster(tmp_path, controllers=3, brokers=0) as cluster:
        cluster.start()
        cluster.leader_id()
        before = cluster.quorum()

        for _ in range(5):
            assert all(send_all(cluster, absurd(before.leader_epoch) * 5)), "each is answered"
        check_all_run(cluster)
        after = cluster.quorum()
        assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)

        # Epochs that rise depose each leader, as long as they come, and nothing more.
        answers = send_all(cluster, (vote(before.leader_epoch + step) for step in range(1, 100)))
        assert all(answers)
        cluster.leader_id()
        assert cluster.quorum().high_watermark >= before.high_watermark
        check_all_run(cluster)

        send_all(cluster, [vote(MAX_EPOCH)])
        assert wait_until(
            lambda: all(
                "so that no node can be elected any more" in cluster.output(node_id)
                for node_id in cluster.controller_ids
            ),
            60,
        ), cluster.tails()
        check_all_run(cluster)

        # As docs/troubleshooting.md says.
        for node_id in cluster.controller_ids:
            cluster.kill(node_id)
        for node_id in cluster.controller_ids:
            path = cluster.data_folder(node_id) / "__cluster_metadata-0" / "quorum-state"
            state = json.loads(path.read_text())
            assert state["leaderEpoch"] == MAX_EPOCH
            state |= {"leaderEpoch": before.leader_epoch + 1_000, "leaderId": -1, "votedId": -1}
            state = {key: value for key, value in state.items() if key != CHECKSUM_KEY}
            path.write_text(json.dumps(state))
        for node_id in cluster.controller_ids:
            cluster.launch(node_id)
        cluster.leader_id()
        healed = cluster.quorum()
        assert before.leader_epoch + 1_000 < healed.leader_epoch < MAX_EPOCH
        assert healed.high_watermark >= before.high_watermark
