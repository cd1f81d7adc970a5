"""How the listeners and the connections of a node are protected, as its config has it."""

import secrets
from collections.abc import Callable, Iterator

from kquorum.metadata.adapters.sasl_credentials import ImageCredentials
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.security.client_security import ClientSecurity, client_security, login_entry
from kquorum.network.security.distinguished_names import (
    MappingRule,
    parse_mapping_rules,
    principal_of_certificate,
)
from kquorum.network.security.errors import SecurityConfigError
from kquorum.network.security.listener_security import UNSECURED, ListenerSecurity
from kquorum.network.security.names import MECHANISMS, PLAIN, PROTOCOLS, SCRAM_HASHES, WITH_SASL, WITH_TLS
from kquorum.network.security.reloading import reloading_context
from kquorum.network.security.sasl_server import SaslServerSession, SaslSettings
from kquorum.network.security.scram_server import ScramLookup
from kquorum.network.security.tls import http2_context, server_context
from kquorum.node.config.errors import ConfigError, Place, Problem
from kquorum.node.config.exposure import exposure_problems
from kquorum.node.config.model import ClusterConfig, NodeConfig
from kquorum.node.config.security_keys import (
    CONTROLLER_MECHANISM,
    GRPC,
    INTER_BROKER_MECHANISM,
    JAAS,
    LISTENER_PREFIX,
    MAX_REAUTH,
    MECHANISMS_KEY,
)
from kquorum.node.endpoints import inter_broker_listener

_NO_USERS = ScramLookup(user=lambda *_: None, token=lambda *_: None, pepper=b"")
_MAP = "listener.security.protocol.map"
_MAPPING_RULES = "ssl.principal.mapping.rules"
_DEFAULT_FAILED_AUTHENTICATION_DELAY_MS = 100
_DEFAULT_MAX_UNAUTHENTICATED_BYTES = 524_288


def listener_security(
    config: NodeConfig,
    name: str,
    scram: ScramLookup = _NO_USERS,
    now_ms: Callable[[], int] = lambda: 0,
) -> ListenerSecurity:
    """Of the listener of this name. Raises SecurityConfigError."""
    protocol = PROTOCOLS[config.protocol_of(name)]
    keys = config.security_of(name)
    context = reloading_context(f"listener {name}", keys, server_context) if protocol in WITH_TLS else None
    session = None
    if protocol in WITH_SASL:
        settings = _sasl_settings(keys, scram, now_ms)
        session = lambda: SaslServerSession(settings)  # noqa: E731
    return ListenerSecurity(
        protocol=protocol,
        ssl_context=context,
        new_session=session,
        principal_of_certificate=certificate_names(config, name),
        failed_authentication_delay_ms=_number(
            keys, "connection.failed.authentication.delay.ms", _DEFAULT_FAILED_AUTHENTICATION_DELAY_MS
        ),
        max_unauthenticated_bytes=_number(
            keys, "sasl.server.max.receive.size", _DEFAULT_MAX_UNAUTHENTICATED_BYTES
        ),
    )


def image_lookup(
    config: NodeConfig, image: Callable[[], MetadataImage | None], now_ms: Callable[[], int]
) -> ScramLookup:
    """Users and tokens of the metadata log. Salt and iterations for unknown users differ between nodes unless the nodes
    share the secret key of delegation tokens."""
    secret_key = config.delegation_token_secret_key
    pepper = secret_key.encode() if secret_key else secrets.token_bytes(32)
    return ImageCredentials(image, now_ms, secret_key).lookup(pepper)


def controller_client(config: NodeConfig) -> ClientSecurity:
    """For this node's connections to controllers: their listener's protocol, with the keys for it. Raises
    SecurityConfigError."""
    name = config.controller_listener_names[0]
    keys = config.security_of(name)
    keys["security.protocol"] = config.protocol_of(name)
    mechanism = keys.get(CONTROLLER_MECHANISM, "").strip().upper()
    if PROTOCOLS[config.protocol_of(name)] in WITH_SASL:
        _check_controller_mechanism(mechanism)
        keys["sasl.mechanism"] = mechanism
        keys[JAAS] = _jaas(keys, mechanism)
    return client_security(keys)


def inter_broker_client(config: NodeConfig) -> ClientSecurity:
    """For this broker's connections to the leaders that it follows: their listener's protocol, with the keys for it.
    Raises SecurityConfigError."""
    name = inter_broker_listener(config)
    keys = config.security_of(name)
    protocol = config.protocol_of(name)
    mechanism = keys.get(INTER_BROKER_MECHANISM, "").strip().upper()
    if PROTOCOLS[protocol] in WITH_SASL and not mechanism:
        # `cannot_log_in` says what comes of it.
        protocol = "SSL" if PROTOCOLS[protocol] in WITH_TLS else "PLAINTEXT"
    elif PROTOCOLS[protocol] in WITH_SASL:
        if mechanism not in MECHANISMS:
            raise SecurityConfigError(
                INTER_BROKER_MECHANISM, f"{mechanism} cannot be used: there are {', '.join(MECHANISMS)}"
            )
        keys["sasl.mechanism"] = mechanism
        keys[JAAS] = _jaas(keys, mechanism)
    keys["security.protocol"] = protocol
    return client_security(keys)


