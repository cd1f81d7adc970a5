"""IncrementalAlterConfigs and AlterConfigs, from the request to the records and the image."""

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigResource
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import World, audit_notes
from tests.support.metadata.altering_configs import (
    APPEND,
    DELETE,
    INCREMENTAL,
    LEGACY,
    NONE,
    SET,
    SUBTRACT,
    all_of,
    alter,
    changes,
    configs_of,
    world_of_topics,
    written,
)


@pytest.fixture
def world() -> World:
    return world_of_topics()


@pytest.mark.parametrize("version", [0, 1])
def test_set_append_subtract_and_delete(world: World, version: int) -> None:
    first = changes(TOPIC, "a", ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "compact"))
    assert alter(world, first, version=version) == [NONE]
    assert configs_of(world, TOPIC, "a") == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    second = changes(TOPIC, "a", ("retention.ms", DELETE, None), ("cleanup.policy", SUBTRACT, "delete,none"))
    assert alter(world, second, version=version) == [NONE]
    assert configs_of(world, TOPIC, "a") == {"cleanup.policy": "compact"}
    assert alter(world, changes(TOPIC, "a", ("cleanup.policy", DELETE, "ignored"))) == [NONE]
    assert ConfigResource(TOPIC, "a") not in world.controller.committed_image.configs.resources


@pytest.mark.parametrize("version", [0, 2])
def test_the_older_request_replaces_all_configs(world: World, version: int) -> None:
    alter(
        world,
        changes(TOPIC, "a", ("retention.ms", SET, "5"), ("segment.ms", SET, "6"), ("flush.ms", SET, "7")),
    )
    start = world.raft.log_end_offset
    asked = all_of(TOPIC, "a", segment_ms="8", flush_ms="7")
    assert alter(world, asked, api_key=LEGACY, version=version) == [NONE]
    assert written(world, start) == [("a", "segment.ms", "8"), ("a", "retention.ms", None)]
    assert configs_of(world, TOPIC, "a") == {"segment.ms": "8", "flush.ms": "7"}


def test_each_resource_fares_alone_and_what_succeeds_is_one_batch(world: World) -> None:
    batches = len(world.raft.batches)
    found = alter(
        world,
        changes(TOPIC, "a", ("retention.ms", SET, "x")),
        changes(TOPIC, "b", ("retention.ms", SET, "5")),
        changes(GROUP, "g", ("share.isolation.level", SET, "read_committed")),
        changes(CLIENT_METRICS, "m", ("metrics", SET, "*")),
        changes(BROKER, "", ("log.retention.ms", SET, "9")),
    )
    wrong = "Invalid value x for configuration retention.ms: Not a number of type LONG"
    assert found == [(ErrorCode.invalid_config, wrong), NONE, NONE, NONE, NONE]
    assert configs_of(world, TOPIC, "a") == {}
    assert configs_of(world, GROUP, "g") == {"share.isolation.level": "read_committed"}
    assert configs_of(world, CLIENT_METRICS, "m") == {"metrics": "*"}
    assert configs_of(world, BROKER, "") == {"log.retention.ms": "9"}
    assert len(world.raft.batches) == batches + 1


def test_one_wrong_key_leaves_the_whole_resource_as_it_was(world: World) -> None:
    asked = changes(TOPIC, "a", ("retention.ms", SET, "5"), ("segment.ms", SET, "0"))
    assert alter(world, asked)[0][0] is ErrorCode.invalid_config
    assert configs_of(world, TOPIC, "a") == {}


def test_only_validating_writes_nothing(world: World) -> None:
    start = world.raft.log_end_offset
    assert alter(world, changes(TOPIC, "a", ("retention.ms", SET, "5")), validate_only=True) == [NONE]
    refused = alter(
        world, all_of(TOPIC, "a", retention_ms="x"), api_key=LEGACY, version=2, validate_only=True
    )
    assert refused[0][0] is ErrorCode.invalid_config
    assert world.raft.log_end_offset == start


@pytest.mark.parametrize("api_key", [INCREMENTAL, LEGACY])
def test_an_unchanged_value_is_written_for_brokers_only(world: World, api_key: ApiKey) -> None:
    def once() -> list[tuple[ErrorCode, str | None]]:
        if api_key is INCREMENTAL:
            broker = changes(BROKER, "1", ("log.retention.ms", SET, "9"), ("my.key", DELETE, None))
            return alter(world, changes(TOPIC, "a", ("retention.ms", SET, "5")), broker)
        return alter(
            world,
            all_of(TOPIC, "a", retention_ms="5"),
            all_of(BROKER, "1", log_retention_ms="9"),
            api_key=LEGACY,
        )

    once()
    start = world.raft.log_end_offset
    assert once() == [NONE, NONE]
    assert [name for name, _, _ in written(world, start)] == ["1", "1"][: 2 if api_key is INCREMENTAL else 1]


