"""Reauthentication (KIP-368), tested through the requests of a listener's connection, not only at the session."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from kquorum.network.authentication import Authentication
from kquorum.network.security.distinguished_names import parse_mapping_rules
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.plain import encode_plain
from kquorum.network.security.sasl_server import SaslServerSession, SaslSettings
from kquorum.network.security.sasl_session import SaslAnswer
from kquorum.network.security.scram import keys_of
from kquorum.network.security.scram_client import ScramClient
from kquorum.network.security.scram_server import ScramLookup, ScramUser
from kquorum.network.security.tls import server_context
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kquorum.wire.protocol.apis import ApiKey, message_types
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.certificates import cluster_certificates

SCRAM, SECRET = "SCRAM-SHA-512", "secret"


class Connection:
    def __init__(self) -> None:
        keys = keys_of(SCRAM, SECRET, b"salt", 4096)
        scram = ScramLookup(
            user=lambda _, name: ScramUser(keys, f"User:{name}"), token=lambda *_: None, pepper=b"x"
        )
        settings = SaslSettings(
            mechanisms=("PLAIN", SCRAM),
            plain_users={"alice": SECRET, "bob": SECRET},
            scram=scram,
            max_reauth_ms=60_000,
        )
        security = ListenerSecurity(protocol=2, new_session=lambda: SaslServerSession(settings))
        self.authentication = Authentication(security, None)
        self.now_s = 0.0

    def ask(self, api_key: ApiKey, version: int, values: dict[str, Any]) -> SaslAnswer:
        header = RequestHeader(api_key, version, 1, None)
        request: Any = message_types(api_key)[0](**values)
        answer = self.authentication.handle(header, request, self.now_s)
        assert encode(answer.response, version), "it is what the protocol has"
        return answer

    def shake(self, mechanism: str) -> SaslAnswer:
        return self.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})

    def send(self, data: bytes) -> SaslAnswer:
        return self.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": data})

    def scram(self, name: str) -> SaslAnswer:
        self.shake(SCRAM)
        client = ScramClient(SCRAM, name, SECRET)
        first = self.send(client.first()).response
        assert isinstance(first, SaslAuthenticateResponse)
        return self.send(client.final(first.auth_bytes))

    def plain(self, name: str) -> SaslAnswer:
        self.shake("PLAIN")
        return self.send(encode_plain(name, SECRET))


def test_the_same_principal_by_the_same_mechanism_may_come_back() -> None:
    connection = Connection()
    assert connection.scram("alice").principal == "User:alice"
    connection.now_s = 50.0
    assert connection.scram("alice").principal == "User:alice"
    assert connection.authentication.may_ask(ApiKey.METADATA, 100.0), "the second login has its own minute"
    assert not connection.authentication.may_ask(ApiKey.METADATA, 111.0)


def test_a_reauthentication_as_another_principal_is_refused() -> None:
    connection = Connection()
    connection.scram("alice")
    assert connection.scram("bob").is_failure
    assert connection.authentication.principal == "User:alice"


def test_a_reauthentication_by_another_mechanism_is_refused() -> None:
    """Kafka: SaslServerAuthenticator.ReauthInfo.saslMechanismUnchanged."""
    connection = Connection()
    connection.scram("alice")
    assert connection.shake("PLAIN").is_failure or connection.send(encode_plain("alice", SECRET)).is_failure


@pytest.mark.parametrize("name", ["CN=admin,OU=ops", "CN=admin2"])
def test_a_mapping_rule_must_fit_the_whole_name(name: str) -> None:
    """Else `RULE:CN=admin/admin/` would make an administrator of every user whose name begins so."""
    rule, default = parse_mapping_rules("RULE:CN=admin/admin/,DEFAULT")
    assert rule.apply("CN=admin") == "admin"
    assert rule.apply(name) is None
    assert default.apply(name) == name


def test_a_client_cannot_make_the_server_negotiate_again(tmp_path: Path) -> None:
    cluster_certificates(tmp_path, (1,))
    context = server_context({"ssl.keystore.location": str(tmp_path / "node-1.pem")})
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
