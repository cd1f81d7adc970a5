"""A wrong key or value is answered with what it was meant to be, and all mistakes of a file are named at once."""

from pathlib import Path

import pytest

from kquorum.node.config.key_hints import unknown_key, value_in_a_unit
from tests.support.config_files import SMALL, changed
from tests.support.node.config_errors import messages


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("num.partitons", " (did you mean num.partitions?)"),
        ("broker.session.timeout.seconds", " (did you mean broker.session.timeout.ms, in milliseconds?)"),
        ("broker.session.timeout", " (did you mean broker.session.timeout.ms, in milliseconds?)"),
        (
            "log.retention.days",
            " (did you mean log.retention.ms, in milliseconds or log.retention.minutes, in minutes or "
            "log.retention.hours, in hours or log.retention.bytes, in bytes?)",
        ),
        (
            "retention.ms",
            " (retention.ms is a config of topics, which `kquorum configs alter --topic` sets; log.retention.ms is the "
            "default of all topics)",
        ),
        (
            "remote.storage.enable",
            " (remote.storage.enable is a config of topics, which `kquorum configs alter --topic` sets)",
        ),
        ("sasl.kerberos.service.nam", " (did you mean sasl.kerberos.service.name?)"),
        ("ssl.keystore.pass", " (did you mean ssl.keystore.password?)"),
        ("qqqq", ""),
    ],
)
def test_an_unknown_key_is_answered_with_what_was_meant(key: str, hint: str) -> None:
    assert unknown_key(key) == hint


def test_names_that_are_equally_near_are_both_named() -> None:
    assert unknown_key("log.cleaner.io.buffer") == (" (did you mean log.cleaner.io.buffer.size?)")
    found = unknown_key("group.share.max.session.timeout.mss")
    assert "group.share.max.session.timeout.ms" in found


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("broker.session.timeout.ms", "9s", "; write 9000: the key is in milliseconds"),
        ("broker.session.timeout.ms", "9000 ms", "; write 9000: the key is in milliseconds"),
        ("metadata.max.retention.ms", "7d", "; write 604800000: the key is in milliseconds"),
        ("log.retention.hours", "7d", "; write 168: the key is in hours"),
        ("leader.imbalance.check.interval.seconds", "5min", "; write 300: the key is in seconds"),
        ("metadata.max.retention.bytes", "100MB", "; write 104857600: the key is in bytes"),
        ("log.retention.hours", "90min", "; write the number alone"),
        ("num.partitions", "3p", "; write the number alone"),
        ("num.partitions", "many", ""),
        ("broker.rack", "9s", ""),
        ("broker.session.timeout.ms", 9, ""),
    ],
)
def test_a_value_with_a_unit_is_answered_with_the_number(key: str, value: object, hint: str) -> None:
    assert value_in_a_unit(key, value) == hint


def test_the_number_for_a_unit_stands_in_the_message(tmp_path: Path) -> None:
    text = changed(
        "node.id = 11", 'node.id = 11\nbroker.session.timeout.ms = "9s"\nlog.retention.hours = "7d"'
    )
    assert messages(tmp_path, text) == [
        "quorum.toml:16: log.retention.hours: Invalid value 7d for configuration log.retention.hours: Not a number of "
        "type INT; write 168: the key is in hours",
        "quorum.toml:15: broker.session.timeout.ms: '9s' must be a valid integer, unable to parse string as an "
        "integer; write 9000: the key is in milliseconds",
    ]


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("delegation.token.master.key", "use delegation.token.secret.key (Kafka 4.0 removed it)"),
        ("zookeeper.ssl.client.enable", "KRaft needs no ZooKeeper; take this key out (Kafka 4.0 removed it)"),
        ("advertised.host.name", "advertised.listeners has host and port (Kafka 3.0 removed it)"),
    ],
)
def test_a_key_that_kafka_removed_is_answered_with_what_replaced_it(
    key: str, remedy: str, tmp_path: Path
) -> None:
    text = changed("node.id = 11", f'node.id = 11\n{key} = "x"')
    assert messages(tmp_path, text) == [f"quorum.toml:15: {key} cannot be used: {remedy}"]


def test_all_mistakes_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    """A section, a value of no config, an unknown key, a broken value, and rules over several keys and nodes."""
    text = SMALL.replace("[defaults]\n", '[defaults]\nbroker.rack = [["a"]]\n').replace(
        "node.id = 11",
        'node.id = 11\nnum.partitons = 3\nmin.insync.replicas = "x"\nbroker.heartbeat.interval.ms = 9000\n'
        'zookeeper.connect = "zk"',
    )
    text = text.replace("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://127.0.0.1:9191") + "[more]\na = 1\n"
    found = "\n".join(messages(tmp_path, text))
    for part in (
        "unknown section [more]",
        "broker.rack is a list of lists",
        "unknown key num.partitons",
        "min.insync.replicas: 'x' must be",
        "zookeeper.connect cannot be used",
        "broker.heartbeat.interval.ms (9000) must be less than broker.session.timeout.ms (9000)",
        "PLAINTEXT of node 11 has the port of CONTROLLER of node 1",
    ):
        assert part in found, part


def test_all_bad_lines_of_a_properties_file_are_named_at_once(tmp_path: Path) -> None:
    text = "a=\\u12\nnode.id=1\nb=\\ud800\n"
    found = messages(tmp_path, text, "server.properties")
    assert [each.partition(": ")[0] for each in found] == ["server.properties:1", "server.properties:3"]


def test_what_follows_from_a_broken_key_alone_is_not_named(tmp_path: Path) -> None:
    """Without its own session timeout the node has the default, which is none of the file's mistakes."""
    text = changed(
        "node.id = 11",
        'node.id = 11\nbroker.session.timeout.ms = "60 s"\nbroker.heartbeat.interval.ms = 10000',
    )
    (found,) = messages(tmp_path, text)
    assert "broker.session.timeout.ms: '60 s' must be a valid integer" in found
