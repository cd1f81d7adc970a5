"""AlterUserScramCredentials and DescribeUserScramCredentials (KIP-554)."""

import base64
import hashlib
import logging
from typing import Any

import pytest

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.scram import describe_user_scram_credentials
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.security import ScramUser
from kquorum.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from tests.support.api_calls import Values, read_answer, request_of
from tests.support.controller_world import World, at_level, kinds
from tests.support.sliced_answers import whole

SHA_256, SHA_512 = 1, 2
SALT, SALTED = b"salt-of-a-test", b"salted-password-of-a-test"


def upsertion(name: str, mechanism: int = SHA_256, **changes: Any) -> dict[str, Any]:
    values = {"iterations": 4096, "salt": SALT, "salted_password": SALTED}
    return {"name": name, "mechanism": mechanism, **values, **changes}


def deletion(name: str, mechanism: int = SHA_256) -> dict[str, Any]:
    return {"name": name, "mechanism": mechanism}


def alter(world: World, *changes: dict[str, Any]) -> dict[str, Values]:
    """Upsertions are those with a salt."""
    answer = world.ask(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        deletions=[each for each in changes if "salt" not in each],
        upsertions=[each for each in changes if "salt" in each],
    )
    results = {each.user: each for each in answer.results}
    assert len(results) == len(answer.results), "each user has one result"
    return results


def codes(world: World, *changes: dict[str, Any]) -> dict[str, str]:
    return {name: result.error_code.name for name, result in alter(world, *changes).items()}


def credentials(world: World) -> set[ScramUser]:
    return set(world.controller.committed_image.security.scram)


def ready_world(*names: str) -> World:
    world = World().lead()
    world.commit()
    if names:
        alter(world, *map(upsertion, names))
    return world


