"""Configs, resource by resource, and delegation tokens: by connection, by owner, by right."""

from datetime import timedelta
from typing import Any

import pytest

from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.authorizer.config_rules import RESOURCES_AT_ONCE
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller_apis import CONTROLLER_APIS
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.acl_worlds import ADMIN, ALICE, HERE, acl
from tests.support.api_calls import as_read, request_of
from tests.support.metadata.listener_world import SASL_PLAINTEXT, ListenerWorld

NONE = ErrorCode.none
TOPIC_FAILED = ErrorCode.topic_authorization_failed
GROUP_FAILED = ErrorCode.group_authorization_failed
CLUSTER_FAILED = ErrorCode.cluster_authorization_failed
NOT_ALLOWED = ErrorCode.delegation_token_request_not_allowed
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
RESOURCES = {
    (TOPIC, "mine"): ("retention.ms", "1"),
    (TOPIC, "theirs"): ("retention.ms", "1"),
    (BROKER, "1"): ("log.cleaner.threads", "2"),
    (METRICS, "subscription"): ("interval.ms", "1000"),
    (GROUP, "g"): ("consumer.session.timeout.ms", "46000"),
}


def alteration(api_key: ApiKey, *names: tuple[int, str]) -> dict[str, Any]:
    resources = []
    for resource_type, name in names:
        key, value = RESOURCES.get((resource_type, name), ("x", "y"))
        config: dict[str, Any] = {"name": key, "value": value}
        if api_key is ApiKey.INCREMENTAL_ALTER_CONFIGS:
            config["config_operation"] = 0
        resources.append({"resource_type": resource_type, "resource_name": name, "configs": [config]})
    return {"resources": resources, "validate_only": False}


def errors(answer: Any) -> dict[tuple[int, str], ErrorCode]:
    entries = answer.responses if hasattr(answer, "responses") else answer.results
    return {(entry.resource_type, entry.resource_name): entry.error_code for entry in entries}


def world_with_topics() -> ListenerWorld:
    world = ListenerWorld()
    world.world.create({"name": "mine"}, {"name": "theirs"})
    return world


@pytest.mark.parametrize("api_key", [ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
def test_configs_are_altered_resource_by_resource(api_key: ApiKey) -> None:
    world = world_with_topics().allow(acl(Operation.ALTER_CONFIGS, "mine"))
    answer = world.forward(api_key, alteration(api_key, *RESOURCES))
    assert errors(answer) == {
        (TOPIC, "mine"): NONE,
        (TOPIC, "theirs"): TOPIC_FAILED,
        (BROKER, "1"): CLUSTER_FAILED,
        (METRICS, "subscription"): CLUSTER_FAILED,
        (GROUP, "g"): GROUP_FAILED,
    }
    assert {each.name for each in world.world.controller.image.configs.resources} == {"mine"}
    world.allow(
        acl(Operation.ALTER_CONFIGS),
        acl(Operation.ALTER_CONFIGS, "g", ResourceType.GROUP),
        acl(Operation.ALL, "theirs"),
    )
    assert set(errors(world.forward(api_key, alteration(api_key, *RESOURCES))).values()) == {NONE}


def test_a_duplicate_resource_or_an_unknown_type_is_refused() -> None:
    names = ((TOPIC, "theirs"), (TOPIC, "theirs"), (99, "x"))
    answer = world_with_topics().ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, alteration(ApiKey.INCREMENTAL_ALTER_CONFIGS, *names)
    )
    assert not {TOPIC_FAILED, CLUSTER_FAILED} & set(errors(answer).values())
    assert NONE not in errors(answer).values()


@pytest.mark.parametrize(
    ("direct", "right"), [(True, Operation.CLUSTER_ACTION), (False, Operation.ALTER_CONFIGS)]
)
def test_the_levels_of_loggers_take_another_right_at_a_controller(direct: bool, right: Operation) -> None:
    values = alteration(ApiKey.INCREMENTAL_ALTER_CONFIGS, (LOGGER, "1"))
    for granted in (Operation.CLUSTER_ACTION, Operation.ALTER_CONFIGS):
        world = ListenerWorld().allow(acl(granted))
        ask = world.ask if direct else world.forward
        [code] = errors(ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, values)).values()
        assert (code is not CLUSTER_FAILED) is (granted is right)


def test_configs_are_reported_resource_by_resource() -> None:
    world = world_with_topics().allow(acl(Operation.ALTER_CONFIGS, "mine"))
    named = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in RESOURCES
    ]
    answer = world.ask(ApiKey.DESCRIBE_CONFIGS, {"resources": named})
    assert errors(answer) == {
        (TOPIC, "mine"): NONE,
        (TOPIC, "theirs"): TOPIC_FAILED,
        (BROKER, "1"): CLUSTER_FAILED,
        (METRICS, "subscription"): CLUSTER_FAILED,
        (GROUP, "g"): GROUP_FAILED,
    }
    assert {bool(entry.configs) for entry in answer.results if entry.error_code is not NONE} == {False}


# Delegation tokens


