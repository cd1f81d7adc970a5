"""The table of configs names a reader for a key exactly when some code reads it, and no other place has its default.

The tests find the reads in the code: they run what looks values up by Kafka's names, and they search the source for the
fields of the node's config and for names of keys.
"""

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from kquorum.broker.internal_topics import creatable_topic
from kquorum.broker.log.log_config import LogConfig, log_config
from kquorum.metadata.adapters.request_bounds import RequestBounds
from kquorum.metadata.configs import used_by
from kquorum.metadata.configs.definition import ConfigDefinition
from kquorum.metadata.configs.removed import REMOVED
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.configs.rules import check_group_configs, check_topic_configs
from kquorum.metadata.configs.table import (
    ALIASES,
    BROKER_CONFIGS,
    FILE_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    default_number,
)
from kquorum.metadata.configs.validators import InvalidConfigError
from kquorum.metadata.controller.topics.topic_configs import effective_topic_configs
from kquorum.metadata.describe.configs import describe_configs
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.configs import GROUP
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.limits import BudgetLimits, GrpcLimits, ServerLimits
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.model import KNOWN_KEYS, ClusterConfig, NodeConfig
from kquorum.node.config.security_keys import SECURITY_KEYS
from kquorum.node.config.toml_file import CONTROLLERS_ONLY
from kquorum.raft.config import QuorumConfig
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support import config_files
from tests.support.api_calls import request_of

PRODUCT = Path(__file__).parents[4]
NOTHING_MORE = {"include_synonyms": False, "include_documentation": False}
ROOMS_OF_TOPIC_CONFIGS = ("metadata/controller", "metadata/image", "metadata/adapters", "broker/quota")
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def is_refused(definition: ConfigDefinition) -> bool:
    return definition.used_by.effect is used_by.Effect.REFUSED