def test_the_keys_are_those_of_the_rfc() -> None:
    """RFC 7677's example: user "user", password "pencil"."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    world = ready_world()
    end = world.raft.log_end_offset
    alter(world, upsertion("user", salt=salt, salted_password=salted))
    (record,) = [each for each in world.raft.records(end) if isinstance(each, UserScramCredentialRecord)]
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("user", SHA_256, salt, 4096)
    assert base64.b64encode(record.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(record.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_a_mechanism_has_keys_of_its_own_length() -> None:
    world = ready_world()
    alter(world, upsertion("alice", SHA_512))
    credential = world.controller.committed_image.security.scram[ScramUser(SHA_512, "alice")]
    assert (len(credential.stored_key), len(credential.server_key)) == (64, 64)


def test_users_are_set_replaced_and_removed_in_one_batch() -> None:
    world = ready_world("alice", "bob")
    end = world.raft.log_end_offset
    results = codes(world, deletion("alice"), upsertion("bob", iterations=8192), upsertion("carol"))
    assert results == {"alice": "none", "bob": "none", "carol": "none"}
    assert kinds(world, end) == ["RemoveUserScramCredentialRecord", *["UserScramCredentialRecord"] * 2]
    assert credentials(world) == {ScramUser(SHA_256, "bob"), ScramUser(SHA_256, "carol")}
    bob = world.controller.committed_image.security.scram[ScramUser(SHA_256, "bob")]
    assert bob.iterations == 8192


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (upsertion("", SHA_256), "unacceptable_credential", "Username must not be empty"),
        (deletion("", SHA_256), "unacceptable_credential", "Username must not be empty"),
        (upsertion("a", 0), "unsupported_sasl_mechanism", "Unknown SCRAM mechanism"),
        (deletion("a", 3), "unsupported_sasl_mechanism", "Unknown SCRAM mechanism"),
        (upsertion("a", iterations=4095), "unacceptable_credential", "Too few iterations"),
        (upsertion("a", iterations=-1), "unacceptable_credential", "Too few iterations"),
        (upsertion("a", iterations=16_385), "unacceptable_credential", "Too many iterations"),
        (upsertion("a", salted_password=b""), "unacceptable_credential", "must not be empty"),
        (deletion("a"), "resource_not_found", "does not exist"),
        (deletion("alice", SHA_512), "resource_not_found", "does not exist"),
    ],
)
def test_what_cannot_be(change: dict[str, Any], code: str, words: str) -> None:
    world = ready_world("alice")
    end = world.raft.log_end_offset
    result = alter(world, change, upsertion("bob"))
    assert result[change["name"]].error_code.name == code
    assert words in result[change["name"]].error_message
    assert result["bob"].error_code is ErrorCode.none, "users fail alone"
    assert kinds(world, end) == ["UserScramCredentialRecord"]


@pytest.mark.parametrize("iterations", [4096, 16_384])
def test_the_bounds_of_iterations_belong_to_it(iterations: int) -> None:
    assert codes(ready_world(), upsertion("a", iterations=iterations)) == {"a": "none"}


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion("alice"), upsertion("alice")),
        (upsertion("alice"), upsertion("alice", SHA_512)),
        (deletion("alice"), deletion("alice")),
        (deletion("alice"), upsertion("alice")),
        (deletion("alice"), upsertion("alice", iterations=1)),
        (upsertion("alice"), upsertion("alice"), upsertion("alice")),
    ],
)
def test_a_user_listed_twice_is_not_altered(changes: tuple[dict[str, Any], ...]) -> None:
    world = ready_world("alice")
    end = world.raft.log_end_offset
    assert codes(world, *changes, upsertion("bob")) == {"alice": "duplicate_resource", "bob": "none"}
    assert kinds(world, end) == ["UserScramCredentialRecord"]
    assert world.raft.records(end)[-1].name == "bob"  # type: ignore[attr-defined]


def test_the_first_error_of_a_user_is_the_one_reported() -> None:
    world = ready_world("alice")
    assert codes(world, deletion("unknown"), upsertion("unknown")) == {"unknown": "resource_not_found"}


def test_a_metadata_version_that_has_no_credentials() -> None:
    for level, code in ((10, "unsupported_version"), (11, "none")):
        world = at_level(level)
        world.commit()
        assert codes(world, upsertion("alice")) == {"alice": code}
        assert bool(credentials(world)) is (code == "none")
    world = at_level(10)
    world.commit()
    assert codes(world, upsertion("", 9)) == {"": "unsupported_version"}, "before all else"
    assert codes(world, deletion("alice"), upsertion("alice")) == {"alice": "unsupported_version"}


def test_a_standby_refuses_each_user() -> None:
    world = World()
    world.follow(2, 1)
    assert codes(world, deletion("a"), upsertion("b")) == {"a": "not_controller", "b": "not_controller"}


# Describing


def described(world: World, *users: str, all_of_them: bool = False) -> DescribeUserScramCredentialsResponse:
    values = {"users": None if all_of_them else [{"name": each} for each in users]}
    body = request_of(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, values)
    image = world.controller.committed_image
    question = DescribeRequest(body=body, version=0, image=image, principal="User:a", node_id=1)
    response: DescribeUserScramCredentialsResponse = whole(describe_user_scram_credentials(question), 0)
    assert read_answer(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, response) == response
    return response


def test_all_users_are_described_with_their_mechanisms() -> None:
    world = ready_world("bob", "alice")
    alter(world, upsertion("alice", SHA_512, iterations=5000))
    for answer in (described(world), described(world, all_of_them=True)):
        assert answer.error_code is ErrorCode.none
        assert [
            (each.user, [(info.mechanism, info.iterations) for info in each.credential_infos])
            for each in answer.results
        ] == [("alice", [(SHA_256, 4096), (SHA_512, 5000)]), ("bob", [(SHA_256, 4096)])]


def test_users_are_asked_for_by_name() -> None:
    answer = described(ready_world("alice", "bob"), "bob", "unknown", "alice", "alice")
    found = {each.user: (each.error_code.name, len(each.credential_infos)) for each in answer.results}
    assert found == {
        "bob": ("none", 1),
        "unknown": ("resource_not_found", 0),
        "alice": ("duplicate_resource", 0),
    }
    assert all(each.user in (each.error_message or "") for each in answer.results if each.user != "bob")


# Secrets


def test_nothing_of_a_credential_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world = ready_world()
    end = world.raft.log_end_offset
    answer = alter(world, upsertion("alice"), upsertion("bob", iterations=1))
    body = request_of(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        {"deletions": [], "upsertions": [upsertion("alice")]},
    )
    request = ControllerRequest(api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, api_version=0, body=body)
    (record,) = [each for each in world.raft.records(end) if isinstance(each, UserScramCredentialRecord)]
    image = world.controller.committed_image
    notes = [bytes(tag) for each in world.raft.records(end) for _, tag in each.unknown_tagged_fields]
    assert notes, "the change has a note"
    shown = [
        repr(record),
        repr(request),
        repr(image),
        repr(answer),
        repr(ReplayError(1, record, "x")),
        caplog.text,
    ]
    for secret in (SALT, SALTED, record.stored_key, record.server_key):
        assert not any(secret in note for note in notes)
        assert not any(repr(secret)[2:-1] in text for text in shown)
    assert not any("4096" in text for text in (repr(answer), caplog.text))


def test_a_removal_of_what_is_not_there_cannot_be_replayed() -> None:
    world = ready_world("alice")
    world.follow(2, 2)
    record = RemoveUserScramCredentialRecord(name="unknown", mechanism=SHA_256)
    world.raft.append(world.now_ms, [(None, encode_record(record, 0))])
    with pytest.raises(ReplayError, match="has no credential"):
        world.commit()
