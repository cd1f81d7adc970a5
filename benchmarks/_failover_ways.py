"""The ways in which a leader is lost: each prepares what may take its time, gives the deed itself, and brings the lost
controller back when another has taken a write."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks._failover_cluster import FailoverCluster
from kquorum.cli.processes import NodeFailed

TRANSFER_TIMEOUT_S = 10.0


class WayUnavailableError(Exception):
    """The nodes cannot lose their leader this way; the text says why."""


Deed = Callable[[], object]
Way = Callable[[FailoverCluster, int], AbstractContextManager[Deed]]


@contextmanager
def kill(cluster: FailoverCluster, leader_id: int) -> Iterator[Deed]:
    yield lambda: cluster.kill(leader_id)
    cluster.start_node(leader_id)


@contextmanager
def stop(cluster: FailoverCluster, leader_id: int) -> Iterator[Deed]:
    """The deed returns when the process has ended, which is after it handed over."""
    yield lambda: cluster.terminate(leader_id)
    cluster.start_node(leader_id)


@contextmanager
def pause(cluster: FailoverCluster, leader_id: int) -> Iterator[Deed]:
    """Its connections stay, and it comes back in the belief that it leads."""
    try:
        yield lambda: cluster.pause(leader_id)
    finally:
        cluster.resume(leader_id)


@contextmanager
def isolate(cluster: FailoverCluster, leader_id: int) -> Iterator[Deed]:
    """The other controllers neither hear it nor are heard by it; clients reach it all the time."""
    try:
        yield lambda: cluster.isolate(leader_id)
    finally:
        cluster.heal()


@contextmanager
def transfer(cluster: FailoverCluster, leader_id: int) -> Iterator[Deed]:
    """To the next controller in the order of ids. Raises WayUnavailableError where nodes do not offer it."""
    import grpc

    from kquorum.wire.proto.quorum_pb2 import TransferLeadershipRequest
    from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub

    others = [node_id for node_id in cluster.controller_ids if node_id != leader_id]
    request = TransferLeadershipRequest(target_id=min(others, key=lambda other: (other < leader_id, other)))

    def hand_over() -> None:
        try:
            stub.TransferLeadership(request, timeout=TRANSFER_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise WayUnavailableError("the nodes do not serve TransferLeadership") from error
            raise NodeFailed(f"node {leader_id} did not hand over: {error.details()}") from error

    with grpc.insecure_channel(f"127.0.0.1:{cluster.grpc_ports[leader_id]}") as channel:
        grpc.channel_ready_future(channel).result(TRANSFER_TIMEOUT_S)
        stub = QuorumStub(channel)  # type: ignore[no-untyped-call]
        yield hand_over


WAYS: dict[str, Way] = {
    "kill": kill,
    "stop": stop,
    "transfer": transfer,
    "pause": pause,
    "isolate": isolate,
}
# These need links that can be cut, which go through this process: the others are measured without the detour.
WAYS_THAT_CUT_LINKS = frozenset({"isolate"})
