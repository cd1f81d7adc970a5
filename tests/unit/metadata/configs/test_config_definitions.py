"""The definitions agree with themselves, with the node's own config, and with how names are judged."""

import pytest

from kquorum.metadata.configs import client_metrics, groups, topics
from kquorum.metadata.configs.definition import ConfigDefinition, ConfigType, Update, integer, password
from kquorum.metadata.configs.resolution import (
    NodeConfigs,
    broker_synonyms,
    group_synonym,
    topic_synonyms,
)
from kquorum.metadata.configs.rules import check_group_configs, check_topic_configs
from kquorum.metadata.configs.security import AUTHORIZER_DEFINITIONS
from kquorum.metadata.configs.table import (
    BROKER_CONFIGS,
    BROKER_PARTS,
    DEFINITIONS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    definition_of,
    is_sensitive,
)
from kquorum.metadata.configs.used_by import never
from kquorum.metadata.configs.validators import (
    ConfigValue,
    InvalidConfigError,
    Validator,
    at_least,
    invalid_value,
)
from kquorum.node.config.model import NodeConfig
from kquorum.wire.sensitive_configs import is_sensitive_config

EVERY = [(kind, each) for kind, definitions in DEFINITIONS.items() for each in definitions.values()]
NOT_USED = never("a test makes it")
NOWHERE = NodeConfigs({}, {}, {})
BROKER = 4
# Kafka hands these to its authorizer unread: they are no keys of its brokers.
THE_AUTHORIZERS = {"super.users", "allow.everyone.if.no.acl.found"}


def test_defaults_are_valid() -> None:
    for _, definition in EVERY:
        if definition.default is not None:
            definition.parse(definition.default)


def test_a_name_is_defined_once() -> None:
    names = [each.name for part in (*BROKER_PARTS.values(), AUTHORIZER_DEFINITIONS) for each in part]
    assert len(set(names)) == len(names)
    for part in (topics, groups, client_metrics):
        assert len({each.name for each in part.DEFINITIONS}) == len(part.DEFINITIONS)


def test_each_has_words_of_its_own_and_only_brokers_are_changed_while_they_run() -> None:
    for kind, definition in EVERY:
        assert definition.documentation.endswith("."), definition.name
        assert kind == BROKER or definition.update is Update.READ_ONLY


def test_what_kafka_lets_change_may_change() -> None:
    """102 keys in Kafka 4.3.1."""
    updates = [each.update for each in BROKER_CONFIGS.values()]
    assert (updates.count(Update.PER_BROKER), updates.count(Update.CLUSTER_WIDE)) == (37, 65)


def test_the_judgement_by_name_and_the_type_agree_on_what_is_a_secret() -> None:
    """wire/ judges by the name alone, since it knows no definitions: in dumps, comparisons and over gRPC."""
    for _, definition in EVERY:
        for name in (definition.name, f"listener.name.inside.{definition.name}"):
            assert is_sensitive_config(name) == (definition.type is ConfigType.PASSWORD), name


def test_the_node_knows_its_own_keys_and_defaults() -> None:
    for field in NodeConfig.model_fields.values():
        if field.alias is None or field.alias in THE_AUTHORIZERS:
            continue
        definition = BROKER_CONFIGS[field.alias]
        if isinstance(field.default, bool | int) and field.alias != "broker.id":
            assert definition.default == str(field.default).lower(), field.alias


def test_synonyms_are_brokers_keys() -> None:
    for name in TOPIC_CONFIGS:
        assert {synonym.name for synonym in topic_synonyms(name)} <= BROKER_CONFIGS.keys()
    for name in GROUP_CONFIGS:
        assert (group_synonym(name) or "node.id") in BROKER_CONFIGS, name


