"""A key of a config file is told to be without effect exactly when no code reads it.

What is read is found out from the code: by running what looks values up by Kafka's names, and by looking for the fields
of the node's config in the source.
"""

import ast
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pytest

from broker.internal_topics import creatable_topic
from metadata.config_definitions.group_rules import check_group_configs
from metadata.config_definitions.resolution import NodeConfigs
from metadata.config_definitions.table import BROKER_CONFIGS, GROUP_CONFIGS
from metadata.config_definitions.topic_rules import check_topic_configs
from metadata.config_definitions.validators import InvalidConfigError
from metadata.controller.topic_configs import effective_topic_configs
from metadata.describe.configs import describe_configs
from metadata.describe.describe_request import DescribeRequest
from metadata.image.configs import GROUP
from metadata.image.image import MetadataImage
from node.config.errors import ConfigError
from node.config.known_keys import ALIASES, CONTROLLERS_ONLY, IGNORED_KEYS, READ_AS_TEXT, REFUSED_KEYS
from node.config.load import load_config
from node.config.model import KNOWN_KEYS, NodeConfig
from node.config.network_keys import LISTENER_LIMITS
from node.config.security_keys import SECURITY_KEYS
from tests.support import config_files
from tests.support.api_calls import request_of
from wire.protocol.api_keys import ApiKey

PRODUCT = Path(__file__).parents[4]
NOTHING_MORE = {"include_synonyms": False, "include_documentation": False}
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
# Where fields of the node's config are read: in the layer that has it, by these names.
OF_A_NODE = {"config", "_config", "node", "self"}


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
    asked = {"resource_type": GROUP, "resource_name": "readers", "configuration_keys": None}
    body = request_of(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [asked], **NOTHING_MORE})
    describe_configs(
        DescribeRequest(
            body=body, version=4, image=MetadataImage(), principal="", node_id=1, node_configs=keys
        )
    )
    return keys.keys_asked


def fields_read() -> Iterator[str]:
    for path in chain((PRODUCT / "node").rglob("*.py"), (PRODUCT / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                if name in OF_A_NODE:
                    yield node.attr


def test_every_key_is_of_one_kind() -> None:
    kinds = {
        "known": KNOWN_KEYS.keys() - LISTENER_LIMITS,
        "read as text": READ_AS_TEXT,
        "ignored": IGNORED_KEYS,
        "refused": REFUSED_KEYS.keys(),
        "of TLS and SASL": SECURITY_KEYS,
        "of listeners": set(LISTENER_LIMITS),
        "second names": ALIASES.keys(),
    }
    for name, keys in kinds.items():
        for other, others in kinds.items():
            assert name == other or not keys & others, (name, other)
    assert KNOWN_KEYS.keys() >= CONTROLLERS_ONLY


def test_what_is_read_as_text_is_accepted_and_nothing_else_is_said_to_be() -> None:
    assert read_as_text() - KNOWN_KEYS.keys() == READ_AS_TEXT


def test_every_field_of_the_config_is_read() -> None:
    assert set(NodeConfig.model_fields) - set(fields_read()) == set()


def test_a_key_that_is_told_to_have_no_effect_is_named_nowhere() -> None:
    """But in the tables: of what a node tells of its configs, of keys, and of those that a client's file may hold."""
    tables = {"node/config/known_keys.py", "cli/command_keys.py"}
    for path in PRODUCT.glob("[a-z]*/**/*.py"):
        place = path.relative_to(PRODUCT).as_posix()
        if place.startswith(("tests/", "metadata/config_definitions/", "tools/")) or place in tables:
            continue
        named = {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        # A topic's config of the same name as a broker's is another key.
        assert not named & IGNORED_KEYS, place


@pytest.mark.parametrize("key", sorted(READ_AS_TEXT))
def test_the_default_of_what_is_read_as_text_is_taken_without_a_warning(key: str, tmp_path: Path) -> None:
    value = BROKER_CONFIGS[key].default or "1"
    path = tmp_path / "server.properties"
    path.write_text(f"{config_files.PROPERTIES}\n{key}={value}\n")
    config = load_config(path)
    assert not [warning for warning in config.warnings if key in warning]
    assert config.nodes[0].as_kafka_keys()[key] == value


@pytest.mark.parametrize("key", ["auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds"])
def test_what_the_controller_balances_by_is_taken_without_a_warning(key: str, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    value = {"auto.leader.rebalance.enable": "false"}.get(key, "7")
    path.write_text(f"{config_files.PROPERTIES}\n{key}={value}\n")
    assert not [warning for warning in load_config(path).warnings if key in warning]


def test_what_is_read_as_text_and_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"{config_files.PROPERTIES}\noffsets.topic.num.partitions=many\n")
    with pytest.raises(ConfigError, match=r"offsets\.topic\.num\.partitions.*many"):
        load_config(path)
