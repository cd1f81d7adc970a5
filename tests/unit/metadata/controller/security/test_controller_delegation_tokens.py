"""Delegation tokens, from request to records to image; the sweep of expired ones; who may do what."""

import hashlib
import hmac
from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.describe.delegation_tokens import describe_delegation_token
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.wire.messages.describe_delegation_token import (
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import read_answer, request_of
from tests.support.controller_world import World, kinds
from tests.support.metadata.delegation_tokens import (
    DAY_MS,
    HOUR_MS,
    KEY,
    create,
    expire,
    renew,
    the_token,
    token_world,
)


def describe(
    world: World, owners: list[str] | None, key: str | None = KEY, version: int = 3
) -> DescribeDelegationTokenResponse:
    asked = None
    if owners is not None:
        asked = [{"principal_type": "User", "principal_name": owner} for owner in owners]
    question = DescribeRequest(
        body=request_of(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, {"owners": asked}),
        version=version,
        image=world.controller.committed_image,
        principal="User:alice",
        node_id=1,
        node_configs={} if key is None else {"delegation.token.secret.key": key},
    )
    response = describe_delegation_token(question)
    assert read_answer(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, response)
    return response


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_is_created_for_who_asks(version: int) -> None:
    world = token_world()
    start = world.raft.log_end_offset
    answer = create(world, version)
    token = the_token(world)
    assert answer.error_code is ErrorCode.none
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    assert answer.token_requester_principal_name == ("alice" if version >= 3 else "")
    assert answer.token_id == token.token_id
    assert len(token.token_id) == 22
    assert answer.hmac == hmac.new(KEY.encode(), token.token_id.encode(), hashlib.sha512).digest()
    assert answer.issue_timestamp_ms == token.issue_timestamp_ms == world.now_ms
    assert answer.expiry_timestamp_ms == token.expiration_timestamp_ms == world.now_ms + DAY_MS
    assert answer.max_timestamp_ms == token.max_timestamp_ms == world.now_ms + 7 * DAY_MS
    assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ())
    assert kinds(world, start) == ["DelegationTokenRecord"]


def test_a_token_for_another_owner_with_renewers() -> None:
    world = token_world()
    renewers = [{"principal_type": "User", "principal_name": name} for name in ("carol", "dave")]
    answer = create(world, owner_principal_type="User", owner_principal_name="bob", renewers=renewers)
    token = the_token(world)
    assert (answer.principal_name, answer.token_requester_principal_name) == ("bob", "alice")
    assert (token.owner, token.requester) == ("User:bob", "User:alice")
    assert token.renewers == ("User:carol", "User:dave")


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expiry_ms"),
    [
        (-1, 7 * DAY_MS, DAY_MS),
        (0, 7 * DAY_MS, DAY_MS),
        (HOUR_MS, HOUR_MS, HOUR_MS),
        (2 * DAY_MS, 2 * DAY_MS, DAY_MS),
        (8 * DAY_MS, 7 * DAY_MS, DAY_MS),
    ],
)
def test_a_lifetime_may_only_be_shorter_than_the_configured_one(
    asked_ms: int, max_ms: int, expiry_ms: int
) -> None:
    world = token_world()
    answer = create(world, max_lifetime=asked_ms)
    assert answer.max_timestamp_ms - world.now_ms == max_ms
    assert answer.expiry_timestamp_ms - world.now_ms == expiry_ms


def test_an_endless_lifetime_ends_with_the_year_9999() -> None:
    world = token_world(delegation_token_max_lifetime_ms=2**63 - 1, delegation_token_expiry_time_ms=2**63 - 1)
    answer = create(world)
    assert answer.max_timestamp_ms == answer.expiry_timestamp_ms == 253_402_300_799_999


def test_a_renewer_must_be_a_user() -> None:
    world = token_world()
    answer = create(world, renewers=[{"principal_type": "Group", "principal_name": "x"}])
    assert (answer.error_code, answer.hmac, answer.token_id) == ((ErrorCode.invalid_principal_type, b"", ""))
    assert not world.controller.committed_image.security.delegation_tokens


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_secret_key_all_is_refused(key: str | None) -> None:
    world = token_world(delegation_token_secret_key=key)
    answers = [
        create(world),
        create(world, 1),
        renew(world, b"x"),
        expire(world, b"x"),
    ]
    assert describe(world, [], key).error_code is ErrorCode.delegation_token_auth_disabled
    assert {answer.error_code for answer in answers} == {ErrorCode.delegation_token_auth_disabled}
    assert answers[0].principal_name == "alice"


