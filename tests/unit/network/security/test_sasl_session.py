"""What a server answers to SaslHandshake and SaslAuthenticate, and what it logs."""

from typing import Any

import pytest

from kquorum.network.security.plain import PlainError, check_plain, encode_plain
from kquorum.network.security.sasl_server import SaslServerSession, SaslSettings
from kquorum.network.security.sasl_session import SaslAnswer
from kquorum.network.security.scram import keys_of
from kquorum.network.security.scram_client import ScramClient
from kquorum.network.security.scram_server import ScramLookup, ScramUser
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kquorum.wire.messages.sasl_handshake import SaslHandshakeResponse
from kquorum.wire.protocol.apis import ApiKey, message_types
from kquorum.wire.protocol.headers import RequestHeader

SECRET = "alices-secret"
TOLD = "Authentication failed: invalid credentials with SASL mechanism {}"
SCRAM = "SCRAM-SHA-512"


def session(**changes: Any) -> SaslServerSession:
    users = {
        ("user", "alice"): ScramUser(keys_of(SCRAM, SECRET, b"salt", 4096), "User:alice"),
        ("user", "bob"): ScramUser(keys_of(SCRAM, SECRET, b"salt", 4096), "User:bob"),
        ("token", "t"): ScramUser(keys_of(SCRAM, SECRET, b"salt", 4096), "User:alice", True, 5_000),
    }
    scram = ScramLookup(
        user=lambda _, name: users.get(("user", name)),
        token=lambda _, name: users.get(("token", name)),
        pepper=b"x",
    )
    settings: dict[str, Any] = {
        "mechanisms": ("PLAIN", SCRAM),
        "plain_users": {"alice": SECRET},
        "scram": scram,
        "now_ms": lambda: 1_000,
    }
    return SaslServerSession(SaslSettings(**settings | changes))


def shake(of: SaslServerSession, mechanism: str, version: int = 1) -> SaslAnswer:
    return ask(of, ApiKey.SASL_HANDSHAKE, version, {"mechanism": mechanism})


def send(of: SaslServerSession, data: bytes, version: int = 2) -> SaslAnswer:
    return ask(of, ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": data})


def ask(of: SaslServerSession, api_key: ApiKey, version: int, values: dict[str, object]) -> SaslAnswer:
    header = RequestHeader(api_key, version, 7, "client")
    request: Any = message_types(api_key)[0](**values)
    answer = of.handle(header, request)
    assert encode(answer.response, version), "it is what the protocol has"
    assert SECRET not in repr(answer)
    return answer


def token_of(answer: SaslAnswer) -> SaslAuthenticateResponse:
    assert isinstance(answer.response, SaslAuthenticateResponse)
    return answer.response


def log_in(of: SaslServerSession, name: str, password: str = SECRET, *, is_token: bool = False) -> SaslAnswer:
    client = ScramClient(SCRAM, name, password, is_token=is_token)
    first = send(of, client.first())
    return send(of, client.final(token_of(first).auth_bytes))


def test_plain_in_two_requests() -> None:
    it = session()
    assert shake(it, "PLAIN").response == SaslHandshakeResponse(mechanisms=("PLAIN", SCRAM))
    answer = send(it, encode_plain("alice", SECRET))
    assert (answer.principal, answer.is_failure, answer.response.error_code) == ("User:alice", False, 0)


def test_scram_in_three_requests() -> None:
    it = session()
    assert shake(it, SCRAM).principal is None
    answer = log_in(it, "alice")
    assert (answer.principal, answer.is_token_authenticated, answer.session_lifetime_ms) == (
        "User:alice",
        False,
        0,
    )


@pytest.mark.parametrize(
    "data",
    [
        encode_plain("alice", "wrong"),
        encode_plain("unknown", SECRET),
        encode_plain("alice", SECRET + "x"),
        b"bob\0alice\0" + SECRET.encode(),
        b"",
        b"\xff",
        b"alice",
        b"\0alice\0",
        b"\0alice\0" + SECRET.encode() + b"\0",
    ],
)
def test_whatever_is_wrong_with_plain_the_peer_hears_the_same(data: bytes) -> None:
    it = session()
    shake(it, "PLAIN")
    answer = send(it, data)
    assert (answer.is_failure, answer.principal) == (True, None)
    assert answer.response.error_code == 58
    assert token_of(answer).error_message == TOLD.format("PLAIN")


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("unknown", SECRET)])
def test_whatever_is_wrong_with_scram_the_peer_hears_the_same(name: str, password: str) -> None:
    it = session()
    shake(it, SCRAM)
    answer = log_in(it, name, password)
    assert (answer.is_failure, answer.response.error_code) == (True, 58)
    assert token_of(answer).error_message == TOLD.format(SCRAM)
    # The log may know more.
    assert name in answer.reason


