"""From a node's keys to what its listeners ask of who logs in."""

from pathlib import Path
from typing import Any

import pytest

from kquorum.metadata.image.image import MetadataImage
from kquorum.network.api_versions import NO_FEATURES
from kquorum.network.request_times import RequestTimes
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.sasl_session import SaslAnswer
from kquorum.network.security.scram import keys_of
from kquorum.network.security.scram_client import ScramClient
from kquorum.network.security.scram_server import ScramLookup, ScramServer, ScramUser
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.node.security import image_lookup, listener_security
from kquorum.node.servers import kafka_servers
from kquorum.wire.protocol.apis import ApiKey, message_types
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.config_files import SMALL

SCRAM, SECRET = "SCRAM-SHA-512", "secret"
MAP = '"listener.security.protocol.map" = "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT"'
MECHANISMS = f'"sasl.enabled.mechanisms" = "{SCRAM}"'
NOW_MS = 1_700_000_000_000
TOKENS = ScramLookup(
    user=lambda *_: None,
    token=lambda *_: ScramUser(keys_of(SCRAM, SECRET, b"salt", 4096), "User:a", True, NOW_MS + 7_000),
    pepper=b"x",
)


def node(tmp_path: Path, *lines: str) -> NodeConfig:
    path = tmp_path / "quorum.toml"
    path.write_text(SMALL.replace("[defaults]\n", "\n".join(("[defaults]", MAP, MECHANISMS, *lines, ""))))
    return load_config(path).node(11)


def log_in_with_a_token(security: ListenerSecurity) -> SaslAnswer:
    assert security.new_session is not None
    session = security.new_session()
    client = ScramClient(SCRAM, "t", SECRET, is_token=True)

    def ask(api_key: ApiKey, version: int, values: dict[str, Any]) -> SaslAnswer:
        request: Any = message_types(api_key)[0](**values)
        return session.handle(RequestHeader(api_key, version, 1, None), request)

    ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": SCRAM})
    first: Any = ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": client.first()}).response
    return ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": client.final(first.auth_bytes)})


def test_what_is_not_said_is_kafkas(tmp_path: Path) -> None:
    security = listener_security(node(tmp_path), "PLAINTEXT")
    assert (security.failed_authentication_delay_ms, security.max_unauthenticated_bytes) == (100, 524_288)


def test_delay_and_size_are_those_of_the_config(tmp_path: Path) -> None:
    lines = ('"connection.failed.authentication.delay.ms" = 1500', '"sasl.server.max.receive.size" = 4096')
    security = listener_security(node(tmp_path, *lines), "PLAINTEXT")
    assert (security.failed_authentication_delay_ms, security.max_unauthenticated_bytes) == (1500, 4096)


@pytest.mark.parametrize(("max_reauth_ms", "lifetime_ms"), [(0, 7_000), (60_000, 7_000), (3_000, 3_000)])
def test_a_login_lasts_as_the_config_and_the_token_have_it(
    tmp_path: Path, max_reauth_ms: int, lifetime_ms: int
) -> None:
    config = node(tmp_path, f'"connections.max.reauth.ms" = {max_reauth_ms}')
    answer = log_in_with_a_token(listener_security(config, "PLAINTEXT", TOKENS, lambda: NOW_MS))
    assert answer.session_lifetime_ms == lifetime_ms


def test_the_servers_of_a_node_go_by_its_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquorum.node.servers.image_lookup", lambda *_: TOKENS)
    config = node(tmp_path)
    [server] = kafka_servers(
        config,
        config.broker_listeners,
        lambda *_: None,
        {},
        lambda: NO_FEATURES,
        image=MetadataImage.empty,
        now_ms=lambda: NOW_MS,
        times=RequestTimes(),
    )
    assert log_in_with_a_token(server._state.security).session_lifetime_ms == 7_000


def salt_of(config: NodeConfig, name: str) -> bytes:
    lookup = image_lookup(config, MetadataImage.empty, lambda: NOW_MS)
    told = ScramServer(SCRAM, lookup, lambda: "n").step(ScramClient(SCRAM, name, "x").first())
    return told.partition(b",s=")[2]


def test_nodes_with_a_shared_secret_send_an_unknown_user_the_same_salt(tmp_path: Path) -> None:
    sharing = node(tmp_path, '"delegation.token.secret.key" = "shared"')
    assert salt_of(sharing, "unknown") == salt_of(sharing, "unknown")
    assert salt_of(sharing, "unknown") != salt_of(sharing, "someone-else")
    alone = node(tmp_path)
    assert salt_of(alone, "unknown") != salt_of(alone, "unknown"), "each call stands for another node"