@pytest.mark.parametrize(
    ("name", "synonyms"),
    [
        ("num.io.threads", ("num.io.threads",)),
        ("log.retention.hours", ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
        (
            "listener.name.inside.ssl.keystore.password",
            ("listener.name.inside.ssl.keystore.password", "ssl.keystore.password"),
        ),
        (
            "listener.name.x.plain.sasl.jaas.config",
            ("listener.name.x.plain.sasl.jaas.config", "sasl.jaas.config"),
        ),
        ("no.such.key", ("no.such.key",)),
    ],
)
def test_the_names_of_one_config(name: str, synonyms: tuple[str, ...]) -> None:
    assert broker_synonyms(name) == synonyms


def test_a_listeners_key_is_the_key_and_an_unknown_one_may_be_a_secret() -> None:
    found = definition_of(BROKER, "listener.name.inside.ssl.key.password")
    assert found is not None
    assert found.name == "ssl.key.password"
    assert is_sensitive(BROKER, "listener.name.x.scram-sha-256.sasl.jaas.config")
    assert is_sensitive(BROKER, "my.plugin.password")
    assert is_sensitive(BROKER, "my.plugin.auth")
    assert not is_sensitive(BROKER, "listener.name.inside.ssl.keystore.type")
    assert not is_sensitive(BROKER, "num.io.threads")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e-1f", 0.1),
        (ConfigType.DOUBLE, "-Infinity", float("-inf")),
        (ConfigType.LIST, " a ,b , c", ("a", "b", "c")),
        (ConfigType.LIST, " ", ()),
        (ConfigType.STRING, " a b ", "a b"),
    ],
)
def test_text_is_read_as_java_reads_it(kind: ConfigType, text: str, value: ConfigValue) -> None:
    assert definition("x", kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.BOOLEAN, "1"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1_0"),
        (ConfigType.INT, "9" * 5000),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "٣"),
        (ConfigType.DOUBLE, "infinity"),
        (ConfigType.DOUBLE, "0x1p1"),
        (ConfigType.DOUBLE, ""),
    ],
)
def test_what_is_no_value_of_the_type(kind: ConfigType, text: str) -> None:
    with pytest.raises(InvalidConfigError, match="for configuration x: "):
        definition("x", kind).parse(text)


def definition(name: str, kind: ConfigType) -> ConfigDefinition:
    made = integer(name, None, "A test's.", used_by=NOT_USED)
    return ConfigDefinition(made.name, kind, None, made.importance, made.documentation, NOT_USED)


def test_a_secret_is_not_quoted() -> None:
    with pytest.raises(InvalidConfigError) as refused:
        password("p", None, "A test's.", refusing(), used_by=NOT_USED).parse("hush")
    assert "hush" not in str(refused.value)
    with pytest.raises(InvalidConfigError, match="Invalid value 1 for"):
        integer("i", None, "A test's.", at_least(2), used_by=NOT_USED).parse("1")


def refusing() -> Validator:
    def check(name: str, _value: ConfigValue, text: str) -> None:
        raise invalid_value(name, text, "it never fits")

    return Validator("nothing", check)


def test_a_topic_takes_what_it_lacks_from_the_node_in_order() -> None:
    static = {"log.retention.hours": "2"}
    assert NodeConfigs({}, {}, static).for_topic("retention.ms", "1") == ("7200000", 4)
    assert NodeConfigs({}, {"log.retention.ms": "5"}, static).for_topic("retention.ms", "1") == ("5", 3)
    own = {"log.retention.minutes": "-1"}
    assert NodeConfigs(own, {"log.retention.ms": "5"}, static).for_topic("retention.ms", "1") == ("-1", 2)
    assert NOWHERE.for_topic("retention.ms", "1") == ("1", 5)
    assert NodeConfigs({}, {}, {"log.roll.hours": "x"}).for_topic("segment.ms", "1") == ("1", 5)


def test_the_nodes_defaults_count_when_configs_are_weighed_together() -> None:
    node = NodeConfigs({}, {"log.cleaner.max.compaction.lag.ms": "5"}, {})
    check_topic_configs({"min.compaction.lag.ms": "5"}, {}, node)
    with pytest.raises(InvalidConfigError, match=r"lag.ms \(6\) > max"):
        check_topic_configs({"min.compaction.lag.ms": "6"}, {}, node)
    with pytest.raises(InvalidConfigError, match="must be less than or equal to group"):
        check_group_configs(
            {"share.session.timeout.ms": "50000"},
            NodeConfigs({}, {}, {"group.share.max.session.timeout.ms": "49999"}),
        )
