"""IncrementalAlterConfigs and AlterConfigs, from the request to the records and the image."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from metadata.controller.alter_configs import APPEND, DELETE, SET, SUBTRACT
from metadata.controller.audit import audit_notes
from metadata.controller.config import ControllerConfig
from metadata.controller.requests import MAX_MESSAGE_CHARACTERS
from metadata.image.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigResource
from metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from snapshots.bootstrap import bootstrap_records
from tests.unit.metadata.controller_world import LEVELS, World, topic
from wire.metadata_records.configs import ConfigRecord
from wire.metadata_records.features import NoOpRecord
from wire.metadata_records.topics import ClearElrRecord
from wire.protocol.api_keys import ApiKey

INCREMENTAL, LEGACY = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
Asked = dict[str, Any]


@pytest.fixture
def world() -> World:
    world = World().lead().add_brokers(1, 2)
    world.create(topic("a"), topic("b"))
    return world


def changes(kind: int, name: str, *operations: tuple[str, int, str | None]) -> Asked:
    configs = [{"name": key, "config_operation": each, "value": value} for key, each, value in operations]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def all_of(kind: int, name: str, **configs: str | None) -> Asked:
    listed = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"resource_type": kind, "resource_name": name, "configs": listed}


def alter(
    world: World, *asked: Asked, api_key: ApiKey = INCREMENTAL, version: int = 1, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    answer = world.ask(api_key, version, resources=list(asked), validate_only=validate_only)
    responses = answer["responses"]
    assert [(each["resource_type"], each["resource_name"]) for each in responses] == [
        (each["resource_type"], each["resource_name"]) for each in asked
    ]
    return [(each["error_code"], each["error_message"]) for each in responses]


def configs_of(world: World, kind: int, name: str) -> dict[str, str]:
    return dict(world.controller.committed_image.configs.resources.get(ConfigResource(kind, name), {}))


def written(world: World, start: int) -> list[tuple[str, str, str | None]]:
    records = world.raft.records(start)
    return [(each.resource_name, each.name, each.value) for each in records if isinstance(each, ConfigRecord)]


NONE = (ErrorCode.none, None)


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
        changes(BROKER, "1", ("my.key", SET, "é" * 16_384)),
        ErrorCode.invalid_config,
        "maximum value size of 32767",
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


def test_no_refusal_quotes_a_secret(world: World) -> None:
    """A plain one may be quoted; a password has no unlawful value, so nothing could be said of it but its name."""
    asked = changes(
        BROKER, "1", ("ssl.keystore.password", SET, "hush"), ("delegation.token.secret.key", SET, "hush")
    )
    ((code, words),) = alter(world, asked)
    assert code is ErrorCode.invalid_request
    assert "hush" not in (words or "")


class TestEligibleLeaders:
    """KIP-966: min.insync.replicas decides who may lead, so brokers must agree on it."""

    @pytest.fixture
    def world(self) -> World:
        records = bootstrap_records(25, {ELIGIBLE_LEADER_REPLICAS_VERSION: 1})
        supported = {
            "name": ELIGIBLE_LEADER_REPLICAS_VERSION,
            "min_supported_version": 0,
            "max_supported_version": 1,
        }
        world = World(ControllerConfig(bootstrap_records=records)).lead()
        world.add_brokers(1, 2, features=[*LEVELS, supported])
        world.create(topic("a"))
        return world

    @pytest.mark.parametrize("operation", [SET, DELETE])
    def test_no_broker_has_its_own(self, world: World, operation: int) -> None:
        ((code, words),) = alter(world, changes(BROKER, "1", ("min.insync.replicas", operation, "2")))
        assert code is ErrorCode.invalid_config
        assert words == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."

    def test_the_clusters_stays(self, world: World) -> None:
        assert alter(world, changes(BROKER, "", ("min.insync.replicas", SET, "2"))) == [NONE]
        words = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        assert alter(world, changes(BROKER, "", ("min.insync.replicas", DELETE, None))) == [
            (ErrorCode.invalid_config, words)
        ]
        assert alter(world, all_of(BROKER, "", num_io_threads="3"), api_key=LEGACY) == [
            (ErrorCode.invalid_config, words)
        ]

    @pytest.mark.parametrize(("kind", "name", "cleared"), [(TOPIC, "a", "a"), (BROKER, "", "")])
    def test_another_value_forgets_who_was_eligible(
        self, world: World, kind: int, name: str, cleared: str
    ) -> None:
        start = world.raft.log_end_offset
        assert alter(world, changes(kind, name, ("min.insync.replicas", SET, "2"))) == [NONE]
        clears = [each for each in world.raft.records(start) if isinstance(each, ClearElrRecord)]
        assert [each.topic_name for each in clears] == [cleared]


def test_without_that_feature_nothing_is_forgotten(world: World) -> None:
    start = world.raft.log_end_offset
    assert alter(world, changes(BROKER, "1", ("min.insync.replicas", SET, "2"))) == [NONE]
    assert not any(isinstance(each, ClearElrRecord) for each in world.raft.records(start))


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
