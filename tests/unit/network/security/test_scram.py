"""SCRAM: the examples of RFC 5802's successor, and what an attacker may try."""

import base64

import pytest

from kquorum.network.security.scram import (
    MAX_MESSAGE_BYTES,
    ClientFirst,
    ScramError,
    ScramKeys,
    decode_name,
    encode_name,
    keys_of,
    parse_client_final,
    parse_client_first,
    parse_server_first,
)
from kquorum.network.security.scram_client import ScramClient
from kquorum.network.security.scram_server import ScramLookup, ScramServer, ScramUser

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "pencil"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def lookup(
    mechanism: str = "SCRAM-SHA-256", iterations: int = 4096, pepper: bytes = b"pepper"
) -> ScramLookup:
    users = {"user": ScramUser(keys_of(mechanism, PASSWORD, SALT, iterations), "User:user")}
    tokens = {
        "a-token": ScramUser(keys_of(mechanism, "its hmac", SALT, iterations), "User:owner", True, 1000),
    }
    return ScramLookup(
        user=lambda _, name: users.get(name), token=lambda _, name: tokens.get(name), pepper=pepper
    )


def exchange(client: ScramClient, server: ScramServer) -> ScramUser:
    answer = server.step(client.first())
    client.check(server.step(client.final(answer)))
    assert server.authenticated is not None
    return server.authenticated


def test_the_example_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", PASSWORD, make_nonce=lambda: "rOprNGfwEbeRWgbNEkqO")
    server = ScramServer("SCRAM-SHA-256", lookup(), make_nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    first = server.step(client.first())
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert first == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = client.final(first)
    assert final == b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    last = server.step(final)
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    client.check(last)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password_is_accepted(mechanism: str) -> None:
    user = exchange(ScramClient(mechanism, "user", PASSWORD), ScramServer(mechanism, lookup(mechanism)))
    assert (user.principal, user.is_token_authenticated) == ("User:user", False)


def test_a_token_makes_its_owner() -> None:
    client = ScramClient("SCRAM-SHA-256", "a-token", "its hmac", is_token=True)
    assert b",tokenauth=true" in client.first()
    user = exchange(client, ScramServer("SCRAM-SHA-256", lookup()))
    assert (user.principal, user.is_token_authenticated, user.expires_at_ms) == ("User:owner", True, 1000)


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    for name, password, is_token in (("a-token", "its hmac", False), ("user", PASSWORD, True)):
        client = ScramClient("SCRAM-SHA-256", name, password, is_token=is_token)
        with pytest.raises(ScramError, match="no such user"):
            exchange(client, ScramServer("SCRAM-SHA-256", lookup()))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_fails_only_at_the_proof(mechanism: str) -> None:
    with pytest.raises(ScramError, match="wrong password"):
        exchange(ScramClient(mechanism, "user", "pen"), ScramServer(mechanism, lookup(mechanism)))


def test_an_unknown_user_is_led_on_like_a_known_one() -> None:
    """Until the proof there is nothing to tell one from the other: a salt that stays, and iterations."""
    firsts = []
    for _ in range(2):
        client = ScramClient("SCRAM-SHA-256", "unknown", "any")
        server = ScramServer("SCRAM-SHA-256", lookup())
        first = parse_server_first(server.step(client.first()))
        firsts.append((first.salt, first.iterations))
        with pytest.raises(ScramError):
            server.step(client.final(first.text.encode()))
        assert server.authenticated is None
    assert firsts[0] == firsts[1]
    assert firsts[0][1] == 4096
    other = ScramServer("SCRAM-SHA-256", lookup(pepper=b"other"))
    assert parse_server_first(other.step(b"n,,n=unknown,r=x")).salt != firsts[0][0]


def test_no_proof_fits_the_keys_of_an_unknown_user() -> None:
    """Not even the one that makes the all-zero keys come out."""
    server = ScramServer("SCRAM-SHA-256", lookup())
    server.step(b"n,,n=unknown,r=abc")
    nonce = server._nonce
    with pytest.raises(ScramError, match="no such user"):
        server.step(f"c=biws,r={nonce},p={base64.b64encode(bytes(32)).decode()}".encode())


def test_a_replayed_proof_meets_another_nonce() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", PASSWORD, make_nonce=lambda: "mine")
    first_server = ScramServer("SCRAM-SHA-256", lookup())
    final = client.final(first_server.step(client.first()))
    first_server.step(final)
    second_server = ScramServer("SCRAM-SHA-256", lookup())
    second_server.step(client.first())
    with pytest.raises(ScramError, match="another nonce"):
        second_server.step(final)


def test_an_exchange_is_good_for_one_attempt() -> None:
    server = ScramServer("SCRAM-SHA-256", lookup())
    client = ScramClient("SCRAM-SHA-256", "user", "wrong")
    final = client.final(server.step(client.first()))
    with pytest.raises(ScramError, match="wrong password"):
        server.step(final)
    with pytest.raises(ScramError, match="over"):
        server.step(final)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "begin"),
        (b"\xff\xfe", "UTF-8"),
        (b"n,,", "attributes"),
        (b"n,,n=user", "nonce"),
        (b"n,,n=user,r=", "nonce"),
        (b"n,,r=x,n=user", "user name"),
        (b"p=tls-unique,,n=user,r=x", "channel binding"),
        (b"n,a=admin,n=user,r=x", "itself"),
        (b"n,,n=us=er,r=x", "RFC 5802"),
        (b"x,,n=user,r=x", "begin"),
        (b"n,,n=user,r=x" + b",x=" * 63, "more than 64 attributes"),
    ],
)
def test_first_messages_that_are_none(data: bytes, why: str) -> None:
    with pytest.raises(ScramError, match=why):
        ScramServer("SCRAM-SHA-256", lookup()).step(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"c=biws",
        b"c=biws,r=NONCE",
        b"c=eSws,r=NONCE",
        b"r=NONCE,c=biws,p=AAAA",
        b"c=biws,r=NONCE,p=%%%",
        b"c=cD10bHMsLA==,r=NONCE,p=AAAA",
        b"c=biws,r=NONCE,p=AAAA",
        b"c=biws,r=,p=AAAA",
    ],
)
def test_final_messages_that_are_none(data: bytes) -> None:
    server = ScramServer("SCRAM-SHA-256", lookup())
    server.step(b"n,,n=user,r=abc")
    with pytest.raises(ScramError):
        server.step(data.replace(b"NONCE", server._nonce.encode()))
    assert server.authenticated is None


