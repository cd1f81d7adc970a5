"""What no delegation token can hold or last, whether a client asks for it or a log of Kafka's has it."""

import struct
from dataclasses import replace
from typing import Any

import pytest

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.records import delegation_token_record
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.record_frame import encode_record
from tests.support.api_calls import read_answer
from tests.support.controller_world import kinds
from tests.support.kio.classes import request_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build
from tests.support.metadata.delegation_tokens import (
    CREATE,
    DAY_MS,
    EXPIRE,
    HOUR_MS,
    RENEW,
    ask,
    create,
    expire,
    renew,
    the_token,
    token_world,
)

LONGEST = "x" * 32_767
END_OF_TIME_MS = 253_402_300_799_999


@pytest.mark.parametrize(
    "asked",
    [
        {"owner_principal_type": LONGEST, "owner_principal_name": LONGEST},
        {"owner_principal_type": "User:x", "owner_principal_name": LONGEST},
        {"owner_principal_type": "User", "owner_principal_name": LONGEST[:32_763]},
        {"owner_principal_type": "User", "owner_principal_name": "é" * 16_382},
        {"renewers": [{"principal_type": "User", "principal_name": LONGEST}]},
        {"principal": f"User:{LONGEST}"},
    ],
    ids=["both", "a colon in the type", "by one", "in bytes", "renewer", "requester"],
)
def test_a_principal_that_no_record_can_hold_is_refused(asked: dict[str, Any]) -> None:
    """A record that cannot be written would cost the leadership, so a client could take it at will."""
    world = token_world()
    answer = create(world, **asked)
    assert answer.error_code is ErrorCode.invalid_request
    assert world.controller.is_active
    assert not world.controller.image.security.delegation_tokens


def test_the_longest_principal_is_kept() -> None:
    world = token_world()
    answer = create(world, owner_principal_type="User", owner_principal_name=LONGEST[:32_762])
    assert answer.error_code is ErrorCode.none
    assert len(the_token(world).owner) == 32_767


def over_the_wire(api_key: ApiKey, version: int, **values: Any) -> Any:
    """The request as it is read where each 5 in `values` was the largest number that its eight bytes hold."""
    five, largest = struct.pack(">q", 5), struct.pack(">q", 2**63 - 1)
    cls = request_class(api_key, version)
    data = encode(build(cls, values))
    assert data.count(five) == 1
    return read_request(api_key, version, data.replace(five, largest), 0, 1_000)[0]


def handle(world: Any, api_key: ApiKey, version: int, body: Any) -> Any:
    answers: list[Response] = []
    request = ControllerRequest(api_key=api_key, api_version=version, body=body, principal="User:alice")
    world.controller.handle_request(world.now_ms, request, answers.append)
    world.commit()
    return read_answer(api_key, version, answers[0])


@pytest.mark.parametrize("version", [1, 2])
def test_the_largest_number_asks_for_as_long_as_may_be(version: int) -> None:
    world = token_world()
    password = create(world).hmac
    body = over_the_wire(RENEW, version, hmac=password, renew_period=5)
    assert handle(world, RENEW, version, body).expiry_timestamp_ms == world.now_ms + DAY_MS
    body = over_the_wire(EXPIRE, version, hmac=password, expiry_time_period=5)
    assert handle(world, EXPIRE, version, body).expiry_timestamp_ms == world.now_ms + 7 * DAY_MS
    body = over_the_wire(CREATE, version, renewers=[], max_lifetime=5)
    assert handle(world, CREATE, version, body).max_timestamp_ms == world.now_ms + 7 * DAY_MS


def test_a_token_of_kafkas_that_never_ends_gets_an_end_that_an_answer_can_tell() -> None:
    world = token_world(delegation_token_expiry_time_ms=2**63 - 1)
    password = create(world).hmac
    endless = replace(the_token(world), max_timestamp_ms=2**63 - 1, expiration_timestamp_ms=2**63 - 1)
    world.follow(7, 2)
    world.raft.append(world.now_ms, [(None, encode_record(delegation_token_record(endless)))])
    world.commit()
    world.lead(3)
    assert expire(world, password, END_OF_TIME_MS).expiry_timestamp_ms == END_OF_TIME_MS
    renewed = ask(world, RENEW, 2, hmac=password, renew_period=-1)
    assert renewed.expiry_timestamp_ms == END_OF_TIME_MS
    assert the_token(world).expiration_timestamp_ms == END_OF_TIME_MS


@pytest.mark.parametrize(
    ("count", "name", "code"),
    [
        (100, "bob", ErrorCode.none),
        (101, "bob", ErrorCode.invalid_request),
        (16, "x" * 1019, ErrorCode.none),
        (17, "x" * 1019, ErrorCode.invalid_request),
    ],
)
def test_the_renewers_of_a_token_are_bounded(count: int, name: str, code: ErrorCode) -> None:
    """Any authenticated user may make tokens; one with 45,000 renewers would be megabytes on every node."""
    world = token_world()
    renewers = [{"principal_type": "User", "principal_name": name}] * count
    assert create(world, renewers=renewers).error_code is code
    assert bool(world.controller.image.security.delegation_tokens) is (code is ErrorCode.none)


def test_an_owner_has_so_many_tokens_and_no_more() -> None:
    world = token_world(delegation_token_max_per_owner=3)
    for _ in range(3):
        assert create(world).error_code is ErrorCode.none
    assert create(world).error_code is ErrorCode.policy_violation
    assert create(world, owner_principal_name="bob", principal="User:admin").error_code is ErrorCode.none
    assert len(world.controller.image.security.delegation_tokens) == 4


