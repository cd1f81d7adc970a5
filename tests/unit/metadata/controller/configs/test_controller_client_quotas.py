"""AlterClientQuotas and DescribeClientQuotas (KIP-546)."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from kquorum.metadata.describe.client_quotas import describe_client_quotas
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.wire.messages.alter_client_quotas import ResponseEntityData
from kquorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values, read_answer, request_of
from tests.support.controller_world import World, kinds
from tests.support.sliced_answers import whole

Entity = Mapping[str, str | None]
RATE = "producer_byte_rate"


def entry(entity: Entity, **values: float | None) -> dict[str, Any]:
    return entry_of(entity, *values.items())


def entry_of(entity: Entity, *values: tuple[str, float | None]) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": 0.0 if value is None else float(value), "remove": value is None}
            for key, value in values
        ],
    }


def alter(
    world: World, *entries: dict[str, Any], version: int = 1, validate_only: bool = False
) -> list[Values]:
    answer = world.ask(ApiKey.ALTER_CLIENT_QUOTAS, version, entries=entries, validate_only=validate_only)
    return list(answer.entries)


def refused(world: World, *entries: dict[str, Any]) -> str:
    """Why the one entity was refused; nothing was written."""
    end = world.raft.log_end_offset
    (result,) = alter(world, *entries)
    assert result.error_code is ErrorCode.invalid_request
    assert world.raft.log_end_offset == end
    return str(result.error_message)


def quotas(world: World) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    entities = world.controller.committed_image.client_quotas.entities
    return {entity: dict(values) for entity, values in entities.items()}


def ready_world() -> World:
    world = World().lead()
    world.commit()
    return world


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_changed_and_removed(version: int) -> None:
    world = ready_world()
    alice = {"user": "alice"}
    (result,) = alter(world, entry(alice, producer_byte_rate=5, request_percentage=12.5), version=version)
    assert (result.error_code, result.error_message) == (ErrorCode.none, None)
    assert result.entity == (ResponseEntityData(entity_type="user", entity_name="alice"),)
    assert quotas(world) == {(("user", "alice"),): {RATE: 5.0, "request_percentage": 12.5}}
    alter(world, entry(alice, producer_byte_rate=None, request_percentage=20))
    assert quotas(world) == {(("user", "alice"),): {"request_percentage": 20.0}}
    alter(world, entry(alice, request_percentage=None))
    assert quotas(world) == {}


def test_only_what_changes_is_written() -> None:
    world = ready_world()
    alter(world, entry({"user": "alice"}, producer_byte_rate=5))
    end = world.raft.log_end_offset
    results = alter(
        world,
        entry({"user": "alice"}, producer_byte_rate=5, consumer_byte_rate=None),
        entry({"user": "bob"}, producer_byte_rate=None),
    )
    assert [each.error_code for each in results] == [ErrorCode.none] * 2
    assert world.raft.log_end_offset == end


def test_only_looking_writes_nothing() -> None:
    world = ready_world()
    end = world.raft.log_end_offset
    good, bad = entry({"user": "alice"}, producer_byte_rate=5), entry({"user": "bob"}, producer_byte_rate=-5)
    results = alter(world, good, bad, validate_only=True)
    assert [each.error_code for each in results] == [ErrorCode.none, ErrorCode.invalid_request]
    assert world.raft.log_end_offset == end


def test_entities_fail_alone_and_the_others_are_one_batch() -> None:
    world = ready_world()
    end = world.raft.log_end_offset
    results = alter(
        world,
        entry({"user": "alice", "client-id": None}, producer_byte_rate=1),
        entry({"user": "bob"}, no_such_rate=1),
        entry({"ip": None}, connection_creation_rate=7),
    )
    assert [each.error_code.name for each in results] == ["none", "invalid_request", "none"]
    assert kinds(world, end) == ["ClientQuotaRecord"] * 2
    assert quotas(world) == {
        (("client-id", None), ("user", "alice")): {RATE: 1.0},
        (("ip", None),): {"connection_creation_rate": 7.0},
    }


def test_the_order_of_types_makes_no_other_entity() -> None:
    world = ready_world()
    alter(world, entry({"user": "alice", "client-id": "x"}, producer_byte_rate=1))
    alter(world, entry({"client-id": "x", "user": "alice"}, producer_byte_rate=2))
    assert quotas(world) == {(("client-id", "x"), ("user", "alice")): {RATE: 2.0}}


@pytest.mark.parametrize(
    "entity",
    [
        {"user": "alice"},
        {"user": None},
        {"client-id": "x"},
        {"client-id": None},
        {"user": None, "client-id": None},
        {"user": "alice", "client-id": "x"},
    ],
)
def test_users_and_client_ids_have_four_quotas(entity: Entity) -> None:
    world = ready_world()
    values = {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
    (result,) = alter(world, entry_of(entity, *((name, 3) for name in sorted(values))))
    assert result.error_code is ErrorCode.none
    ((_, found),) = quotas(world).items()
    assert set(found) == values
    assert "Invalid configuration key" in refused(world, entry(entity, connection_creation_rate=3))


@pytest.mark.parametrize("address", [None, "127.0.0.1", "::1", "2001:db8::17"])
def test_addresses_have_one_quota(address: str | None) -> None:
    world = ready_world()
    (result,) = alter(world, entry({"ip": address}, connection_creation_rate=2**31 - 1))
    assert result.error_code is ErrorCode.none
    assert "Invalid configuration key" in refused(world, entry({"ip": address}, producer_byte_rate=3))


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"group": "g"}, "Unhandled client quota entity type: group"),
        ({"user": ""}, "Empty user not supported"),
        ({"client-id": ""}, "Empty client-id not supported"),
        ({"ip": ""}, "Empty ip not supported"),
        ({"ip": "1.2.3.4.5"}, "1.2.3.4.5 is not a valid IP"),
        ({"ip": "no-such-host"}, "no-such-host is not a valid IP"),
        ({"ip": "127.0.0.1", "user": "alice"}, "should not be combined with User or ClientId"),
        ({"ip": None, "client-id": None}, "should not be combined with User or ClientId"),
    ],
)
def test_what_is_no_entity(entity: Entity, words: str) -> None:
    assert words in refused(ready_world(), entry(entity, producer_byte_rate=1))


def test_a_type_stands_in_an_entity_once() -> None:
    twice = entry({"user": "alice"}, producer_byte_rate=1)
    twice["entity"].append({"entity_type": "user", "entity_name": "bob"})
    assert "duplicate entity entry user" in refused(ready_world(), twice)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (RATE, 0.0, "must be greater than 0"),
        (RATE, -1.0, "must be greater than 0"),
        (RATE, 0.5, "cannot be a fractional value"),
        (RATE, 7.000002, "cannot be a fractional value"),
        (RATE, 1e19, "too large for a LONG"),
        (RATE, math.nan, "must be a finite number"),
        (RATE, math.inf, "must be a finite number"),
        ("request_percentage", -math.inf, "must be a finite number"),
        ("controller_mutation_rate", 0.0, "must be greater than 0"),
        ("no_such_rate", 1.0, "Invalid configuration key no_such_rate"),
    ],
)
def test_what_is_no_quota_leaves_the_whole_entity_as_it_was(key: str, value: float, words: str) -> None:
    asked = entry_of({"user": "alice"}, ("consumer_byte_rate", 5), (key, value))
    assert words in refused(ready_world(), asked)


def test_connections_are_counted_in_32_bits() -> None:
    words = refused(ready_world(), entry({"ip": None}, connection_creation_rate=2**31))
    assert "too large for an INT" in words


@pytest.mark.parametrize(("key", "value"), [(RATE, 2.0**62), (RATE, 7.0000001), ("request_percentage", 0.25)])
def test_what_is_a_quota(key: str, value: float) -> None:
    (result,) = alter(ready_world(), entry_of({"user": "alice"}, (key, value)))
    assert result.error_code is ErrorCode.none


def test_a_removal_is_not_checked_for_its_key() -> None:
    (result,) = alter(ready_world(), entry({"user": "alice"}, no_such_rate=None))
    assert result.error_code is ErrorCode.none


def test_a_key_stands_in_an_entry_once() -> None:
    twice = entry_of({"user": "alice"}, (RATE, 1), (RATE, 2))
    assert "Duplicate quota key producer_byte_rate" in refused(ready_world(), twice)


def test_of_an_entity_that_stands_twice_the_first_mention_counts() -> None:
    world = ready_world()
    (result,) = alter(
        world, entry({"user": "a"}, producer_byte_rate=1), entry({"user": "a"}, producer_byte_rate=2)
    )
    assert result.error_code is ErrorCode.invalid_request
    assert "Ignoring duplicate entity user a" in result.error_message
    assert quotas(world) == {(("user", "a"),): {RATE: 1.0}}


def test_a_standby_refuses_each_entity() -> None:
    world = World()
    world.follow(2, 1)
    (result,) = alter(world, entry({"user": "alice"}, producer_byte_rate=1))
    assert result.error_code is ErrorCode.not_controller
    assert result.entity == (ResponseEntityData(entity_type="user", entity_name="alice"),)


# Describing

EXACT, DEFAULT, ANY = 0, 1, 2
KNOWN: tuple[Entity, ...] = (
    {"user": "alice"},
    {"user": "bob"},
    {"user": None},
    {"user": "alice", "client-id": "x"},
    {"user": "alice", "client-id": None},
    {"user": None, "client-id": "x"},
    {"client-id": "x"},
    {"client-id": None},
)
ADDRESSES: tuple[Entity, ...] = ({"ip": "10.0.0.1"}, {"ip": None})


def known_world() -> World:
    world = ready_world()
    alter(world, *(entry(each, producer_byte_rate=5) for each in KNOWN))
    alter(world, *(entry(each, connection_creation_rate=5) for each in ADDRESSES))
    return world


def component(kind: str, match_type: int, match: str | None = None) -> dict[str, Any]:
    return {"entity_type": kind, "match_type": match_type, "match": match}


def described(
    world: World, *components: dict[str, Any], strict: bool = False, version: int = 1
) -> DescribeClientQuotasResponse:
    values = {"components": components, "strict": strict}
    body = request_of(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, values)
    image = world.controller.committed_image
    question = DescribeRequest(body=body, version=version, image=image, principal="User:a", node_id=1)
    response: DescribeClientQuotasResponse = whole(describe_client_quotas(question), version)
    assert read_answer(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, response) == response
    return response


def found(world: World, *components: dict[str, Any], strict: bool = False) -> list[Entity]:
    answer = described(world, *components, strict=strict)
    assert answer.error_code is ErrorCode.none
    return [{part.entity_type: part.entity_name for part in each.entity} for each in answer.entries or ()]


def sort(entities: Any) -> list[str]:
    return sorted(str(sorted(entity.items(), key=lambda item: item[0])) for entity in entities)


@pytest.mark.parametrize("version", [0, 1])
def test_the_values_are_reported(version: int) -> None:
    answer = described(known_world(), component("user", EXACT, "bob"), version=version)
    entity = EntityData(entity_type="user", entity_name="bob")
    assert answer.entries == (EntryData(entity=(entity,), values=(ValueData(key=RATE, value=5.0),)),)


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], False, [*KNOWN, *ADDRESSES]),
        ([], True, []),
        ([component("user", EXACT, "alice")], False, [KNOWN[0], KNOWN[3], KNOWN[4]]),
        ([component("user", EXACT, "alice")], True, [KNOWN[0]]),
        ([component("user", DEFAULT)], False, [KNOWN[2], KNOWN[5]]),
        ([component("user", DEFAULT)], True, [KNOWN[2]]),
        ([component("user", ANY)], False, KNOWN[:6]),
        ([component("user", ANY)], True, KNOWN[:3]),
        ([component("user", ANY), component("client-id", ANY)], True, KNOWN[3:6]),
        ([component("user", ANY), component("client-id", EXACT, "x")], False, [KNOWN[3], KNOWN[5]]),
        ([component("client-id", DEFAULT)], True, [KNOWN[7]]),
        ([component("user", EXACT, "unknown")], False, []),
        ([component("ip", ANY)], False, ADDRESSES),
        ([component("ip", EXACT, "10.0.0.1")], True, ADDRESSES[:1]),
    ],
)
def test_who_is_found(components: list[dict[str, Any]], strict: bool, expected: list[Entity]) -> None:
    assert sort(found(known_world(), *components, strict=strict)) == sort(expected)


@pytest.mark.parametrize(
    ("components", "code", "words"),
    [
        ([component("", ANY)], ErrorCode.invalid_request, "Invalid empty entity type."),
        ([component("group", ANY)], ErrorCode.unsupported_version, "Unsupported entity type group"),
        ([component("user", EXACT)], ErrorCode.invalid_request, "set match string to null"),
        ([component("user", DEFAULT, "a")], ErrorCode.invalid_request, "MATCH_TYPE_DEFAULT, but also"),
        ([component("user", ANY, "a")], ErrorCode.invalid_request, "MATCH_TYPE_SPECIFIED, but also"),
        ([component("user", 3)], ErrorCode.invalid_request, "Unknown match type 3"),
        (
            [component("user", ANY), component("user", DEFAULT)],
            ErrorCode.invalid_request,
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [component("ip", ANY), component("user", ANY)],
            ErrorCode.invalid_request,
            "should not be used with",
        ),
    ],
)
def test_what_is_no_filter(components: list[dict[str, Any]], code: ErrorCode, words: str) -> None:
    answer = described(known_world(), *components)
    assert answer.error_code is code
    assert words in (answer.error_message or "")
    assert answer.entries is None
