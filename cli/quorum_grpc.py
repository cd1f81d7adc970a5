"""What the command line asks of nodes over gRPC: handing over leadership, the history of elections, the image."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc

from cli.elections import Noted
from cli.errors import CliError
from cli.grpc_channel import open_channel
from cli.grpc_failures import Failures, reason_of
from metadata.grpc.quorum.service import history_of
from node.config.addresses import HostPort
from wire.proto import quorum_pb2 as pb
from wire.proto.quorum_pb2_grpc import QuorumStub

T = TypeVar("T")
Tell = Callable[[str], None]
_OPTIONS = (("grpc.enable_http_proxy", 0),)


DOUBT = "the request may have been carried out: look with `kquorum quorum status`"


async def transfer_leadership(
    addresses: Sequence[HostPort], target_id: int, timeout_ms: int, tell: Tell = lambda _: None
) -> None:
    """Ask each in turn, for only the leader can, all within the time. Raises CliError with what they said."""
    request = pb.TransferLeadershipRequest(target_id=target_id)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    said: list[str] = []
    is_in_doubt = False
    for address in addresses:
        timeout_s = max(deadline - loop.time(), 0.1)
        try:
            await call(address, lambda stub: stub.TransferLeadership(request, timeout=timeout_s))  # noqa: B023
        except grpc.aio.AioRpcError as error:
            said.append(f"{address}: {reason_of(address, error)}")
            is_in_doubt = is_in_doubt or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            continue
        except asyncio.CancelledError:
            tell(DOUBT)
            raise
        return
    doubt = f"; {DOUBT}" if is_in_doubt else ""
    raise CliError(f"leadership was not transferred to node {target_id}: {'; '.join(said)}{doubt}")


async def fetch_elections(
    addresses: Sequence[HostPort], from_epoch: int, timeout_ms: int, tell: Tell
) -> list[Noted]:
    """From all that can be reached; `tell` hears of the others. Raises CliError when nobody can."""
    request = pb.GetElectionsRequest(from_epoch=from_epoch)
    failures = Failures("no node tells of its elections")

    async def ask(address: HostPort) -> Noted | str:
        try:
            response = await call(address, lambda stub: stub.GetElections(request, timeout=timeout_ms / 1000))
        except grpc.aio.AioRpcError as error:
            failures.note(address, error)
            return f"{address}: {reason_of(address, error)}"
        return Noted(f"node {response.node_id}", *history_of(response))

    answers = await asyncio.gather(*(ask(address) for address in addresses))
    found = [answer for answer in answers if isinstance(answer, Noted)]
    if not found:
        raise failures.error()
    for reason in (answer for answer in answers if isinstance(answer, str)):
        tell(f"without {reason}")
    return found


async def call(address: HostPort, method: Callable[[Any], Awaitable[T]]) -> T:
    async with open_channel(address, _OPTIONS) as channel:
        return await method(QuorumStub(channel))  # type: ignore[no-untyped-call]
