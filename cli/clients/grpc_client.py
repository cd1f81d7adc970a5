"""gRPC calls to nodes: the channel, the words for a failed call, one call, and a call that only the leader answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import grpc

from kquorum.cli.clients.security import OPTION, grpc_credentials_for, speaks_grpc_with_tls
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub


def open_channel(address: HostPort, options: tuple[tuple[str, int], ...]) -> grpc.aio.Channel:
    """For use with `async with`. Raises ConfigError for a command config that cannot be used."""
    credentials = grpc_credentials_for(address)
    if credentials is None:
        return grpc.aio.insecure_channel(str(address), options=options)
    return grpc.aio.secure_channel(str(address), credentials, options=options)


REFUSALS: Final = frozenset({grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED})
# Our servers write the details of these; gRPC's own are of use only in part.
_OUR_WORDS: Final = REFUSALS | {
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.DATA_LOSS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
NO_ANSWER: Final = "no answer in time"
_NOT_OURS: Final = (
    "no gRPC listener of a kquorum node (see `kquorum.grpc.listener`), or one of an older version"
)
_NO_TLS: Final = f"it does not speak TLS, and this side does (security.protocol of {OPTION}, or the config)"
_NO_TRUST: Final = "its certificate is not trusted here (ssl.truststore.location)"
# What gRPC's details hold -> in words; the first that fits.
_WORDS: Final = (
    ("Connection refused", "connection refused"),
    ("CERTIFICATE_VERIFY_FAILED: certificate has expired", "its certificate has expired"),
    ("CERTIFICATE_VERIFY_FAILED", _NO_TRUST),
    ("ostname Verification", "its certificate is not for this host"),
    ("WRONG_VERSION_NUMBER", _NO_TLS),
    ("http1.x server", "it speaks HTTP, not gRPC"),
    ("DNS resolution failed", "no such host is known"),
)
_HANGS_UP: Final = ("Socket closed", "onnection reset", "Broken pipe", "SSL_ERROR_SYSCALL")


class Failures:
    """Why each address did not do what one call asks for."""

    def __init__(self, what: str) -> None:
        """`what` could not be done, or is not known."""
        self._what = what
        self._said: dict[HostPort, str] = {}
        self._is_refused = False

    def note(self, address: HostPort, error: grpc.aio.AioRpcError) -> None:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.note_silence(address)
            return
        self._is_refused = self._is_refused or error.code() in REFUSALS
        self._said[address] = f"{address}: {reason_of(address, error)}"

    def note_silence(self, address: HostPort) -> None:
        """An attempt that only the end of the time cut off does not hide what was said before."""
        self._said.setdefault(address, f"{address}: {NO_ANSWER}")

    def check_refused(self) -> None:
        """Raises CliError if a node refused: asking again would change nothing."""
        if self._is_refused:
            raise self.error()

    def error(self) -> CliError:
        """A refusal is an answer."""
        status = ExitStatus.FAILED if self._is_refused else ExitStatus.UNREACHABLE
        return CliError(f"{self._what}: {'; '.join(self._said.values())}", status=status)


def reason_of(address: HostPort, error: grpc.aio.AioRpcError, *, has_answered: bool = False) -> str:
    """Why `address` gave no answer, without its name; or no more of it, where it `has_answered`."""
    details, code = error.details() or "", error.code()
    if code in _OUR_WORDS and details:
        return details
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return _NOT_OURS
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return NO_ANSWER
    for found, words in _WORDS:
        if found in details:
            return words
    if any(sign in details for sign in _HANGS_UP):
        return "it closed the connection" if has_answered else _hung_up(address)
    if "ailed to connect" in details:
        return "cannot connect"
    return f"{code.name.lower().replace('_', ' ')}: {details.splitlines()[0] if details else 'no details'}"


def _hung_up(address: HostPort) -> str:
    """A listener with TLS closes the connection without a word when the client speaks plainly or has no certificate."""
    if speaks_grpc_with_tls(address):
        wants = f"another certificate of this side? ssl.keystore.location of {OPTION}"
    else:
        wants = f"TLS? security.protocol=SSL in the file of {OPTION}"
    return f"it hung up before it said anything (does it want {wants})"


T = TypeVar("T")
Tell = Callable[[str], None]
CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0),)
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
        # Of the last addresses, too: the leader answers in milliseconds, so 0.1 s is worth the attempt.
        timeout_s = max(deadline - loop.time(), 0.1)
        try:
            await call(address, lambda stub: stub.TransferLeadership(request, timeout=timeout_s))  # noqa: B023
        except grpc.aio.AioRpcError as error:
            said.append(f"{address}: {reason_of(address, error)}")
            # Other errors are answers, or come before the request was taken; after a timeout the leader may still act
            # on it.
            is_in_doubt = is_in_doubt or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            continue
        except asyncio.CancelledError:
            tell(DOUBT)
            raise
        return
    doubt = f"; {DOUBT}" if is_in_doubt else ""
    raise CliError(f"leadership was not transferred to node {target_id}: {'; '.join(said)}{doubt}")


async def call(address: HostPort, method: Callable[[Any], Awaitable[T]]) -> T:
    async with open_channel(address, CHANNEL_OPTIONS) as channel:
        return await method(QuorumStub(channel))  # type: ignore[no-untyped-call]


PAUSE_S: Final = 0.1


async def ask_leader(
    addresses: Sequence[HostPort],
    timeout_ms: int,
    what: str,
    method: Callable[[Any, float], Awaitable[T]],
) -> T:
    """Call all addresses at once, each again and again, until one answers: a mute node delays no other. Raises
    CliError, with what each said, when the time is up, and at once where one refuses."""
    failures = Failures(what)
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    asking = [asyncio.ensure_future(_ask_until(address, deadline, method, failures)) for address in addresses]
    try:
        for answered in asyncio.as_completed(asking):
            answer = await answered
            if answer is not None:
                return answer
    # Awaited after the cancel, or channels would be closed by the garbage collector, after the loop has ended.
    finally:
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    raise failures.error()


async def _ask_until(
    address: HostPort, deadline: float, method: Callable[[Any, float], Awaitable[T]], failures: Failures
) -> T | None:
    """None when the time is up. Raises CliError for a refusal."""
    loop = asyncio.get_running_loop()
    while (left_s := deadline - loop.time()) > 0:
        try:
            return await call(address, lambda stub: method(stub, left_s))
        except grpc.aio.AioRpcError as error:
            failures.note(address, error)
        failures.check_refused()
        await asyncio.sleep(min(PAUSE_S, max(deadline - loop.time(), 0)))
    return None