def test_a_resource_named_twice_is_refused_both_times(world: World) -> None:
    asked = changes(TOPIC, "a", ("retention.ms", SET, "1"))
    twice = (ErrorCode.invalid_request, "Each resource must appear at most once.")
    assert alter(world, asked, changes(TOPIC, "b", ("flush.ms", SET, "1")), asked) == [twice, NONE, twice]


def test_a_plugins_key_is_taken_as_it_is_and_what_is_there_already_is_not_judged_again(world: World) -> None:
    assert alter(world, changes(BROKER, "1", ("my.plugin.key", SET, "anything, at all"))) == [NONE]
    assert configs_of(world, BROKER, "1") == {"my.plugin.key": "anything, at all"}
    controller = changes(BROKER, str(world.raft.node_id), ("my.plugin.key", SET, "1"))
    assert alter(world, controller) == [NONE]


def test_too_many_changes_for_one_batch_are_refused_as_a_whole() -> None:
    world = World(ControllerConfig(max_records_per_batch=20)).lead().add_brokers(1)
    many = changes(BROKER, "1", *((f"my.{index}", SET, "x") for index in range(21)))
    ((code, words),) = alter(world, many)
    assert code is ErrorCode.policy_violation
    assert words
    assert configs_of(world, BROKER, "1") == {}


def test_the_audit_note_names_what_was_altered_and_no_value(world: World) -> None:
    start = world.raft.log_end_offset
    secret = "listener.name.inside.ssl.keystore.password"
    alter(
        world,
        changes(BROKER, "1", (secret, SET, "hush")),
        changes(BROKER, "", ("log.retention.ms", SET, "77")),
    )
    records = [each for each in world.raft.records(start) if isinstance(each, NoOpRecord)]
    (note,) = (note for record in records for note in audit_notes(record))
    assert f"alter configs: broker 1 ({secret}); all brokers (log.retention.ms)" in str(note)
    assert "hush" not in str(note)


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("compact,", "delete,compact"),
        ("compact,,,", "delete,compact"),
        ("compact,compact", "delete,compact"),
        (",", "delete"),
        ("", None),
        (",compact", None),
    ],
)
def test_what_is_appended_is_split_as_java_splits(world: World, value: str, after: str | None) -> None:
    """Empty items at the end do not count; one in another place, or as the only one, is refused."""
    [(error, _)] = alter(world, changes(TOPIC, "a", ("cleanup.policy", APPEND, value)))
    assert error is (ErrorCode.invalid_config if after is None else ErrorCode.none)
    assert configs_of(world, TOPIC, "a").get("cleanup.policy") == after


REPLICAS = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("steps", "values"),
    [
        # Kafka's testIncrementalAlterMultipleConfigValues: what is there already, or not there, is no change.
        (
            ((APPEND, "0:1,1:2,2:3"), (APPEND, "0:1,1:2"), (SUBTRACT, "0:1,1:2"), (SUBTRACT, "9:9")),
            ("0:1,1:2,2:3", None, "2:3", None),
        ),
        # The last item goes, the key stays, and is nothing: neither the default nor a reason to write it again.
        (((SUBTRACT, "0:1"), (APPEND, "0:1"), (SUBTRACT, "0:1"), (SUBTRACT, "0:1")), ("", "0:1", "", None)),
        # A tombstone for what is not set is no change of a topic.
        (((DELETE, None), (SET, "*"), (DELETE, None), (DELETE, "x")), (None, "*", "DELETED", None)),
    ],
)
def test_steps_and_what_each_writes(
    world: World, steps: tuple[tuple[int, str | None], ...], values: tuple[str | None, ...]
) -> None:
    """None for a step that writes nothing."""
    found: list[str | None] = []
    for operation, value in steps:
        start = world.raft.log_end_offset
        assert alter(world, changes(TOPIC, "a", (REPLICAS, operation, value))) == [NONE]
        records = written(world, start)
        assert len(records) <= 1
        found.append((records[0][2] if records[0][2] is not None else "DELETED") if records else None)
    assert tuple(found) == values


def test_steps_within_one_log_are_decided_on_what_is_not_committed_yet(world: World) -> None:
    """Two clients append before either is answered; readers see neither until both are committed."""
    answers = [
        world.send(
            INCREMENTAL, 1, resources=[changes(TOPIC, "a", (REPLICAS, APPEND, each))], validate_only=False
        )
        for each in ("0:1", "1:2")
    ]
    assert answers == [[], []]
    assert configs_of(world, TOPIC, "a") == {}
    world.commit()
    assert configs_of(world, TOPIC, "a") == {REPLICAS: "0:1,1:2"}
    assert all(answer[0].responses[0].error_code is ErrorCode.none for answer in answers)