def test_configs_are_judged_in_slices_as_in_one_piece() -> None:
    world = world_with_topics().allow(acl(Operation.DESCRIBE_CONFIGS, "mine"))
    names = ["mine", "theirs"] * RESOURCES_AT_ONCE
    resources = [
        {"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in names
    ]
    values = {"resources": resources, "include_synonyms": False, "include_documentation": False}
    version = supported_versions(ApiKey.DESCRIBE_CONFIGS)[1]
    body = as_read(ApiKey.DESCRIBE_CONFIGS, version, request_of(ApiKey.DESCRIBE_CONFIGS, version, values))
    request = ControllerRequest(
        api_key=ApiKey.DESCRIBE_CONFIGS, api_version=version, body=body, principal=ALICE, client_host=HERE
    )
    authorization = CONTROLLER_APIS[ApiKey.DESCRIBE_CONFIGS].authorization
    image = world.world.controller.committed_image
    first, second = world.gate.judge_in_slices(authorization, request, image)
    assert first is None
    assert second is not None
    whole = world.gate.judge(authorization, request, image)
    assert second.verdict.body == whole.verdict.body
    assert second.verdict.refused == whole.verdict.refused
    assert {each.error_code for each in second.verdict.refused} == {TOPIC_FAILED}
    fresh = ListenerWorld(is_loaded=False)
    (unknown,) = fresh.gate.judge_in_slices(authorization, request, image)
    assert unknown is not None
    assert unknown.answer is not None
    assert {each.error_code for each in unknown.answer.results} == {ErrorCode.not_controller}
    told = [each.error_message for each in unknown.answer.results]
    assert told[0] is not None
    assert told[-1] is None, "a refusal is not many times as long as its request"


def creation(owner: str | None = None) -> dict[str, Any]:
    return {
        "owner_principal_type": None if owner is None else "User",
        "owner_principal_name": owner,
        "renewers": (),
        "max_lifetime": timedelta(0),
    }


@pytest.mark.parametrize(
    ("protocol", "principal", "is_token", "is_allowed"),
    [
        (0, "User:alice", False, False),
        (1, "User:ANONYMOUS", False, False),
        (1, "User:CN=alice", False, True),
        (2, "User:alice", False, True),
        (3, "User:alice", False, True),
        (3, "User:alice", True, False),
    ],
)
def test_tokens_require_an_authenticated_client(
    protocol: int, principal: str, is_token: bool, is_allowed: bool
) -> None:
    world = ListenerWorld()
    asker: dict[str, Any] = {"principal": principal, "protocol": protocol, "is_token": is_token}
    wanted = {ErrorCode.delegation_token_not_found} if is_allowed else {NOT_ALLOWED}
    renewal = {"hmac": b"x", "renew_period": timedelta(0)}
    expiry = {"hmac": b"x", "expiry_time_period": timedelta(0)}
    told = {
        world.ask(ApiKey.RENEW_DELEGATION_TOKEN, renewal, **asker).error_code,
        world.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, expiry, **asker).error_code,
    }
    assert told == wanted
    code = world.ask(ApiKey.CREATE_DELEGATION_TOKEN, creation(), **asker).error_code
    assert code is (NONE if is_allowed else NOT_ALLOWED)
    code = world.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": None}, **asker).error_code
    assert code is (NONE if is_allowed else NOT_ALLOWED)


def test_the_broker_has_seen_to_the_connection_but_a_token_gets_no_token_through_it_either() -> None:
    world = ListenerWorld()
    assert world.forward(ApiKey.CREATE_DELEGATION_TOKEN, creation()).error_code is NONE
    refused = world.forward(ApiKey.CREATE_DELEGATION_TOKEN, creation(), is_token=True)
    assert refused.error_code is NOT_ALLOWED
    assert refused.principal_name == "alice"


def test_a_token_for_another_takes_a_right_on_him() -> None:
    world = ListenerWorld()
    refused = world.forward(ApiKey.CREATE_DELEGATION_TOKEN, creation("bob"))
    assert refused.error_code is ErrorCode.delegation_token_authorization_failed
    assert world.forward(ApiKey.CREATE_DELEGATION_TOKEN, creation("alice")).error_code is NONE
    world.allow(acl(Operation.CREATE_TOKENS, "User:bob", ResourceType.USER))
    assert world.forward(ApiKey.CREATE_DELEGATION_TOKEN, creation("bob")).error_code is NONE


def owners_seen(world: ListenerWorld, principal: str) -> list[str]:
    answer = world.ask(
        ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": None}, principal=principal, protocol=SASL_PLAINTEXT
    )
    return sorted(token.principal_name for token in answer.tokens)


def test_tokens_of_others_are_listed_for_clients_with_describe() -> None:
    world = ListenerWorld()
    for name in ("alice", "bob", "carol"):
        assert world.ask(ApiKey.CREATE_DELEGATION_TOKEN, creation(), principal=f"User:{name}").token_id
    assert owners_seen(world, "User:alice") == ["alice"]
    assert owners_seen(world, "User:dave") == []
    assert owners_seen(world, ADMIN) == ["alice", "bob", "carol"]
    tokens = world.world.controller.committed_image.security.delegation_tokens.values()
    [of_carol] = [token.token_id for token in tokens if token.owner == "User:carol"]
    world.allow(
        acl(Operation.DESCRIBE_TOKENS, "User:bob", ResourceType.USER),
        acl(Operation.DESCRIBE, of_carol, ResourceType.DELEGATION_TOKEN),
    )
    assert owners_seen(world, "User:alice") == ["alice", "bob", "carol"]
    # What is merely left out of a list is no denial.
    assert not world.lines
