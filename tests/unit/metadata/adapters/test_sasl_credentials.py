"""Users and delegation tokens of the metadata log, as SCRAM looks them up."""

from dataclasses import replace

import pytest
from immutables import Map

from kquorum.metadata.adapters.sasl_credentials import ImageCredentials
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import SecurityDelta, SecurityImage
from kquorum.network.security.scram import ScramError, parse_server_first
from kquorum.network.security.scram_client import ScramClient
from kquorum.network.security.scram_server import ScramLookup, ScramServer, ScramUser
from kquorum.network.security.unknown_user_credentials import AS_KAFKA
from kquorum.wire.metadata_records.security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kquorum.wire.salt_forms import SaltForm, form_of
from tests.support.calls import calls_of
from tests.support.metadata.sasl_credentials import MECHANISMS, NOW_MS, SECRET_KEY, image, password_of


class World:
    def __init__(self, token_secret_key: str | None = SECRET_KEY) -> None:
        self.image: MetadataImage | None = image()
        self.now_ms = NOW_MS
        self.credentials = ImageCredentials(lambda: self.image, lambda: self.now_ms, token_secret_key)

    def log_in(self, mechanism: str, name: str, password: str, *, is_token: bool = False) -> ScramUser:
        server = ScramServer(mechanism, self.credentials.lookup(b"pepper"))
        client = ScramClient(mechanism, name, password, is_token=is_token)
        client.check(server.step(client.final(server.step(client.first()))))
        assert server.authenticated is not None
        return server.authenticated


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_of_the_log(mechanism: str) -> None:
    user = World().log_in(mechanism, "alice", "alices")
    assert (user.principal, user.is_token_authenticated, user.expires_at_ms) == ("User:alice", False, None)


def test_a_user_who_is_removed_is_out_at_once() -> None:
    world = World()
    world.log_in("SCRAM-SHA-256", "alice", "alices")
    world.image = image(scram=Map())
    with pytest.raises(ScramError, match="no such user"):
        world.log_in("SCRAM-SHA-256", "alice", "alices")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_token_with_its_hmac(mechanism: str) -> None:
    world = World()
    for _ in range(2):  # made, then remembered
        user = world.log_in(mechanism, "a-token", password_of("a-token"), is_token=True)
        assert (user.principal, user.is_token_authenticated, user.expires_at_ms) == (
            "User:alice",
            True,
            5_000,
        )


def test_a_token_that_has_expired_or_is_gone_or_was_never_there() -> None:
    world = World()
    world.log_in("SCRAM-SHA-256", "a-token", password_of("a-token"), is_token=True)
    with pytest.raises(ScramError, match="no such user"):
        world.log_in("SCRAM-SHA-256", "other", password_of("other"), is_token=True)
    with pytest.raises(ScramError, match="wrong password"):
        world.log_in("SCRAM-SHA-256", "a-token", password_of("other"), is_token=True)
    world.now_ms = 5_001
    with pytest.raises(ScramError, match="no such user"):
        world.log_in("SCRAM-SHA-256", "a-token", password_of("a-token"), is_token=True)
    world.now_ms, world.image = NOW_MS, image(delegation_tokens=Map())
    with pytest.raises(ScramError, match="no such user"):
        world.log_in("SCRAM-SHA-256", "a-token", password_of("a-token"), is_token=True)


def test_without_the_secret_key_there_are_no_tokens() -> None:
    with pytest.raises(ScramError, match="no such user"):
        World(None).log_in("SCRAM-SHA-256", "a-token", password_of("a-token"), is_token=True)


def told(world: World, name: str, lookup: ScramLookup, *, is_token: bool = False) -> tuple[bytes, int]:
    client = ScramClient(MECHANISMS[0], name, "any", is_token=is_token)
    first = parse_server_first(ScramServer(MECHANISMS[0], lookup).step(client.first()))
    return first.salt, first.iterations


def test_unknown_users_look_like_existing_users() -> None:
    world = World()
    lookup = world.credentials.lookup(b"pepper")
    salt, iterations = told(world, "unknown", lookup)
    assert (len(salt), iterations) == (len(b"salt"), 4096)
    assert told(world, "unknown", lookup) == (salt, iterations)
    scram = image().security.scram
    for user, credential in scram.items():
        scram = scram.set(user, replace(credential, salt=b"0" * 40, iterations=8192))
    world.image = image(scram=scram)
    salt, iterations = told(world, "unknown", lookup)
    assert (len(salt), iterations) == (40, 8192)
    world.image = image(scram=Map())
    assert form_of(*told(world, "unknown", lookup)) == AS_KAFKA
    world.image = None
    assert form_of(*told(world, "unknown", lookup)) == AS_KAFKA


def test_tokens_that_there_are_not_look_like_those_there_are() -> None:
    world = World()
    lookup = world.credentials.lookup(b"pepper")
    known, unknown = (told(world, token_id, lookup, is_token=True) for token_id in ("a-token", "other"))
    assert (len(known[0]), known[1]) == (len(unknown[0]), unknown[1])
    assert known != unknown


def test_before_the_first_image_there_are_no_users() -> None:
    world = World()
    world.image = None
    with pytest.raises(ScramError, match="no such user"):
        world.log_in("SCRAM-SHA-256", "alice", "alices")


def test_an_unknown_users_login_does_not_iterate_over_all_users() -> None:
    """The forms of their salts are counted as records of users are replayed, independent of logins."""

    def record(number: int, salt: bytes = b"salt") -> UserScramCredentialRecord:
        return UserScramCredentialRecord(
            name=f"user-{number}", mechanism=1, salt=salt, stored_key=b"", server_key=b"", iterations=4096
        )

    delta = SecurityDelta(SecurityImage())
    for number in range(1_000):
        delta.replay_user_scram_credential(record(number))
    delta.replay_user_scram_credential(record(1, b"another salt"))
    delta.replay_remove_user_scram_credential(RemoveUserScramCredentialRecord(name="user-2", mechanism=1))
    built = delta.apply()
    assert built.scram_forms == SecurityImage(scram=built.scram).scram_forms
    assert dict(built.scram_forms[1]) == {SaltForm(4): 998, SaltForm(12): 1}

    world = World()
    world.image = replace(image(), security=built)
    lookup = world.credentials.lookup(b"pepper")
    assert 0 < calls_of(lambda: lookup.user_form("SCRAM-SHA-256", "unknown")) < 100
