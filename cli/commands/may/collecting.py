"""The view of a running cluster that `kquorum may` decides on: what the leader of the quorum says of its followers,
twice, and its image, read linearizably over gRPC.

A single look cannot tell a node that fetches from one that has just died, so there are two, `LOOK_ON_S` apart. A node
that fetched in between is alive. The image comes last, so that it is not older than the looks.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from kquorum.cli.clients.addresses import KnownControllers
from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.image_client import read_image
from kquorum.cli.clients.quorum_client import ReplicaLag
from kquorum.cli.commands.may.decision import BrokerView, ClusterView, PartitionView, Verdict, VoterView
from kquorum.cli.commands.quorum.voter_checks import LOOK_ON_S, ObservedQuorum, look
from kquorum.cli.failures import CliError
from kquorum.cli.output import tell_waiting
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import inspect_pb2 as pb

# Before the first look: a Fetch that a node sent just before it died arrives meanwhile, and so is no sign of life.
SETTLE_S: Final = 0.5
# Between two rounds of --wait.
PAUSE_S: Final = 0.5
Decide = Callable[[ClusterView], Verdict]


async def decide_on_cluster(
    addresses: Sequence[HostPort],
    listeners: Sequence[HostPort],
    known: KnownControllers,
    timeout_ms: int,
    decide: Decide,
    *,
    wait: bool,
) -> Verdict:
    """`listeners` are of gRPC. With `wait` the first yes, or the no at the end of the time, or one that waiting does
    not change. Raises CliError while no leader answers."""
    loop = asyncio.get_running_loop()
    shown = set[str]()
    async with ClusterClient(addresses, timeout_ms, known=known, tell=tell_waiting) as client:
        while True:
            verdict = decide(await cluster_view(client, listeners))
            left_s = client.deadline - loop.time() - PAUSE_S - SETTLE_S - 2 * LOOK_ON_S
            if verdict.is_yes or not wait or not verdict.may_become_yes or left_s <= 0:
                return verdict
            for reason in verdict.reasons:
                if reason.detail not in shown:
                    shown.add(reason.detail)
                    tell_waiting(f"waiting: {reason.detail}")
            await asyncio.sleep(PAUSE_S)


async def cluster_view(client: ClusterClient, listeners: Sequence[HostPort]) -> ClusterView:
    """Looks again if the leader changes meanwhile, for another one knows other times. Raises CliError."""
    while True:
        await asyncio.sleep(SETTLE_S)
        first = await look(client)
        await asyncio.sleep(LOOK_ON_S)
        second = await look(client, first)
        request = pb.ImageRequest(consistency=pb.LINEARIZABLE)
        what = "the partitions are not known, so the answer is no"
        chunks = await read_image(listeners, request, client.remaining_ms, what)
        header = chunks[0].header
        if _term(first) == _term(second) and header.node_id == second.status.leader_id:
            return view_of(first, second, chunks)
        if client.remaining_ms <= 2 * LOOK_ON_S * 1000:
            raise CliError(
                "the leader of the quorum changes while it is asked, so the answer is no: ask again"
            )


def _term(view: ObservedQuorum) -> tuple[int, int]:
    return view.status.leader_id, view.status.leader_epoch


def view_of(first: ObservedQuorum, second: ObservedQuorum, chunks: Sequence[pb.ImageChunk]) -> ClusterView:
    """`second` knows when each replica had fetched in `first`. Raises CliError for the image of an older version."""
    status, header = second.status, chunks[0].header
    leader = first.status.voter(first.status.leader_id)
    end_before = first.status.high_watermark if leader is None else leader.log_end_offset or 0
    alive = {each.replica_id for each in (*status.voters, *status.observers) if second.is_alive(each)}
    controllers = frozenset(each.id for each in header.controllers) | second.registered.keys()
    voters = tuple(_voter(second, each, end_before) for each in status.voters)
    return ClusterView(
        leader_id=status.leader_id,
        leader_epoch=status.leader_epoch,
        commits=status.high_watermark >= end_before
        and [each.replica_id for each in first.status.voters] == [each.replica_id for each in status.voters],
        is_dynamic=second.kraft_version >= 1,
        voters=voters,
        other_controllers=controllers - {voter.node_id for voter in voters},
        brokers={
            each.id: BrokerView(
                broker_id=each.id,
                fenced=each.fenced,
                in_controlled_shutdown=each.in_controlled_shutdown,
                is_alive=each.id in alive,
            )
            for each in header.brokers
        },
        partitions=[
            _partition(topic, partition)
            for chunk in chunks
            for topic in chunk.topics.topics
            for partition in topic.partitions
        ],
    )


def _voter(view: ObservedQuorum, voter: ReplicaLag, end_before: int) -> VoterView:
    is_leader = voter.replica_id == view.status.leader_id
    return VoterView(
        node_id=voter.replica_id,
        is_alive=view.is_alive(voter),
        has_all=is_leader or (voter.log_end_offset is not None and voter.log_end_offset >= end_before),
        differs=voter.state is not None and voter.state.differs_at is not None,
    )


def _partition(topic: pb.Topic, partition: pb.Partition) -> PartitionView:
    if topic.min_insync_replicas < 1:
        raise CliError(
            f"the leader does not tell the min.insync.replicas of topic {topic.name}, for its version is older than "
            "this command's: use the command of the leader's version, or upgrade the controllers"
        )
    return PartitionView(
        topic=topic.name,
        partition_id=partition.partition_id,
        leader=partition.leader,
        replicas=tuple(partition.replicas),
        isr=tuple(partition.isr),
        min_isr=topic.min_insync_replicas,
        elr=tuple(partition.eligible_leader_replicas),
        last_known_elr=tuple(partition.last_known_leader_replicas),
        adding=tuple(partition.adding_replicas),
        removing=tuple(partition.removing_replicas),
    )