def test_expired_tokens_of_an_owner_leave_when_another_is_made() -> None:
    """Otherwise tokens that last a millisecond would pile up until the next sweep, an hour later."""
    world = token_world(delegation_token_max_per_owner=3)
    for _ in range(10):
        assert create(world, max_lifetime=1).error_code is ErrorCode.none
        world.now_ms += 10
        assert len(world.controller.image.security.delegation_tokens) <= 1


def written(world: Any, start: int) -> int:
    """Records of tokens; each has an audit note beside it."""
    return sum("DelegationToken" in kind for kind in kinds(world, start))


LARGEST = [{"principal_type": "User", "principal_name": "x" * 150} for _ in range(100)]


def test_a_renewal_that_moves_the_expiry_by_less_than_a_hundredth_writes_nothing() -> None:
    """A renewal in a loop would otherwise be a record in the log of every node each time."""
    world = token_world()
    password = create(world).hmac
    stands_ms = the_token(world).expiration_timestamp_ms
    end = world.raft.log_end_offset
    for _ in range(50):
        world.now_ms += DAY_MS // 100 // 50 - 1
        answer = renew(world, password)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.none, stands_ms)
    assert world.raft.log_end_offset == end
    world.now_ms += 50
    assert renew(world, password).expiry_timestamp_ms == world.now_ms + DAY_MS
    assert written(world, end) == 1


def test_a_renewal_or_an_expiry_that_brings_the_end_forward_is_exact() -> None:
    """The token may be in the wrong hands: its end is not rounded to a later time."""
    world = token_world()
    password = create(world).hmac
    for deed, sooner_ms in ((renew, 1), (expire, 2)):
        answer = deed(world, password, DAY_MS - sooner_ms)
        assert answer.expiry_timestamp_ms == the_token(world).expiration_timestamp_ms
        assert answer.expiry_timestamp_ms == world.now_ms + DAY_MS - sooner_ms


def test_an_expiry_that_changes_nothing_writes_nothing() -> None:
    world = token_world()
    password = create(world).hmac
    end = world.raft.log_end_offset
    assert expire(world, password, DAY_MS).expiry_timestamp_ms == world.now_ms + DAY_MS
    assert world.raft.log_end_offset == end
    assert expire(world, password, DAY_MS + 1).expiry_timestamp_ms == world.now_ms + DAY_MS + 1
    assert written(world, end) == 1


@pytest.mark.parametrize("deed", [renew, expire])
def test_the_log_does_not_grow_at_the_will_of_a_user(deed: Any) -> None:
    """The end of a large token goes to and fro: each time is a record of 15 KB. What is written is bounded by the time
    that passes, and a refusal says when to ask again."""
    world = token_world()
    password = create(world, renewers=LARGEST).hmac
    end, codes = world.raft.log_end_offset, set()
    for number in range(200):
        answer = deed(world, password, HOUR_MS if number % 2 else 2 * HOUR_MS)
        codes.add(answer.error_code)
    assert codes == {ErrorCode.none, ErrorCode.throttling_quota_exceeded}
    assert 10 < written(world, end) < 30
    refused = deed(world, password, 3 * HOUR_MS)
    assert refused.expiry_timestamp_ms == 0
    assert 0 < refused.throttle_time_ms <= 20_000
    assert "x" * 150 in repr(the_token(world))
    world.now_ms += refused.throttle_time_ms
    assert deed(world, password, 3 * HOUR_MS).error_code is ErrorCode.none
    assert deed(world, password, 4 * HOUR_MS).error_code is ErrorCode.throttling_quota_exceeded


def test_creations_are_bounded_too_and_a_token_can_always_be_removed() -> None:
    world = token_world()
    end, passwords = world.raft.log_end_offset, []
    while (answer := create(world, renewers=LARGEST)).error_code is ErrorCode.none:
        passwords.append(answer.hmac)
        assert expire(world, answer.hmac).error_code is ErrorCode.none
        assert len(passwords) < 100
    assert answer.error_code is ErrorCode.throttling_quota_exceeded
    assert answer.throttle_time_ms > 0
    assert written(world, end) == 2 * len(passwords)
    assert not world.controller.image.security.delegation_tokens


def test_the_bound_is_that_of_the_tokens_owner() -> None:
    """One user's loop is not another user's refusal, and an owner's renewers have the owner's bound together."""
    world = token_world()
    renewers = [*LARGEST[:98], {"principal_type": "User", "principal_name": "carol"}]
    password = create(world, renewers=renewers).hmac
    other = create(world, principal="User:bob").hmac
    refused = set()
    for number in range(60):
        who = "User:carol" if number % 3 else "User:alice"
        answer = renew(world, password, HOUR_MS if number % 2 else 2 * HOUR_MS, principal=who)
        if answer.error_code is ErrorCode.throttling_quota_exceeded:
            refused.add(who)
    assert refused == {"User:alice", "User:carol"}
    assert renew(world, other, HOUR_MS, principal="User:bob").error_code is ErrorCode.none
    assert expire(world, password, principal="User:carol").error_code is ErrorCode.none


def test_an_owner_makes_and_renews_as_many_ordinary_tokens_as_it_may_have() -> None:
    world = token_world()
    passwords = [create(world).hmac for _ in range(200)]
    world.now_ms += HOUR_MS
    for password in passwords:
        assert renew(world, password).error_code is ErrorCode.none