def test_a_client_does_not_trust_every_server() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", PASSWORD, make_nonce=lambda: "mine")
    for message, why in (
        (b"r=other,s=AAAA,i=4096", "nonce"),
        (b"r=mine,s=AAAA,i=4096", "nonce"),
        (b"r=mine2,s=AAAA,i=1", "iterations"),
        (b"r=mine2,s=AAAA,i=99999999", "iterations"),
        (b"r=mine2,s=AAAA,i=99999999999999999999", "iterations"),
        (b"r=mine2,s=AAAA,i=x", "iterations"),
        (b"r=mine2,s=AAAA", "lacks"),
        (b"e=other-error", "refuses"),
    ):
        with pytest.raises(ScramError, match=why):
            client.final(message)
    client.final(b"r=mine2,s=AAAA,i=4096")
    with pytest.raises(ScramError, match="could not prove"):
        client.check(b"v=AAAA")


def test_a_credential_with_too_few_iterations_is_refused() -> None:
    with pytest.raises(ScramError, match="iterations"):
        ScramServer("SCRAM-SHA-256", lookup(iterations=1000)).step(b"n,,n=user,r=abc")


@pytest.mark.parametrize("name", ["plain", "a,b", "a=b", "=,=2C", "ü"])
def test_names_are_encoded_as_the_rfc_has_it(name: str) -> None:
    assert decode_name(encode_name(name)) == name
    first = parse_client_first(ScramClient("SCRAM-SHA-256", name, "x").first())
    assert first.username == name


def test_an_authorization_id_must_be_in_the_final_message_too() -> None:
    first = parse_client_first(b"n,a=user,n=user,r=abc")
    assert first == ClientFirst("user", "abc", "n=user,r=abc", "user", {}, "n,a=user,")
    with pytest.raises(ScramError, match="channel binding"):
        parse_client_final(b"c=biws,r=abc,p=AAAA", first)
    parse_client_final(b"c=" + base64.b64encode(b"n,a=user,") + b",r=abc,p=AAAA", first)


@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=user,", "y,a=user,"])
def test_the_final_message_repeats_the_header_that_was_sent(header: str) -> None:
    """RFC 5802, section 7: `c=` is what the first message began with, and not another header that would do."""
    first = parse_client_first(f"{header}n=user,r=abc".encode())
    for sent in ("n,,", "y,,", "n,a=user,", "y,a=user,", "n,a=bob,", ""):
        final = b"c=" + base64.b64encode(sent.encode()) + b",r=abc,p=AAAA"
        if sent == header:
            parse_client_final(final, first)
        else:
            with pytest.raises(ScramError, match="channel binding"):
                parse_client_final(final, first)


def test_keys_are_not_shown() -> None:
    keys = ScramKeys(salt=b"ssss", stored_key=b"kkkk", server_key=b"vvvv", iterations=4096)
    assert repr(keys) == "ScramKeys(iterations=4096)"


def test_a_message_has_some_kilobytes_at_most() -> None:
    """Half a MiB was kept in several copies for each connection, before any login."""
    message = "n,,n=user,r=" + "x" * (MAX_MESSAGE_BYTES - len("n,,n=user,r="))
    assert parse_client_first(message.encode()).username == "user"
    with pytest.raises(ScramError, match="4097 bytes; 4096 are the most"):
        parse_client_first(message.encode() + b"x")
    with pytest.raises(ScramError, match="are the most"):
        parse_client_final(bytes(MAX_MESSAGE_BYTES + 1), parse_client_first(message.encode()))