# Where fields of the node's config are read: in the layer that has it, by these names.
OF_A_NODE = {"config", "_config", "node", "self"}
OF_SECURITY = ("node/security.py", "node/config/security_keys.py")
READ_BY_NAME = sorted(
    each.name
    for each in FILE_CONFIGS.values()
    if each.used_by in (used_by.TOPIC_CONFIGS, used_by.GROUP_CONFIGS, used_by.INTERNAL_TOPICS)
)
# The controller refuses to store it below a metadata.version, and stores it unread above.
NAMED_FOR_ANOTHER_REASON = {"metadata/controller/configs/alter_configs.py": {"cordoned.log.dirs"}}
# These rooms are below the table and cannot import it. A node passes its own values, so that their defaults count for
# other users of the class only.
BELOW_THE_TABLE: Mapping[type, Mapping[str, str]] = {
    QuorumConfig: {
        "election_timeout_ms": "controller.quorum.election.timeout.ms",
        "fetch_timeout_ms": "controller.quorum.fetch.timeout.ms",
        "election_backoff_max_ms": "controller.quorum.election.backoff.max.ms",
        "request_timeout_ms": "controller.quorum.request.timeout.ms",
        "retry_backoff_ms": "controller.quorum.retry.backoff.ms",
    },
    ServerLimits: {
        "max_request_bytes": "socket.request.max.bytes",
        "max_request_elements": "kquorum.request.max.elements",
        "max_idle_ms": "connections.max.idle.ms",
        "max_connections": "max.connections",
        "max_connection_creation_rate": "max.connection.creation.rate",
        "frame_timeout_ms": "kquorum.frame.timeout.ms",
        "write_timeout_ms": "kquorum.output.timeout.ms",
        "request_timeout_ms": "kquorum.unanswered.request.timeout.ms",
    },
    GrpcLimits: {
        "max_calls_per_second": "kquorum.grpc.max.calls.per.second",
        "max_open_calls": "kquorum.grpc.max.open.calls",
        "max_open_calls_per_client": "kquorum.grpc.max.open.calls.per.client",
    },
    BudgetLimits: {"max_requests": "queued.max.requests"},
    RequestBounds: {"most_entries": "kquorum.request.max.entries"},
}
# The test fails when one of these no longer has the table's default, too.
DEFAULTS_ELSEWHERE = {
    # Below the table, like those of BELOW_THE_TABLE; a node passes its own.
    ("network/limits.py", "frame_timeout_ms"),
    ("network/limits.py", "max_calls_per_second"),
    ("network/limits.py", "max_idle_ms"),
    ("network/limits.py", "max_open_calls"),
    ("network/limits.py", "max_open_calls_per_client"),
    ("network/limits.py", "request_timeout_ms"),
    ("network/security/listener_security.py", "failed_authentication_delay_ms"),
    ("network/security/sasl_server.py", "max_reauth_ms"),
    ("network/security/tls.py", "ssl_client_auth"),
    ("raft/config.py", "election_backoff_max_ms"),
    ("raft/config.py", "election_timeout_ms"),
    ("raft/config.py", "fetch_timeout_ms"),
    ("raft/config.py", "request_timeout_ms"),
    ("raft/config.py", "retry_backoff_ms"),
    # Of the metadata log, which has no key for them.
    ("storage/indexes.py", "index_interval_bytes"),
    ("storage/retired_files.py", "delete_delay_ms"),
    # Kafka's defaults for logs and replicas that a test or the simulator makes; a node passes its own.
    ("broker/adapters/log/log_manager.py", "delete_delay_ms"),
    ("broker/log/log_config.py", "compression_lz4_level"),
    ("broker/log/log_config.py", "compression_type"),
    ("broker/log/log_config.py", "compression_zstd_level"),
    ("broker/log/log_config.py", "index_interval_bytes"),
    ("broker/log/log_config.py", "message_timestamp_after_max_ms"),
    ("broker/log/log_config.py", "message_timestamp_type"),
    ("broker/log/log_config.py", "min_compaction_lag_ms"),
    ("broker/log/validation.py", "timestamp_after_max_ms"),
    ("broker/replica/fetcher.py", "wait_max_ms"),
    ("broker/replica/partition.py", "min_insync_replicas"),
    ("broker/replica/replica_manager.py", "num_replica_fetchers"),
    ("storage/partition_segment.py", "index_interval_bytes"),
    # Of a source without brokers; a node passes its own.
    ("node/inspect_source.py", "min_insync_replicas"),
    # Of a client.
    ("cli/commands/demo/kafka_client.py", "request_timeout_ms"),
}


class LookedUp(dict[str, str]):
    """Keys of a file that holds none, and remembers which it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_asked: set[str] = set()

    def __contains__(self, key: object) -> bool:
        self.keys_asked.add(str(key))
        return False


def read_as_text() -> set[str]:
    """What a broker makes Kafka's own topics by, and what topics' and groups' configs are checked and told by."""
    keys = LookedUp()
    node = NodeConfigs(own={}, cluster={}, static=keys)
    for name in (*INTERNAL_TOPICS, "orders"):
        creatable_topic(name, node)
    effective_topic_configs(MetadataImage(), "orders", 1, keys, own={})
    with suppress(InvalidConfigError):
        check_topic_configs({"remote.storage.enable": "true"}, {}, node)
    for definition in GROUP_CONFIGS.values():
        if definition.default is not None:
            check_group_configs({definition.name: definition.default}, node)
    group = {"resource_type": GROUP, "resource_name": "readers", "configuration_keys": None}
    body = request_of(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [group], **NOTHING_MORE})
    asked = DescribeRequest(
        body=body, version=4, image=MetadataImage(), principal="", node_id=1, node_configs=keys
    )
    assert [*describe_configs(asked)][-1]
    return keys.keys_asked


@cache
def trees(*folders: str) -> tuple[tuple[str, ast.Module], ...]:
    paths = [path for folder in folders for path in sorted((PRODUCT / folder).rglob("*.py"))]
    return tuple((path.relative_to(PRODUCT).as_posix(), ast.parse(path.read_text())) for path in paths)


