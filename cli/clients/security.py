"""How a command's own connections are protected: `--command-config FILE`, Kafka's client keys in a .properties file.

Each command that asks a cluster takes the option. Controllers and gRPC listeners that are found through `--config`
are asked as their nodes ask each other, with the keys of that config: a user who can read those files can do so anyway.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kquorum.node.config.addresses import HostPort, reachable
from kquorum.node.config.errors import ConfigError, Place, Problem

if TYPE_CHECKING:
    from kquorum.network.security.client_security import ClientSecurity
    from kquorum.node.config.model import ClusterConfig, NodeConfig

OPTION = "--command-config"
# A command with one of these options asks a running cluster.
_ASKING = frozenset({"bootstrap_server", "bootstrap_controller", "grpc"})


@dataclass(slots=True)
class _Choice:
    """Of one run of the command line."""

    file: Path | None = None
    cluster: "ClusterConfig | None" = None
    made: "dict[str, ClientSecurity]" = field(default_factory=dict)
    read: dict[str, str] | None = None


_choice: ContextVar[_Choice] = ContextVar("command_security")


def begin() -> None:
    """A new command line: nothing is known of security yet."""
    _choice.set(_Choice())


def remember_cluster(cluster: "ClusterConfig") -> None:
    """The config by which addresses were found, for what it says of their listeners."""
    _chosen().cluster = cluster


def security_for(address: HostPort) -> "ClientSecurity":
    """For a listener of Kafka's protocol. Raises ConfigError."""
    choice = _chosen()
    # The CLI acts as another controller would, with the node's own keys: its config has no keys of a client.
    for node in choice.cluster.controllers if choice.cluster else ():
        for listener in (*node.listeners, *node.advertised_listeners):
            is_it = reachable(listener.host, listener.port) == address
            if is_it and listener.name in node.controller_listener_names:
                return _of_node(choice, node)
    return _of_file(choice)


def grpc_credentials_for(address: HostPort) -> Any:
    """gRPC's channel credentials; None for a channel without TLS. Raises ConfigError."""
    keys = _grpc_keys(address)
    return None if keys is None else _grpc_credentials(keys, _place_of(_chosen()))


def speaks_grpc_with_tls(address: HostPort) -> bool:
    """Whether the channel to this address has TLS. Raises ConfigError."""
    return _grpc_keys(address) is not None


def _grpc_keys(address: HostPort) -> dict[str, str] | None:
    """Those of the node whose listener it is, else those of the file; None for a channel without TLS."""
    choice = _chosen()
    for node in choice.cluster.nodes if choice.cluster else ():
        listener = node.kquorum_grpc_listener
        if listener is not None and reachable(*listener) == address:
            return None if node.kquorum_grpc_security == "plaintext" else node.security_of("GRPC")
    keys = _file_keys(choice)
    has_tls = keys.get("security.protocol", "").strip().upper() in ("SSL", "SASL_SSL")
    return keys if has_tls else None


def add_option(command: Any) -> None:
    """To a command that asks a cluster; others are left as they are."""
    if any(parameter.name in _ASKING for parameter in command.params):
        command.params.append(_option())


@cache
def _option() -> Any:
    """Typer makes options from a function's signature; this one is that of a command which is never called."""

    def asking(
        command_config: Annotated[
            Path | None,
            typer.Option(
                OPTION,
                envvar="KQUORUM_COMMAND_CONFIG",
                metavar="FILE",
                help="A file of Kafka's client keys (security.protocol, ssl.*, sasl.*), for a secured cluster.",
                expose_value=False,
                callback=_choose,
            ),
        ] = None,
    ) -> None:
        raise AssertionError(command_config)

    lender = typer.Typer(add_completion=False)
    lender.command()(asking)
    return next(option for option in typer.main.get_command(lender).params if option.name == "command_config")


def _choose(value: Path | None) -> None:
    _chosen().file = value


def _chosen() -> _Choice:
    choice = _choice.get(None)
    if choice is None:
        choice = _Choice()
        _choice.set(choice)
    return choice


def _of_node(choice: _Choice, node: "NodeConfig") -> "ClientSecurity":
    from kquorum.network.security.errors import SecurityConfigError
    from kquorum.node.security import controller_client

    made = choice.made.get(f"node {node.node_id}")
    if made is None:
        try:
            made = choice.made[f"node {node.node_id}"] = controller_client(node)
        except SecurityConfigError as error:
            raise ConfigError([Problem(str(error), _place_of(choice))]) from error
    return made


def _of_file(choice: _Choice) -> "ClientSecurity":
    from kquorum.network.security.client_security import client_security
    from kquorum.network.security.errors import SecurityConfigError

    made = choice.made.get(OPTION)
    if made is None:
        try:
            made = choice.made[OPTION] = client_security(_file_keys(choice))
        except SecurityConfigError as error:
            assert choice.file is not None
            raise ConfigError([Problem(str(error), Place(choice.file))]) from error
    return made


def _file_keys(choice: _Choice) -> dict[str, str]:
    """The file is read once, and each doubtful key in it becomes a warning then."""
    from kquorum.cli.clients.client_keys import doubtful_keys
    from kquorum.cli.output import complain

    if choice.read is None:
        choice.read = {} if choice.file is None else _read(choice.file)
        for doubt in doubtful_keys(choice.read):
            complain(f"{choice.file}: {doubt}", style="yellow", label="warning")
    return dict(choice.read)


def _read(file: Path) -> dict[str, str]:
    """Raises ConfigError."""
    from kquorum.node.config.config_file import why_unreadable
    from kquorum.node.config.properties_file import properties_of

    try:
        return {key: value for _, key, value in properties_of(file)}
    except FileNotFoundError as error:
        raise ConfigError([Problem(f"there is no such file ({OPTION})", Place(file))]) from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"the file of {OPTION} cannot be read: {why_unreadable(error)}"
        raise ConfigError([Problem(message, Place(file))]) from error


def _grpc_credentials(keys: dict[str, str], place: Place) -> Any:
    import grpc

    from kquorum.network.security.errors import SecurityConfigError
    from kquorum.network.security.tls import read_tls_files

    try:
        files = read_tls_files(keys)
    except SecurityConfigError as error:
        raise ConfigError([Problem(str(error), place)]) from error
    pair = files.pair
    return grpc.ssl_channel_credentials(
        files.trusted, pair.key if pair else None, pair.certificates if pair else None
    )


def _place_of(choice: _Choice) -> Place:
    path = choice.cluster.path if choice.cluster is not None else choice.file
    return Place(path or Path("--command-config"))
