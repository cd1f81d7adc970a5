"""What no delegation token can hold or last, whether a client asks for it or a log of Kafka's has it."""

import struct
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from metadata.controller.requests import ControllerRequest, Values
from metadata.image.records import delegation_token_record
from tests.unit.metadata.test_controller_delegation_tokens import (
    CREATE,
    DAY_MS,
    EXPIRE,
    RENEW,
    ask,
    create,
    expire,
    the_token,
    token_world,
)
from wire.codec import decode, encode
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import request_class, response_class
from wire.protocol.entities import build
from wire.record_frame import encode_record

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
    assert answer["error_code"] is ErrorCode.invalid_request
    assert encode(build(response_class(CREATE, 3), answer))
    assert world.controller.is_active
    assert not world.controller.image.security.delegation_tokens


def test_the_longest_principal_is_kept() -> None:
    world = token_world()
    answer = create(world, owner_principal_type="User", owner_principal_name=LONGEST[:32_762])
    assert answer["error_code"] is ErrorCode.none
    assert len(the_token(world).owner) == 32_767


def over_the_wire(api_key: ApiKey, version: int, **values: Any) -> Any:
    """The request as it is read where each 5 in `values` was the largest number that its eight bytes hold."""
    five, largest = struct.pack(">q", 5), struct.pack(">q", 2**63 - 1)
    cls = request_class(api_key, version)
    data = encode(build(cls, values))
    assert data.count(five) == 1
    return decode(cls, data.replace(five, largest))[0]


def handle(world: Any, api_key: ApiKey, version: int, body: Any) -> Values:
    answers: list[Values] = []
    request = ControllerRequest(api_key=api_key, api_version=version, body=body, principal="User:alice")
    world.controller.handle_request(world.now_ms, request, answers.append)
    world.commit()
    return answers[0]


@pytest.mark.parametrize("version", [1, 2])
def test_the_largest_number_asks_for_as_long_as_may_be(version: int) -> None:
    world = token_world()
    password = create(world)["hmac"]
    body = over_the_wire(RENEW, version, hmac=password, renew_period=5)
    assert handle(world, RENEW, version, body)["expiry_timestamp"] == world.now_ms + DAY_MS
    body = over_the_wire(EXPIRE, version, hmac=password, expiry_time_period=5)
    assert handle(world, EXPIRE, version, body)["expiry_timestamp"] == world.now_ms + 7 * DAY_MS
    body = over_the_wire(CREATE, version, renewers=[], max_lifetime=5)
    assert handle(world, CREATE, version, body)["max_timestamp"] == world.now_ms + 7 * DAY_MS


def test_a_token_of_kafkas_that_never_ends_gets_an_end_that_an_answer_can_tell() -> None:
    world = token_world(delegation_token_expiry_time_ms=2**63 - 1)
    password = create(world)["hmac"]
    endless = replace(the_token(world), max_timestamp_ms=2**63 - 1, expiration_timestamp_ms=2**63 - 1)
    world.follow(7, 2)
    world.raft.append(world.now_ms, [(None, encode_record(delegation_token_record(endless)))])
    world.commit()
    world.lead(3)
    assert expire(world, password, END_OF_TIME_MS)["expiry_timestamp"] == END_OF_TIME_MS
    renewed = ask(world, RENEW, 2, hmac=password, renew_period=-1)
    assert renewed["expiry_timestamp"] == END_OF_TIME_MS
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
    assert create(world, renewers=renewers)["error_code"] is code
    assert bool(world.controller.image.security.delegation_tokens) is (code is ErrorCode.none)


def test_an_owner_has_so_many_tokens_and_no_more() -> None:
    world = token_world(delegation_token_max_per_owner=3)
    for _ in range(3):
        assert create(world)["error_code"] is ErrorCode.none
    assert create(world)["error_code"] is ErrorCode.policy_violation
    assert create(world, owner_principal_name="bob", principal="User:admin")["error_code"] is ErrorCode.none
    assert len(world.controller.image.security.delegation_tokens) == 4


def test_expired_tokens_of_an_owner_leave_when_another_is_made() -> None:
    """Otherwise tokens that last a millisecond would pile up until the next sweep, an hour later."""
    world = token_world(delegation_token_max_per_owner=3)
    for _ in range(10):
        assert create(world, max_lifetime=1)["error_code"] is ErrorCode.none
        world.now_ms += 10
        assert len(world.controller.image.security.delegation_tokens) <= 1
