"""A client of a running cluster: one request goes to the nodes in turn until one of them gives an accepted answer."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from kquorum.cli.clients.addresses import NONE_KNOWN, KnownControllers, broker_addresses
from kquorum.cli.clients.security import security_for
from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.cli.output import tell_waiting
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import (
    AuthenticationFailed,
    CannotConnect,
    CertificateRefused,
    ConnectTimedOut,
    HungUp,
    NetworkError,
    NoCommonVersion,
    RequestTimedOut,
)
from kquorum.network.security.client_security import ClientSecurity
from kquorum.node.config.addresses import HostPort
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.operator_reason import reason_fields
from kquorum.wire.protocol.apis import ApiKey, api_name
from kquorum.wire.protocol.warm_up import warm_up

# A peer that had less time than this, and sent nothing, may be well.
_TELLING_MS = 500
# The node is there, and refuses.
_REFUSALS = (AuthenticationFailed, CertificateRefused, NoCommonVersion)
# The request did not go out, and would not at another attempt: the client asks for the APIs first.
_UNSENT = (CannotConnect, HungUp, NoCommonVersion)


@dataclass(slots=True, kw_only=True)
class PendingRequest(Generic[R]):
    """One request to the nodes of a cluster, and what came of it so far.

    `accept` decides whether a response counts. Of one that does not, `hint` may name the address to ask next, and
    `refusal` says in words why it does not count. `patience_ms` is how long one of several nodes may be mute before the
    client asks the next. A node may need half of the time for a request that `takes_long`, once it has said which APIs
    it offers. `doubt` is the message when a change was sent and no response came: it may have been made. `is_hopeless`
    ends the attempts early.
    """

    request: Request[R] | ByVersion[R]
    accept: Callable[[R], bool] = lambda _: True
    hint: Callable[[R], HostPort | None] = lambda _: None
    refusal: Callable[[R], str] = lambda _: "answers, but cannot tell"
    is_hopeless: Callable[["PendingRequest[R]"], bool] = lambda _: False
    patience_ms: int | None = None
    takes_long: bool = False
    doubt: str | None = None
    wanted: str = ""
    refused: dict[HostPort, R] = field(default_factory=dict)
    silent: dict[HostPort, str] = field(default_factory=dict)
    is_in_flight: bool = False
    may_be_done: bool = False
    was_late: bool = False
    was_refused: bool = False
    _telling: set[HostPort] = field(default_factory=set, repr=False)

    @property
    def api_key(self) -> ApiKey:
        return ApiKey(self.request.api_key)

    @property
    def what(self) -> str:
        return self.wanted or f"an answer to {api_name(self.api_key)}"

    def reasons(self, known: KnownControllers) -> str:
        """What each address said, or that it did not."""
        said = {
            address: f"{known.name_of(address)} {self.refusal(it)}" for address, it in self.refused.items()
        }
        for address, reason in self.silent.items():
            said[address] = f"node {known.ids[address]}: {reason}" if address in known.ids else reason
        return "; ".join(said.values())

    def begin_with(self, address: HostPort, state: str) -> None:
        """What is known of an attempt until it ends; what an earlier one came to tells more."""
        if address not in self.refused and address not in self._telling:
            self.silent[address] = f"{address} {state}"

    def fail(self, address: HostPort, error: NetworkError, share_ms: int, reason: str) -> None:
        """An attempt which only the end of the time cut off does not hide why an earlier one failed."""
        self.was_refused = self.was_refused or isinstance(error, _REFUSALS)
        is_telling = not isinstance(error, RequestTimedOut | ConnectTimedOut) or share_ms >= _TELLING_MS
        if is_telling or address not in self.silent:
            self.silent[address] = reason
        if is_telling:
            self._telling.add(address)
        if not isinstance(error, _UNSENT):
            self.may_be_done = True
            self.was_late = self.doubt is None  # a change is not sent again by itself


class Unanswered(CliError):
    """No node gave an accepted answer; `pending` holds what each of them gave instead."""

    def __init__(self, pending: PendingRequest[Any], message: str) -> None:
        self.pending = pending
        is_in_doubt = pending.doubt is not None and pending.may_be_done
        is_refused = pending.was_refused and not is_in_doubt
        super().__init__(message, status=ExitStatus.FAILED if is_refused else ExitStatus.UNREACHABLE)


T = TypeVar("T")
SecurityFor = Callable[[HostPort], ClientSecurity]
CLIENT_ID = "kquorum-cli"
_PAUSE_S = 0.1
# After how long the user reads what the command waits for, and how often again.
TELL_AFTER_S = 1.0
TELL_AGAIN_S = 10.0


class ClusterClient:
    """Asks the addresses in turn within one time limit, which is that of all its requests together and begins with
    the first; the connections live as long as the `async with`."""

    def __init__(
        self,
        addresses: Iterable[HostPort],
        timeout_ms: int,
        *,
        known: KnownControllers = NONE_KNOWN,
        tell: Callable[[str], None] | None = None,
        reason: str | None = None,
        leader_timeout_ms: int | None = None,
        security_for: SecurityFor = security_for,
    ) -> None:
        """`tell` hears what is waited for when it takes long, and of changes whose outcome is unknown.
        `leader_timeout_ms` bounds each time in which nodes answer but none as the leader does. `reason` goes
        along with every request, into the audit notes of what it changes. `security_for` says how an address is asked:
        as the command line has it."""
        self.addresses = tuple(dict.fromkeys(addresses))
        assert self.addresses
        self.timeout_ms = timeout_ms
        self.leader_timeout_ms = leader_timeout_ms
        self.known = known
        self.was_in_doubt = False
        self.refused_by = frozenset[HostPort]()
        self.answered_by: HostPort | None = None
        self._tell = tell
        self._shown = set[str]()
        self._security_for = security_for
        self._header_fields = reason_fields(reason)
        self._deadline: float | None = None
        self._connections: dict[HostPort, KafkaConnection] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    @property
    def deadline(self) -> float:
        """On the loop's clock."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self.timeout_ms / 1000
        return self._deadline

    @property
    def remaining_ms(self) -> int:
        return max(round((self.deadline - asyncio.get_running_loop().time()) * 1000), 1)

    async def ask(self, request: Request[R] | ByVersion[R] | PendingRequest[R]) -> R:
        """The first response that is accepted.

        While nodes answer without an acceptable response (during an election, say) or stay silent, all are asked again
        until the timeout. Raises Unanswered with what each address said.
        """
        pending = request if isinstance(request, PendingRequest) else PendingRequest(request=request)
        warm_up((ApiKey.API_VERSIONS, pending.api_key))  # compiling is not the cluster's time
        loop = asyncio.get_running_loop()
        began = loop.time()
        # A task of its own: it speaks while a single slow attempt is still waited for.
        teller = loop.create_task(self._tell_of(pending))
        try:
            async with asyncio.timeout_at(self.deadline):
                while True:
                    response = await self._ask_all(pending)
                    if response is not None:
                        return response
                    # A node that cannot be reached at all will not be reached in 100 ms; a refusal, during an election,
                    # passes.
                    if not (pending.refused or pending.was_late) or pending.is_hopeless(pending):
                        break
                    limit_ms = self.leader_timeout_ms
                    if limit_ms is not None and loop.time() - began >= limit_ms / 1000:
                        break
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            raise self._failure(pending, f" within {self.timeout_ms} ms") from None
        # Ctrl-C: the user must know that the change may have been made.
        except asyncio.CancelledError:
            if pending.doubt and (pending.may_be_done or pending.is_in_flight) and self._tell is not None:
                self._tell(pending.doubt)
            raise
        finally:
            teller.cancel()
            self.was_in_doubt = pending.may_be_done
            self.refused_by = frozenset(pending.refused)
        raise self._failure(pending, "")

    def _failure(self, pending: PendingRequest[R], within: str) -> Unanswered:
        what = "no answer to " + api_name(pending.api_key)
        message = f"{what}{within}: {pending.reasons(self.known)}"
        if pending.doubt and (pending.may_be_done or pending.is_in_flight):
            message = f"{message}; {pending.doubt}"
        return Unanswered(pending, message)

    async def _tell_of(self, pending: PendingRequest[R]) -> None:
        await asyncio.sleep(TELL_AFTER_S)
        while self._tell is not None:
            reasons = pending.reasons(self.known)
            text = f"waiting for {pending.what}" + (f": {reasons}" if reasons else "")
            if text not in self._shown:
                self._shown.add(text)
                self._tell(text)
            await asyncio.sleep(TELL_AGAIN_S)

    async def _ask_all(self, pending: PendingRequest[R]) -> R | None:
        """The accepted response, if any; the node that answered last is asked first."""
        waiting = sorted(self.addresses, key=lambda address: address != self.answered_by)
        asked = set[HostPort]()
        while waiting:
            address = waiting.pop(0)
            asked.add(address)
            response = await self._try(address, pending, rest=len(waiting))
            if response is None:
                continue
            if pending.accept(response):
                self.answered_by = address
                return response
            pending.refused[address] = response
            hinted = pending.hint(response)
            # Each address is asked once per round: two nodes that name each other as the leader would otherwise be
            # asked for ever.
            if hinted is not None and hinted not in asked:
                waiting = [hinted, *(other for other in waiting if other != hinted)]
        return None

    async def _try(self, address: HostPort, pending: PendingRequest[R], *, rest: int) -> R | None:
        """A response, or None with the reason in `silent`. A mute node gets its share of the time, not all of it."""
        # Divided again at each address, so what a quick node did not need goes to those that follow.
        share_ms = max(self.remaining_ms // (rest + 1), 1) if rest else self.remaining_ms
        if pending.patience_ms is not None and len(self.addresses) > 1:
            share_ms = min(share_ms, pending.patience_ms)
        pending.begin_with(address, "has not answered")
        try:
            connection = await self._connection(address, share_ms)
            pending.begin_with(address, "takes connections, but has not answered")
            pending.is_in_flight = True
            if pending.takes_long:
                share_ms = await self._long_share_ms(connection, pending.api_key, share_ms)
            response = await connection.call(pending.request, share_ms)
        except NetworkError as error:
            self._note_silence(address, pending, error, share_ms)
            return None
        except ValueError as error:
            # A text that is too long for the protocol, or is no Unicode: no request went out.
            raise usage_error(
                f"{api_name(pending.api_key)} cannot be written with what the command line says: {error}"
            ) from None
        pending.is_in_flight = False
        pending.silent.pop(address, None)
        return response

    async def _long_share_ms(self, connection: KafkaConnection, api_key: ApiKey, share_ms: int) -> int:
        """Half of the time for a node that is not mute; raises RequestTimedOut for one that is."""
        try:
            async with asyncio.timeout(share_ms / 1000):
                await connection.common_version(api_key)
        except TimeoutError:
            asked = api_name(ApiKey.API_VERSIONS)
            raise RequestTimedOut(connection.host, connection.port, asked, share_ms) from None
        return max(share_ms, self.remaining_ms // 2)

    def _note_silence(
        self, address: HostPort, pending: PendingRequest[R], error: NetworkError, share_ms: int
    ) -> None:
        """A late answer would stand in the way of the next one, so the connection is not used again."""
        connection = self._connections.pop(address, None)
        reason = str(error)
        if connection is not None:
            if isinstance(error, NoCommonVersion) and connection.offers(ApiKey.VOTE):
                reason = f"{address} is a controller, and {api_name(pending.api_key)} is for brokers: ask one"
            connection.close()
        pending.is_in_flight = False
        pending.refused.pop(address, None)
        pending.fail(address, error, share_ms, reason)

    async def _connection(self, address: HostPort, timeout_ms: int) -> KafkaConnection:
        if address not in self._connections:
            self._connections[address] = await KafkaConnection.connect(
                *address,
                CLIENT_ID,
                timeout_ms,
                header_fields=self._header_fields,
                security=self._security_for(address),
            )
        return self._connections[address]


def run_asking(call: Coroutine[Any, Any, T]) -> T:
    """Run one call to its end; uvloop is left out, since importing it costs more than it gains here."""
    return asyncio.run(call)


def check_error(code: int, message: str | None, what: str) -> None:
    """Raises CliError for an error code of Kafka's, in words and with its name."""
    if code == 0:
        return
    try:
        name = ErrorCode(code).name.upper()
    except ValueError:
        name = f"error code {code}"
    raise CliError(f"{what}: {message} ({name})" if message else f"{what}: {name}")


def check_change(code: int, message: str | None, what: str, doubt: str) -> None:
    """As `check_error`, for a change: REQUEST_TIMED_OUT says that the answer did not come in time, not that nothing was
    done, so the error ends with `doubt`."""
    if code == ErrorCode.request_timed_out:
        raise CliError(
            f"{message or 'the controller did not answer in time'}; {doubt}", status=ExitStatus.UNREACHABLE
        )
    check_error(code, message, what)


def ask_brokers(
    config: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    call: Callable[[ClusterClient], Awaitable[T]],
    reason: str | None = None,
) -> T:
    """What `call` returns; `reason` goes into the audit notes of what it changes. Raises CliError."""
    addresses = broker_addresses(config, bootstrap_server)

    async def ask() -> T:
        async with ClusterClient(addresses, timeout_ms, tell=tell_waiting, reason=reason) as client:
            return await call(client)

    return run_asking(ask())
