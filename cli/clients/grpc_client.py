"""What failed gRPC calls come to: why each address gave no answer, in words, and whether somebody refused."""

from typing import Final

import grpc

from cli.command_security import OPTION, speaks_grpc_with_tls
from cli.errors import CliError
from cli.exit_status import ExitStatus
from node.config.addresses import HostPort

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
    """Of one question, by address."""

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
        """Raises CliError where somebody refused: asking again would change nothing."""
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
    """A listener with TLS does so to whoever speaks plainly, or shows no certificate, and says nothing."""
    if speaks_grpc_with_tls(address):
        wants = f"another certificate of this side? ssl.keystore.location of {OPTION}"
    else:
        wants = f"TLS? security.protocol=SSL in the file of {OPTION}"
    return f"it hung up before it said anything (does it want {wants})"