def cannot_log_in(config: NodeConfig) -> str | None:
    """Why this broker cannot fetch from the others; None if it can. A config of one broker, or of brokers whose topics
    have one replica each, works without."""
    name = inter_broker_listener(config)
    has_mechanism = bool(config.security_of(name).get(INTER_BROKER_MECHANISM, "").strip())
    if PROTOCOLS[config.protocol_of(name)] not in WITH_SASL or has_mechanism:
        return None
    return (
        f"listener {name} ({config.protocol_of(name)}) wants a login, and this broker has none: it cannot fetch from "
        f"other brokers, and topics with several replicas have one in sync: set {INTER_BROKER_MECHANISM} and the login "
        f"in listener.name.{name.lower()}.<mechanism>.{JAAS}, or name a listener without SASL in "
        "inter.broker.listener.name"
    )


def certificate_names(config: NodeConfig, name: str) -> Callable[[bytes | None], str]:
    """Principals for client certificates at the listener of this name. Raises SecurityConfigError."""
    return principal_of_certificate(_mapping_rules(config.security_of(name)))


def grpc_security(config: NodeConfig) -> ListenerSecurity:
    """Of the gRPC listener: with TLS by the keys for all listeners, or those for one named `grpc`. Raises
    SecurityConfigError."""
    if config.kquorum_grpc_listener is None or config.kquorum_grpc_security == "plaintext":
        return UNSECURED
    context = reloading_context("kquorum.grpc.listener", config.security_of(GRPC), http2_context)
    return ListenerSecurity(protocol=PROTOCOLS["SSL"], ssl_context=context)


def check_security(cluster: ClusterConfig, config: NodeConfig) -> None:
    """Raises ConfigError, with all that is wrong, before anything of the node is started."""
    problems = list(_problems(config))
    if problems:
        places = _places(cluster, config)
        raise ConfigError(Problem(message, places(key, name)) for key, message, name in problems)


def _problems(config: NodeConfig) -> Iterator[tuple[str, str, str | None]]:
    """(key, message, listener that it is about)"""
    for key, message in exposure_problems(config):
        yield key, f"node {config.node_id}: {message}", None
    for listener in config.listeners:
        try:
            listener_security(config, listener.name)
        except SecurityConfigError as error:
            yield error.key, _told(config, listener.name, error), listener.name
    try:
        grpc_security(config)
    except SecurityConfigError as error:
        yield error.key, f"node {config.node_id}, kquorum.grpc.listener: {error}", GRPC
    clients = [(config.controller_listener_names[0], controller_client)]
    if config.is_broker:
        clients.append((inter_broker_listener(config), inter_broker_client))
    for name, client in clients:
        try:
            client(config)
        except SecurityConfigError as error:
            yield error.key, _told(config, name, error), name


def _told(config: NodeConfig, name: str, error: SecurityConfigError) -> str:
    return f"node {config.node_id}, listener {name} ({config.protocol_of(name)}): {error}"


def _places(cluster: ClusterConfig, config: NodeConfig) -> Callable[[str, str | None], Place]:
    """Where a key is written: that of the listener before that of all."""
    from kquorum.node.config.load import read_raw

    nodes = [
        node
        for node in read_raw(cluster.path).nodes
        if (node_id := node.keys.get("node.id")) is not None and str(node_id.value) == str(config.node_id)
    ]

    def place(key: str, listener: str | None) -> Place:
        of_listener = f"{LISTENER_PREFIX}{(listener or '').lower()}.{key}"
        found = [
            node.keys[each].place for node in nodes for each in (of_listener, key, _MAP) if each in node.keys
        ]
        return found[0] if found else Place(cluster.path)

    return place


def _sasl_settings(keys: dict[str, str], scram: ScramLookup, now_ms: Callable[[], int]) -> SaslSettings:
    names = tuple(name.strip().upper() for name in keys.get(MECHANISMS_KEY, "").split(",") if name.strip())
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown or not names:
        said = f"{unknown[0]} cannot be used" if unknown else "it must say how clients may log in"
        raise SecurityConfigError(MECHANISMS_KEY, f"{said}: there are {', '.join(MECHANISMS)}")
    users = login_entry(f"plain.{JAAS}", _jaas(keys, PLAIN), PLAIN).users if PLAIN in names else {}
    return SaslSettings(
        mechanisms=names,
        plain_users=users,
        scram=scram,
        max_reauth_ms=_number(keys, MAX_REAUTH, 0),
        max_reauth_ms_by_mechanism={
            name: int(keys[key]) for name in names if (key := f"{name.lower()}.{MAX_REAUTH}") in keys
        },
        now_ms=now_ms,
    )


def _check_controller_mechanism(mechanism: str) -> None:
    if mechanism in SCRAM_HASHES:
        message = (
            f"{mechanism} cannot be used among controllers: its credentials are in the log, which they could not read "
            "before they have let each other in; use PLAIN, or SSL with ssl.client.auth=required"
        )
        raise SecurityConfigError(CONTROLLER_MECHANISM, message)
    if mechanism != PLAIN:
        said = f"{mechanism} cannot be used" if mechanism else "it must say how nodes log in to controllers"
        raise SecurityConfigError(CONTROLLER_MECHANISM, f"{said}: PLAIN can")


def _jaas(keys: dict[str, str], mechanism: str) -> str:
    return keys.get(f"{mechanism.lower()}.{JAAS}") or keys.get(JAAS, "")


def _mapping_rules(keys: dict[str, str]) -> tuple[MappingRule, ...]:
    try:
        return parse_mapping_rules(keys.get(_MAPPING_RULES, ""))
    except ValueError as error:
        raise SecurityConfigError(_MAPPING_RULES, str(error)) from None


def _number(keys: dict[str, str], key: str, default: int) -> int:
    return int(keys.get(key, default))
