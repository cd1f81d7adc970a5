"""Nodes compare the state that they replayed from the log, and a node whose state differs is named."""

import asyncio
import struct
from pathlib import Path

import grpc
import pytest
from crc32c import crc32c

from kquorum.cli.clients.quorum_client import ReplicaState
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.metadata.state_hash.comparison import reports_of
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub
from tests.integration.damaged_files import metadata_folder
from tests.support.cluster import Cluster

WAIT_S = 30.0
CRC_AT, CRC_FROM = 17, 21


def states(cluster: Cluster) -> dict[int, ReplicaState]:
    return {node_id: state for node_id, state in cluster.quorum().states if state is not None}


def all_agree(cluster: Cluster) -> bool:
    """Each node has been compared at an offset that is not long ago."""
    found = states(cluster)
    newest = max((state.offset for state in found.values()), default=0)
    return set(found) == set(cluster.node_ids) and all(
        state.differs_at is None and (state.agreed_offset or 0) > max(newest - 20, 5)
        for state in found.values()
    )


def rewrite_log(cluster: Cluster, node_id: int, old: bytes, new: bytes) -> None:
    """Another record with a checksum that is right: as a bug would have it, not a disk."""
    path = metadata_folder(cluster, node_id) / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    assert old in data
    data[:] = data.replace(old, new)
    position = 0
    while position + CRC_FROM < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + 12 + length
        if length <= 0 or end > len(data):
            break
        struct.pack_into(">I", data, position + CRC_AT, crc32c(bytes(data[position + CRC_FROM : end])))
        position = end
    path.write_bytes(data)


async def describe(cluster: Cluster, node_id: int) -> pb.DescribeQuorumResponse:
    address = f"127.0.0.1:{cluster.grpc_ports[node_id]}"
    async with grpc.aio.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        stub = QuorumStub(channel)  # type: ignore[no-untyped-call]
        response: pb.DescribeQuorumResponse = await stub.DescribeQuorum(
            pb.DescribeQuorumRequest(), timeout=10
        )
        return response


@pytest.mark.slow
def test_all_nodes_agree_and_one_that_does_not_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path, brokers=1, with_grpc=True) as cluster:
        cluster.start()
        assert wait_until(lambda: all_agree(cluster), WAIT_S), "\n".join(map(str, states(cluster).items()))
        leader = cluster.leader_id()
        response = asyncio.run(describe(cluster, leader))
        own, reports = reports_of(response.states)
        assert own is not None
        assert (response.node_id, response.leader_id) == (leader, leader)
        assert {report.replica.id for report in reports} == set(cluster.node_ids) - {leader}
        assert {each.replica_id for each in response.replicas if each.is_voter} == set(cluster.controller_ids)
        odd = min(set(cluster.controller_ids) - {leader})
        assert asyncio.run(describe(cluster, odd)).leader_id == leader

        assert cluster.terminate(odd) == 0
        rewrite_log(cluster, odd, b"PLAINTEXT", b"PLAINTEXS")
        cluster.start_node(odd)
        assert wait_until(lambda: "STATE DIFFERS" in cluster.log_text(cluster.leader_id()), WAIT_S), (
            cluster.tails()
        )
        assert [node_id for node_id, state in states(cluster).items() if state.differs_at is not None] == [
            odd
        ]
        addresses = ",".join(cluster.address(node_id) for node_id in cluster.controller_ids)
        capsys.readouterr()
        assert run(["quorum", "status", "--bootstrap-controller", addresses]) == 1
        assert f"STATE DIFFERS: node {odd} has" in capsys.readouterr().err
        # A broker passes the question on, and what the leader adds to its answer too.
        assert run(["quorum", "status", "--bootstrap-server", cluster.address(101)]) == 1
        assert f"STATE DIFFERS: node {odd} has" in capsys.readouterr().err
