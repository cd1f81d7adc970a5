"""Asking a running cluster from the command line: one question, the first node that answers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from cli.config.addresses import HostPort, parse_host_port, reachable
from cli.errors import CliError
from cli.exit_status import ExitStatus
from network.connection import KafkaConnection
from network.errors import NetworkError
from wire.protocol.apis import ApiKey, api_name
from wire.protocol.warm_up import warm_up

T = TypeVar("T")
CLIENT_ID = "kquorum-cli"
_PAUSE_S = 0.1
DEFAULT_CONFIG = Path("quorum.toml")


class ClusterClient:
    """Asks the addresses in turn within one time limit; the connections live as long as the `async with`."""

    def __init__(self, addresses: Iterable[HostPort], timeout_ms: int) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))
        assert self.addresses
        self.timeout_ms = timeout_ms
        self._connections: dict[HostPort, KafkaConnection] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    async def ask(
        self,
        api_key: ApiKey,
        body: Mapping[str, object],
        *,
        accept: Callable[[Any], bool] = lambda _: True,
        hint: Callable[[Any], HostPort | None] = lambda _: None,
    ) -> Any:
        """The first response that `accept` takes; a refused one may `hint` at whom to ask next.

        While somebody answers but none is accepted (an election, say), all are asked again until the time is up.
        Raises CliError (unreachable), naming what each address said.
        """
        warm_up((ApiKey.API_VERSIONS, api_key))  # compiling is not the cluster's time
        said: dict[HostPort, str] = {}
        try:
            async with asyncio.timeout(self.timeout_ms / 1000):
                while True:
                    response, somebody_answered = await self._ask_all(api_key, body, accept, hint, said)
                    if response is not None:
                        return response
                    if not somebody_answered:
                        break
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            pass
        reasons = "; ".join(dict.fromkeys(said.values()))
        raise CliError(f"no answer to {api_name(api_key)}: {reasons}", status=ExitStatus.UNREACHABLE)

    async def _ask_all(
        self,
        api_key: ApiKey,
        body: Mapping[str, object],
        accept: Callable[[Any], bool],
        hint: Callable[[Any], HostPort | None],
        said: dict[HostPort, str],
    ) -> tuple[Any | None, bool]:
        """The accepted response, if any, and whether anybody answered at all."""
        waiting, asked, somebody_answered = list(self.addresses), set[HostPort](), False
        while waiting:
            address = waiting.pop(0)
            asked.add(address)
            response = await self._try(address, api_key, body, said, rest=len(waiting))
            if response is None:
                continue
            if accept(response):
                return response, True
            somebody_answered = True
            said[address] = f"{address} answers, but cannot tell"
            hinted = hint(response)
            if hinted is not None and hinted not in asked:
                waiting = [hinted, *(other for other in waiting if other != hinted)]
        return None, somebody_answered

    async def _try(
        self,
        address: HostPort,
        api_key: ApiKey,
        body: Mapping[str, object],
        said: dict[HostPort, str],
        *,
        rest: int,
    ) -> Any | None:
        """A response, or None with the reason in `said`. A mute node gets its share of the time, not all of it."""
        said[address] = f"{address} did not answer within {self.timeout_ms} ms"
        share_ms = max(self.timeout_ms // (rest + 1), 1) if rest else self.timeout_ms
        try:
            return await (await self._connection(address, share_ms)).request(api_key, body, share_ms)
        except NetworkError as error:
            # A late answer would stand in the way of the next one, so the connection is not used again.
            connection = self._connections.pop(address, None)
            if connection is not None:
                connection.close()
            said[address] = str(error)
            return None

    async def _connection(self, address: HostPort, timeout_ms: int) -> KafkaConnection:
        if address not in self._connections:
            self._connections[address] = await KafkaConnection.connect(*address, CLIENT_ID, timeout_ms)
        return self._connections[address]


def run_asking(question: Coroutine[Any, Any, T]) -> T:
    """Run one question to its end; uvloop is left out, since importing it costs more than it gains here."""
    return asyncio.run(question)


def broker_addresses(config: Path | None, bootstrap: str | None) -> tuple[HostPort, ...]:
    """Where to ask a broker: the option, or the brokers of the config. Raises CliError or ConfigError."""
    if bootstrap:
        return _parse(bootstrap, "--bootstrap-server")
    cluster = _config(config, "--bootstrap-server host:port")
    listeners = [listener for node in cluster.brokers for listener in node.broker_listeners[:1]]
    if not listeners:
        raise CliError(
            f"{cluster.path} has no broker; name one with --bootstrap-server", status=ExitStatus.USAGE
        )
    return tuple(reachable(listener.host, listener.port) for listener in listeners)


def controller_addresses(config: Path | None, bootstrap: str | None) -> tuple[HostPort, ...]:
    """Where to ask a controller: the option, or the voters of the config. Raises CliError or ConfigError."""
    if bootstrap:
        return _parse(bootstrap, "--bootstrap-controller")
    cluster = _config(config, "--bootstrap-controller host:port")
    return tuple(dict.fromkeys(reachable(*address) for address in cluster.controller_addresses))


def quorum_addresses(
    config: Path | None, bootstrap_controller: str | None, bootstrap_server: str | None
) -> tuple[HostPort, ...]:
    """Where to ask about the quorum: controllers, or brokers that pass questions on. Raises CliError or ConfigError."""
    if bootstrap_controller and bootstrap_server:
        raise CliError(
            "--bootstrap-controller and --bootstrap-server exclude each other: brokers ask controllers anyway",
            status=ExitStatus.USAGE,
        )
    if bootstrap_server:
        return _parse(bootstrap_server, "--bootstrap-server")
    return controller_addresses(config, bootstrap_controller)


def _config(path: Path | None, alternative: str) -> Any:
    from cli.config.load import load_config

    if path is None and not DEFAULT_CONFIG.exists():
        raise CliError(
            f"where is the cluster? Give --config FILE or {alternative} (there is no {DEFAULT_CONFIG} here)",
            status=ExitStatus.USAGE,
        )
    return load_config(path or DEFAULT_CONFIG)


def _parse(text: str, option: str) -> tuple[HostPort, ...]:
    try:
        return tuple(reachable(*parse_host_port(part)) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise CliError(f"{option}: {error}", status=ExitStatus.USAGE) from error


def check_error(code: int, message: str | None, what: str) -> None:
    """Raises CliError for an error code of Kafka's, in words and with its name."""
    if code == 0:
        return
    from wire.protocol.entities import ErrorCode

    try:
        name = ErrorCode(code).name.upper()
    except ValueError:
        name = f"error code {code}"
    raise CliError(f"{what}: {message} ({name})" if message else f"{what}: {name}")