def test_a_second_attempt_needs_a_second_handshake() -> None:
    it = session()
    shake(it, "PLAIN")
    assert send(it, encode_plain("alice", "wrong")).is_failure
    assert send(it, encode_plain("alice", SECRET)).response.error_code == 34


def test_an_unknown_mechanism_is_refused_with_the_known_ones() -> None:
    answer = shake(session(), "GSSAPI")
    assert answer.response == SaslHandshakeResponse(
        error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=("PLAIN", SCRAM)
    )
    assert answer.is_failure
    assert "GSSAPI" in answer.reason


def test_a_mechanism_that_is_not_enabled_is_unknown() -> None:
    assert shake(session(mechanisms=(SCRAM,)), "PLAIN").is_failure


def test_tokens_without_a_handshake() -> None:
    answer = send(session(), encode_plain("alice", SECRET))
    assert (answer.response.error_code, answer.is_failure) == (34, True)


def test_a_handshake_of_version_0_would_be_followed_by_raw_tokens() -> None:
    answer = shake(session(), "PLAIN", version=0)
    assert answer.is_failure
    assert "version 0" in answer.reason


def test_names_from_the_peer_cannot_forge_lines_of_the_log() -> None:
    it = session()
    shake(it, SCRAM)
    reason = log_in(it, "x\n12:00:00 all is well" + "y" * 500).reason
    assert "\n" not in reason
    assert len(reason) < 200


# Again, on the same connection (KIP-368)


def test_without_a_limit_no_client_authenticates_again() -> None:
    it = session()
    shake(it, "PLAIN")
    send(it, encode_plain("alice", SECRET))
    for answer in (shake(it, "PLAIN"), send(it, encode_plain("alice", SECRET))):
        assert (answer.response.error_code, answer.is_failure) == (34, False)


def test_with_a_limit_the_client_hears_of_it_and_comes_back() -> None:
    it = session(max_reauth_ms=60_000)
    shake(it, SCRAM)
    answer = log_in(it, "alice")
    assert token_of(answer).session_lifetime_ms == answer.session_lifetime_ms == 60_000
    assert not shake(it, SCRAM).is_failure
    assert log_in(it, "alice").principal == "User:alice"


def test_a_reauthentication_must_be_by_the_same_principal() -> None:
    it = session(max_reauth_ms=60_000)
    shake(it, SCRAM)
    log_in(it, "alice")
    assert shake(it, "PLAIN").is_failure
    shake(it, SCRAM)
    assert log_in(it, "bob").is_failure


def test_a_token_ends_with_its_life() -> None:
    it = session(max_reauth_ms=60_000)
    shake(it, SCRAM)
    answer = log_in(it, "t", is_token=True)
    assert (answer.principal, answer.is_token_authenticated) == ("User:alice", True)
    assert answer.session_lifetime_ms == 4_000


def test_settings_do_not_show_passwords() -> None:
    assert SECRET not in repr(SaslSettings(mechanisms=("PLAIN",), plain_users={"alice": SECRET}))


def test_plain_compares_whole_passwords() -> None:
    assert check_plain(encode_plain("alice", SECRET), {"alice": SECRET}) == "alice"
    assert check_plain(b"alice\0alice\0" + SECRET.encode(), {"alice": SECRET}) == "alice"
    for password in (SECRET[:-1], SECRET + "\u0301", SECRET.upper()):
        with pytest.raises(PlainError, match="wrong password"):
            check_plain(encode_plain("alice", password), {"alice": SECRET})
    with pytest.raises(PlainError):
        check_plain(encode_plain("alice", ""), {"alice": ""})
