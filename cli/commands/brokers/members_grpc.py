"""What the command line asks of nodes over gRPC about the brokers: how far each follows, and to wait for them."""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import grpc

from kquorum.cli.clients.grpc_client import ask_leader, call
from kquorum.cli.commands.brokers.rows import BrokerRow, Members
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.uuids import uuid_to_text

# What a call may take longer than what it was asked to wait.
ANSWER_S: Final = 1.0
_STATES: Final = {
    pb.FENCED: "fenced",
    pb.ACTIVE: "active",
    pb.IN_CONTROLLED_SHUTDOWN: "in controlled shutdown",
}


async def describe_brokers(addresses: Sequence[HostPort], timeout_ms: int) -> Members:
    """From the active controller, whichever of these it is. Raises CliError when none answers as such in time."""
    response = await ask_leader(
        addresses,
        timeout_ms,
        "how far the brokers follow is not known",
        lambda stub, timeout_s: stub.DescribeBrokers(pb.DescribeBrokersRequest(), timeout=timeout_s),
    )
    return Members(
        cluster_id=response.cluster_id,
        committed_offset=response.committed_offset,
        brokers=tuple(row_of(broker) for broker in response.brokers),
    )


async def wait_applied(
    addresses: Sequence[HostPort], offset: int | None, timeout_ms: int
) -> pb.WaitAppliedResponse:
    """As the service says. A controller that loses its place meanwhile is followed by the next, within the time.
    Raises CliError when none answers."""
    return await ask_leader(
        addresses,
        timeout_ms,
        "whether all brokers have it is not known",
        lambda stub, timeout_s: stub.WaitApplied(
            pb.WaitAppliedRequest(offset=offset, timeout_ms=max(int(timeout_s * 1000), 1)),
            timeout=timeout_s + ANSWER_S,
        ),
    )


async def describe_nodes(
    addresses: Sequence[HostPort], timeout_ms: int
) -> dict[int, pb.DescribeNodeResponse]:
    """Of each node that answers, by id."""
    request = pb.DescribeNodeRequest()

    async def ask(address: HostPort) -> pb.DescribeNodeResponse | None:
        try:
            return await call(address, lambda stub: stub.DescribeNode(request, timeout=timeout_ms / 1000))
        except grpc.aio.AioRpcError:
            return None

    answers = await asyncio.gather(*(ask(address) for address in addresses))
    return {answer.node_id: answer for answer in answers if answer is not None}


def row_of(broker: pb.BrokerProgress) -> BrokerRow:
    """With the first of its listeners."""
    first = broker.endpoints[0] if broker.endpoints else pb.BrokerEndpoint()
    return BrokerRow(
        broker_id=broker.broker_id,
        host=first.host,
        port=first.port,
        rack=broker.rack if broker.HasField("rack") else None,
        fenced=broker.standing == pb.FENCED,
        state=_STATES.get(broker.standing, "unknown"),
        epoch=broker.epoch,
        applied_offset=_known(broker.applied_offset),
        lag=_known(broker.lag),
        silent_ms=_known(broker.silent_ms),
        directories=tuple(uuid_to_text(UUID(bytes=each)) for each in broker.directories),
    )


def what_it_says(node: pb.DescribeNodeResponse) -> str | None:
    """What a broker knows of itself that the controllers may not know; None where all is well."""
    if node.is_cut_off:
        return f"cut off for {node.ms_since_commit / 1000:.1f} s, serves offset {node.offset}"
    return None if node.is_ready else node.reason


def _known(number: int) -> int | None:
    return number if number >= 0 else None
