"""What IncrementalAlterConfigs and AlterConfigs refuse, and that no text makes the controller stumble."""

import pytest

from kquorum.metadata.controller.requests import MAX_MESSAGE_CHARACTERS
from kquorum.metadata.image.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.controller_world import World
from tests.support.metadata.altering_configs import (
    APPEND,
    INCREMENTAL,
    SET,
    Asked,
    alter,
    changes,
    world_of_topics,
    written,
)


@pytest.fixture
def world() -> World:
    return world_of_topics()


REFUSED: list[tuple[Asked, ErrorCode, str]] = [
    (
        changes(TOPIC, "", ("x", SET, "1")),
        ErrorCode.invalid_request,
        "Default topic resources are not allowed.",
    ),
    (
        changes(TOPIC, "gone", ("retention.ms", SET, "1")),
        ErrorCode.unknown_topic_or_partition,
        "does not exist",
    ),
    (
        changes(TOPIC, "a/b", ("retention.ms", SET, "1")),
        ErrorCode.invalid_topic_exception,
        "Topic name is invalid",
    ),
    (changes(BROKER, "x", ("my.key", SET, "1")), ErrorCode.invalid_request, "Unable to parse broker name"),
    (changes(BROKER, "-1", ("my.key", SET, "1")), ErrorCode.invalid_request, "Invalid negative broker ID."),
    (
        changes(BROKER, "9", ("my.key", SET, "1")),
        ErrorCode.broker_id_not_registered,
        "No node with id 9 found.",
    ),
    (
        changes(BROKER, "1", ("broker.rack", SET, "1")),
        ErrorCode.invalid_request,
        "Cannot update these configs dyn",
    ),
    (
        changes(BROKER, "", ("listeners", SET, "A://:1")),
        ErrorCode.invalid_request,
        "broker id must be specified",
    ),
    (
        changes(BROKER, "1", ("num.io.threads", SET, "0")),
        ErrorCode.invalid_request,
        "Value must be at least 1",
    ),
    (changes(BROKER, "1", ("my.key", APPEND, "1")), ErrorCode.invalid_config, "Can't APPEND to key my.key"),
    (
        changes(CLIENT_METRICS, "", ("metrics", SET, "*")),
        ErrorCode.invalid_request,
        "Subscription name can't be",
    ),
    (changes(GROUP, "", ("share.x", SET, "1")), ErrorCode.invalid_request, "Default group resources are not"),
    (changes(8, "1", ("root", SET, "INFO")), ErrorCode.invalid_request, "log levels"),
    (changes(64, "1", ("x", SET, "1")), ErrorCode.unsupported_version, "Unknown resource type 64."),
    (
        changes(TOPIC, "a", ("retention.ms", SET, None)),
        ErrorCode.invalid_request,
        "Null value not supported for : ",
    ),
    (changes(TOPIC, "a", ("retention.ms", 9, "1")), ErrorCode.invalid_request, "Unknown operations type 9"),
    (
        changes(TOPIC, "a", ("flush.ms", SET, "1"), ("flush.ms", SET, "2")),
        ErrorCode.invalid_request,
        "duplicate config keys",
    ),
    (
        changes(BROKER, "1", ("cordoned.log.dirs", SET, "/x")),
        ErrorCode.invalid_config,
        "metadata.version >= 4.3-IV0",
    ),
]


@pytest.mark.parametrize(("asked", "code", "words"), REFUSED)
def test_refusals(world: World, asked: Asked, code: ErrorCode, words: str) -> None:
    start = world.raft.log_end_offset
    ((found, message),) = alter(world, asked)
    assert found is code
    assert words in (message or "")
    assert written(world, start) == []


def test_no_record_can_hold_a_longer_value(world: World) -> None:
    """An encoder refuses it, and a client's may not."""
    config = AlterableConfig(name="my.key", config_operation=SET, value="é" * 16_384)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=(config,))
    body = IncrementalAlterConfigsRequest(resources=(resource,))
    ((answer,),) = (each.responses for each in world.send_body(INCREMENTAL, 1, body))
    assert answer.error_code is ErrorCode.invalid_config
    assert "maximum value size of 32767" in answer.error_message


def test_no_refusal_quotes_a_secret(world: World) -> None:
    """A plain one may be quoted; a password has no unlawful value, so nothing could be said of it but its name."""
    asked = changes(
        BROKER, "1", ("ssl.keystore.password", SET, "hush"), ("delegation.token.secret.key", SET, "hush")
    )
    ((code, words),) = alter(world, asked)
    assert code is ErrorCode.invalid_request
    assert "hush" not in (words or "")


MANY = "1" * 5000
HOSTILE = [
    (BROKER, "-+5", "log.retention.ms", "5", ErrorCode.invalid_request),
    (BROKER, "+-5", "log.retention.ms", "5", ErrorCode.invalid_request),
    (GROUP, "g", "share.auto.offset.reset", f"by_duration:P{MANY}D", ErrorCode.invalid_config),
    (GROUP, "g", "share.auto.offset.reset", f"by_duration:PT{MANY[:400]}S", ErrorCode.invalid_config),
    (GROUP, "g", "share.auto.offset.reset", f"by_duration:P{2**63 // 86_400 + 1}D", ErrorCode.invalid_config),
    (GROUP, "g", "share.auto.offset.reset", "by_duration:PT-0.5S", ErrorCode.invalid_config),
    (GROUP, "g", "share.auto.offset.reset", f"by_duration:PT{2**63 - 1}S", ErrorCode.none),
    (CLIENT_METRICS, "m", "match", f"client_id=a{{{MANY}}}", ErrorCode.invalid_config),
]


@pytest.mark.parametrize(("kind", "name", "key", "value", "error"), HOSTILE)
def test_no_text_makes_the_controller_stumble(
    world: World, kind: int, name: str, key: str, value: str, error: ErrorCode
) -> None:
    """A handler that fails costs the leadership, so a client could take it at will."""
    [(answered, message)] = alter(world, changes(kind, name, (key, SET, value)))
    assert answered is error
    assert world.controller.is_active
    assert len(message or "") <= MAX_MESSAGE_CHARACTERS + len("...")