def test_the_level_that_tokens_need() -> None:
    world = token_world(13)
    answers = [create(world), renew(world, b"x"), expire(world, b"x")]
    assert {answer.error_code for answer in answers} == {ErrorCode.unsupported_version}
    assert create(token_world(14)).error_code is ErrorCode.none


def test_renewing_moves_the_expiry_up_to_the_end_of_life() -> None:
    world = token_world()
    password = create(world).hmac
    born_ms = world.now_ms
    for _ in range(6):
        world.advance(DAY_MS - HOUR_MS)
        answer = renew(world, password)
        assert answer.error_code is ErrorCode.none
        assert answer.expiry_timestamp_ms == the_token(world).expiration_timestamp_ms == world.now_ms + DAY_MS
    world.advance(DAY_MS - HOUR_MS)
    assert renew(world, password).expiry_timestamp_ms == born_ms + 7 * DAY_MS
    assert the_token(world).issue_timestamp_ms == born_ms


@pytest.mark.parametrize(
    ("asked_ms", "got_ms"), [(-1, DAY_MS), (0, DAY_MS), (HOUR_MS, HOUR_MS), (2 * DAY_MS, DAY_MS)]
)
def test_a_renewal_may_only_be_shorter_than_the_configured_one(asked_ms: int, got_ms: int) -> None:
    world = token_world()
    password = create(world).hmac
    world.advance(HOUR_MS // 2)
    assert renew(world, password, asked_ms).expiry_timestamp_ms - world.now_ms == got_ms


def test_who_may_renew_and_expire() -> None:
    world = token_world()
    renewers = [{"principal_type": "User", "principal_name": "carol"}]
    asked: dict[str, Any] = {
        "owner_principal_type": "User",
        "owner_principal_name": "bob",
        "renewers": renewers,
    }
    password = create(world, **asked).hmac
    mismatch = ErrorCode.delegation_token_owner_mismatch
    for deed in (renew, expire):
        for who, code in {"alice": mismatch, "eve": mismatch, "bob": ErrorCode.none}.items():
            assert deed(world, password, HOUR_MS, principal=f"User:{who}").error_code is code
        assert deed(world, password, HOUR_MS, principal="User:carol").error_code is ErrorCode.none
    assert expire(world, password, principal="User:eve").error_code is mismatch
    assert the_token(world).owner == "User:bob"


def test_a_password_that_belongs_to_no_token() -> None:
    world = token_world()
    password = create(world).hmac
    for deed in (renew, expire):
        answer = deed(world, password[:-1] + bytes([password[-1] ^ 1]))
        assert answer.error_code is ErrorCode.delegation_token_not_found
        assert deed(world, b"").error_code is ErrorCode.delegation_token_not_found


def test_an_expired_token_is_not_renewed_but_may_be_removed_at_once() -> None:
    world = token_world(delegation_token_expiry_check_interval_ms=100 * DAY_MS)
    password = create(world).hmac
    world.advance(DAY_MS)
    assert renew(world, password, HOUR_MS).error_code is ErrorCode.none, "its last millisecond counts"
    world.advance(HOUR_MS + 1)
    expired = ErrorCode.delegation_token_expired
    assert renew(world, password).error_code is expired
    assert expire(world, password, HOUR_MS).error_code is expired
    assert renew(world, password, principal="User:eve").error_code is expired
    answer = expire(world, password)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.none, world.now_ms)
    assert not world.controller.committed_image.security.delegation_tokens