def strings(tree: ast.AST) -> set[str]:
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def fields_read() -> Iterator[str]:
    for _, tree in trees("node", "cli"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                if name in OF_A_NODE:
                    yield node.attr


def asked_by_name() -> Iterator[str]:
    """`configs.number("a.key")`, wherever it stands."""
    for _, tree in trees("broker", "metadata", "node"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("number", "value"):
                yield from strings(node)


def keys_of_security() -> frozenset[str]:
    named = [strings(tree) for _, tree in trees("network/security")]
    named += [strings(ast.parse((PRODUCT / path).read_text())) for path in OF_SECURITY]
    return SECURITY_KEYS & set().union(*named)


def names_of(use: Iterable[str]) -> set[str]:
    return set(use) & FILE_CONFIGS.keys()


def test_a_key_has_a_reader_in_the_table_exactly_when_code_reads_it() -> None:
    fields = set(fields_read())
    read = {key for key, field in KNOWN_KEYS.items() if field in fields}
    read |= names_of(read_as_text()) | names_of(asked_by_name()) | keys_of_security()
    told = {each.name for each in FILE_CONFIGS.values() if each.used_by.is_read}
    assert told - ALIASES.keys() == read


def test_a_key_without_effect_is_named_nowhere() -> None:
    """A topic's config of the same name as a broker's is another key."""
    unread = {each.name for each in FILE_CONFIGS.values() if not each.used_by.is_read}
    without_effect = {name for name in unread | REMOVED.keys() if "." in name}
    for place, tree in trees("broker", "cli", "metadata", "network", "node", "raft", "snapshots", "storage"):
        if not place.startswith("metadata/configs/") and place != "cli/clients/client_keys.py":
            assert strings(tree) & without_effect <= NAMED_FOR_ANOTHER_REASON.get(place, set()), place


def test_controllers_throttles_and_partition_logs_read_the_configs_of_topics_that_the_table_says() -> None:
    of_logs = {field.name.replace("_", ".") for field in dataclasses.fields(LogConfig)}
    assert of_logs <= TOPIC_CONFIGS.keys()
    named = [strings(tree) for _, tree in trees(*ROOMS_OF_TOPIC_CONFIGS)]
    read = set().union(*named) & TOPIC_CONFIGS.keys()
    read |= of_logs | {"internal.segment.bytes"}
    assert read == {each.name for each in TOPIC_CONFIGS.values() if each.used_by.is_read}


def test_partition_logs_have_the_defaults_of_the_table() -> None:
    defaults = {
        name: definition.default
        for name, definition in TOPIC_CONFIGS.items()
        if definition.default is not None
    }
    assert log_config(defaults) == LogConfig()


def test_a_field_is_the_key_of_its_name_and_type() -> None:
    types = {"BOOLEAN": bool, "INT": int, "LONG": int}
    for name, field in NodeConfig.model_fields.items():
        if field.alias is not None:
            assert name == field.alias.replace(".", "_")
            expected = types.get(FILE_CONFIGS[field.alias].type.name)
            assert expected is None or field.annotation in (expected, expected | None), name


def test_every_field_of_the_config_is_read() -> None:
    assert set(NodeConfig.model_fields) - set(fields_read()) == set()


def test_one_key_has_one_kind_of_entry() -> None:
    assert not FILE_CONFIGS.keys() & REMOVED.keys()
    assert ALIASES.keys() | set(ALIASES.values()) | CONTROLLERS_ONLY <= FILE_CONFIGS.keys()


@pytest.mark.parametrize(
    ("has_default", "field", "key"),
    [(owner, field, key) for owner, fields in BELOW_THE_TABLE.items() for field, key in fields.items()],
)
def test_the_defaults_of_the_rooms_below_are_the_tables(has_default: type, field: str, key: str) -> None:
    defaults = {each.name: each.default for each in dataclasses.fields(has_default)}
    assert defaults[field] == default_number(key)


def literal_defaults(tree: ast.AST) -> Iterator[tuple[str, object]]:
    """(name, literal) of assignments, of fields and of parameters with a default, and of `get("key", literal)`."""
    for node in ast.walk(tree):
        pairs: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(each.id, node.value) for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args.posonlyargs + node.args.args
            with_default = arguments[len(arguments) - len(node.args.defaults) :]
            pairs = [(each.arg, value) for each, value in zip(with_default, node.args.defaults, strict=True)]
            keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            pairs += [(each.arg, value) for each, value in keywords]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and len(node.args) == 2:
            pairs = [(str(getattr(node.args[0], "value", "")).replace(".", "_"), node.args[1])]
        for name, value in pairs:
            if isinstance(value, ast.Constant) and value.value not in (None, ""):
                yield name.lower().strip("_"), value.value


def test_a_default_stands_in_the_table_alone() -> None:
    """A name that is the key's, or its last three words or more, beside the key's default."""
    defaults: dict[str, set[object]] = {}
    for key, definition in FILE_CONFIGS.items():
        words = key.replace(".", "_").split("_")
        for first in range(max(len(words) - 2, 1)):
            if definition.default is not None and definition.used_by.is_read:
                tail = "_".join(words[first:])
                defaults.setdefault(tail, set()).add(definition.parse(definition.default))
    found = set()
    for place, tree in trees("broker", "cli", "metadata", "network", "node", "raft", "snapshots", "storage"):
        if not place.startswith("metadata/configs/"):
            found |= {(place, n) for n, value in literal_defaults(tree) if value in defaults.get(n, ())}
    assert found == DEFAULTS_ELSEWHERE


def test_the_default_of_what_is_read_by_name_is_taken_without_a_warning(tmp_path: Path) -> None:
    values = {key: BROKER_CONFIGS[key].default or "1" for key in READ_BY_NAME}
    config = load_with(tmp_path, *(f"{key}={value}" for key, value in values.items()))
    assert not [warning for warning in config.warnings if any(f" {key} " in warning for key in values)]
    assert values.items() <= config.nodes[0].as_kafka_keys().items()


def load_with(folder: Path, *lines: str) -> ClusterConfig:
    path = folder / "server.properties"
    path.write_text("\n".join((config_files.PROPERTIES, *lines, "")))
    return load_config(path)


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("num.io.threads=4", "num.io.threads has no effect here: each node serves all connections in one"),
        (
            "group.streams.max.size=9",
            "has no effect here yet: it comes with groups of the streams protocol",
        ),
        ("num.recovery.threads.per.data.dir=9", "has no effect here: one thread recovers the logs"),
        ("inter.broker.protocol.version=3.7", "has no effect here: metadata.version takes its place"),
    ],
)
def test_a_key_without_effect_is_accepted_and_told_with_the_reason(
    line: str, warned: str, tmp_path: Path
) -> None:
    config = load_with(tmp_path, line)
    assert [each for each in config.warnings if warned in each]
    key, _, value = line.partition("=")
    assert config.nodes[0].as_kafka_keys()[key] == value