def test_expire_moves_the_expiry_or_removes_the_token() -> None:
    world = token_world()
    password = create(world).hmac
    assert expire(world, password, HOUR_MS).expiry_timestamp_ms == world.now_ms + HOUR_MS
    assert the_token(world).expiration_timestamp_ms == world.now_ms + HOUR_MS
    assert expire(world, password, 100 * DAY_MS).expiry_timestamp_ms == world.now_ms + 7 * DAY_MS
    assert expire(world, password, 0).expiry_timestamp_ms == world.now_ms
    start = world.raft.log_end_offset
    assert expire(world, password, -1).expiry_timestamp_ms == world.now_ms
    assert kinds(world, start) == ["RemoveDelegationTokenRecord"]
    assert expire(world, password, -1).error_code is ErrorCode.delegation_token_not_found


def test_what_has_expired_is_swept() -> None:
    world = token_world()
    create(world, max_lifetime=HOUR_MS // 2)
    create(world, max_lifetime=HOUR_MS)
    kept = create(world, max_lifetime=DAY_MS).token_id
    world.advance(HOUR_MS - 1)
    world.commit()
    assert len(world.controller.committed_image.security.delegation_tokens) == 3
    world.advance(1)
    world.commit()
    assert len(world.controller.committed_image.security.delegation_tokens) == 2
    world.advance(HOUR_MS)
    world.commit()
    assert the_token(world).token_id == kept


def test_a_sweep_of_many_goes_on_in_the_next_turn() -> None:
    world = token_world(max_records_per_batch=5)
    for _ in range(12):
        create(world, max_lifetime=1000)
    world.advance(HOUR_MS - 1)
    end = world.raft.log_end_offset
    world.now_ms += 1
    world.controller.handle_time(world.now_ms)
    assert world.raft.log_end_offset == end + 5
    world.advance(0)
    world.commit()
    assert world.raft.log_end_offset == end + 12
    assert not world.controller.committed_image.security.delegation_tokens


def test_without_a_secret_key_nothing_is_swept() -> None:
    world = token_world(delegation_token_secret_key=None)
    # No broker, no NoOpRecords, no sweep: what else is due is due to other tasks.
    end = world.raft.log_end_offset
    world.advance(2 * HOUR_MS)
    assert world.raft.log_end_offset == end


def test_tokens_are_described_by_owner_requester_and_renewer() -> None:
    world = token_world()
    renewers = [{"principal_type": "User", "principal_name": "carol"}]
    first = create(world, owner_principal_type="User", owner_principal_name="bob", renewers=renewers)
    second = create(world, principal="User:dave")
    both = {first.token_id, second.token_id}

    def ids(owners: list[str] | None) -> set[str]:
        answer = describe(world, owners)
        assert answer.error_code is ErrorCode.none
        return {token.token_id for token in answer.tokens}

    assert ids(None) == ids(["bob", "dave"]) == both
    assert ids([]) == ids(["eve"]) == set()
    assert ids(["bob"]) == ids(["alice"]) == ids(["carol"]) == {first.token_id}
    assert ids(["dave"]) == {second.token_id}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_description_holds_all_that_a_client_needs(version: int) -> None:
    world = token_world()
    created = create(world, renewers=[{"principal_type": "User", "principal_name": "carol"}])
    (token,) = describe(world, None, version=version).tokens
    assert (token.token_id, token.hmac) == (created.token_id, created.hmac)
    assert token.issue_timestamp == created.issue_timestamp_ms
    assert token.expiry_timestamp == created.expiry_timestamp_ms
    assert token.max_timestamp == created.max_timestamp_ms
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
    carol = DescribedDelegationTokenRenewer(principal_type="User", principal_name="carol")
    assert token.renewers == (carol,)


def test_no_secret_gets_into_the_log_or_a_repr() -> None:
    world = token_world()
    password = create(world).hmac
    renew(world, password)
    log = b"".join(batch.data for batch in world.raft.batches)
    assert password not in log
    assert KEY.encode() not in log
    shown = repr(world.raft.records()) + repr(world.controller.committed_image.security)
    config = repr(ControllerConfig(delegation_token_secret_key=KEY))
    assert KEY not in shown + config
    assert password.hex() not in shown


def test_a_standby_answers_not_controller() -> None:
    world = token_world()
    world.follow(1, 2)
    answers = [create(world), renew(world, b"x"), expire(world, b"x")]
    assert {answer.error_code for answer in answers} == {ErrorCode.not_controller}