@pytest.mark.parametrize("key", sorted(each.name for each in FILE_CONFIGS.values() if is_refused(each)))
def test_a_key_that_would_promise_too_much_is_refused_with_the_reason(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_with(tmp_path, f"{key}=x")
    words = FILE_CONFIGS[key].used_by.words
    assert [f"{key} cannot be used: {words}"] == [each.message for each in caught.value.problems]


def test_every_other_key_of_the_table_is_known_to_a_config_file(tmp_path: Path) -> None:
    """Some of them are refused for their values, and none as unknown."""
    with pytest.raises(ConfigError) as caught:
        load_with(tmp_path, *(f"{key}=1" for key in FILE_CONFIGS))
    assert not [each.message for each in caught.value.problems if "unknown key" in each.message]


@pytest.mark.parametrize("key", ["auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds"])
def test_what_the_controller_balances_by_is_taken_without_a_warning(key: str, tmp_path: Path) -> None:
    value = {"auto.leader.rebalance.enable": "false"}.get(key, "7")
    assert not [warning for warning in load_with(tmp_path, f"{key}={value}").warnings if key in warning]


def test_what_is_read_as_text_and_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"offsets\.topic\.num\.partitions.*many"):
        load_with(tmp_path, "offsets.topic.num.partitions=many")
