"""A broken config gives one clear message for each broken rule, with file and line."""

from pathlib import Path

import pytest

from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from tests.support.config_files import PROPERTIES, SMALL, changed, write
from tests.support.node.config_errors import messages

_CASES = {
    "an unknown key names the nearest one": (
        changed("node.id = 11", "node.id = 11\nnum.partitons = 3"),
        "quorum.toml:15: unknown key num.partitons (did you mean num.partitions?)",
    ),
    "an unknown section names the nearest one": (
        changed("[defaults]", "[default]"),
        "quorum.toml:4: unknown section [default] (did you mean defaults?); "
        "a quorum config has [cluster], [defaults] and [[nodes]]",
    ),
    "a role that is none": (
        changed('"broker"', '"brokr"'),
        "quorum.toml:15: process.roles: 'brokr' must be 'broker' or 'controller'",
    ),
    "a node without id": (changed("node.id = 11\n", ""), "quorum.toml:13: a node lacks node.id"),
    "a selector of replicas that is a class of the user's": (
        changed("node.id = 11", 'node.id = 11\nreplica.selector.class = "com.example.Nearest"'),
        "quorum.toml:15: node 11: replica.selector.class is com.example.Nearest: kquorum cannot run a Java class, and "
        "has the rules of org.apache.kafka.common.replica.LeaderSelector and "
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    ),
    "an assignor that is a class of the user's": (
        changed("node.id = 11", 'node.id = 11\ngroup.consumer.assignors = "range,com.example.Mine"'),
        "quorum.toml:15: node 11: group.consumer.assignors has com.example.Mine: kquorum cannot run a Java class, and "
        "has the assignors uniform and range",
    ),
    "a negative id": (
        changed("node.id = 11", "node.id = -1"),
        "quorum.toml:14: node.id: -1 must be greater than or equal to 0",
    ),
    "a listener without a port": (
        changed("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://127.0.0.1"),
        "quorum.toml:16: listeners: '127.0.0.1' is not host:port",
    ),
    "a port beyond the last": (
        changed("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://127.0.0.1:99092"),
        "quorum.toml:16: listeners: '127.0.0.1:99092' has port 99092; the highest is 65535",
    ),
    "a number that is none": (
        changed("node.id = 11", 'node.id = 11\nnum.partitions = "many"'),
        "quorum.toml:15: num.partitions: 'many' must be a valid integer, unable to parse string as an integer",
    ),
    "a flag that is none": (
        changed("node.id = 11", 'node.id = 11\ncontrolled.shutdown.enable = "yes"'),
        "quorum.toml:15: controlled.shutdown.enable: 'yes' is neither true nor false",
    ),
    "snapshots after no bytes at all": (
        changed("node.id = 11", "node.id = 11\nmetadata.log.max.record.bytes.between.snapshots = 0"),
        "quorum.toml:15: metadata.log.max.record.bytes.between.snapshots: 0 must be greater than or equal to 1",
    ),
    "a retention below the one that means none": (
        changed("node.id = 11", "node.id = 11\nmetadata.max.retention.bytes = -2"),
        "quorum.toml:15: metadata.max.retention.bytes: -2 must be greater than or equal to -1",
    ),
    "a snapshot interval that is negative": (
        changed("node.id = 11", "node.id = 11\nmetadata.log.max.snapshot.interval.ms = -1"),
        "quorum.toml:15: metadata.log.max.snapshot.interval.ms: -1 must be greater than or equal to 0",
    ),
    "a key of ZooKeeper times": (
        changed("node.id = 11", 'node.id = 11\nzookeeper.connect = "zk:2181"'),
        "quorum.toml:15: zookeeper.connect cannot be used: KRaft needs no ZooKeeper; take this key out "
        "(Kafka 4.0 removed it)",
    ),
    "an id given twice": (changed("node.id = 11", "node.id = 1"), "quorum.toml:14: node 1 is there twice"),
    "two ids for one node": (
        changed("node.id = 11", "node.id = 11\nbroker.id = 12"),
        "quorum.toml:15: node 11: broker.id is 12, but node.id is 11: they must be equal",
    ),
    "one port for two nodes": (
        changed("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://0.0.0.0:9191").replace(
            "node.id = 11", 'node.id = 11\nadvertised.listeners = "PLAINTEXT://127.0.0.1:9191"'
        ),
        "quorum.toml:17: PLAINTEXT of node 11 has the port of CONTROLLER of node 1: 0.0.0.0:9191",
    ),
    "one port twice in a node": (
        changed("node.id = 11", 'node.id = 11\nkquorum.grpc.listener = "127.0.0.1:9092"'),
        "quorum.toml:15: kquorum.grpc.listener of node 11 has the port of PLAINTEXT of node 11: 127.0.0.1:9092",
    ),
    "one folder for two nodes": (
        changed('"data/{node.id}"', '"/data"'),
        "quorum.toml:6: node 11 has the folder of node 1: /data",
    ),
    "a broker among the voters": (
        changed("node.id = 11", 'node.id = 11\ncontroller.quorum.voters = "1@127.0.0.1:9191,11@127.0.0.1:9"'),
        "quorum.toml:15: node 11: controller.quorum.voters must not contain node 11, "
        "which is only a broker; it has 1, 11",
    ),
    "a controller that is no voter": (
        changed("node.id = 1\n", 'node.id = 1\ncontroller.quorum.voters = "2@127.0.0.1:9191"\n'),
        "quorum.toml:10: node 1: controller.quorum.voters must contain node 1, a controller; it has 2",
    ),
    "a broker with a controller listener": (
        changed("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9094"),
        "quorum.toml:16: node 11: listeners of a broker must not have CONTROLLER, "
        "which controller.listener.names gives to controllers",
    ),
    "a controller with a listener for clients": (
        changed("CONTROLLER://127.0.0.1:9191", "CONTROLLER://127.0.0.1:9191,PLAINTEXT://127.0.0.1:9094"),
        "quorum.toml:11: node 1: listeners of a node that is only a controller has PLAINTEXT, "
        "which controller.listener.names does not name",
    ),
    "a protocol that is not spoken": (
        changed(
            "node.id = 11", 'node.id = 11\nlistener.security.protocol.map = "PLAINTEXT:QUIC,CONTROLLER:SSL"'
        ),
        "quorum.toml:15: node 11: listener.security.protocol.map: listener PLAINTEXT is mapped to QUIC; there are "
        "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
    ),
    "a listener that the map forgets": (
        changed("node.id = 11", 'node.id = 11\nlistener.security.protocol.map = "PLAINTEXT:SSL"'),
        "quorum.toml:15: node 11: listener.security.protocol.map: listener CONTROLLER is not mapped, and the others "
        "are; add CONTROLLER:PROTOCOL",
    ),
    "keys of TLS for a listener that does not exist": (
        changed("node.id = 11", 'node.id = 11\nlistener.name.clint.ssl.client.auth = "required"'),
        "quorum.toml:15: listener.name.clint.ssl.client.auth is for a listener CLINT; there are CONTROLLER, GRPC, "
        "PLAINTEXT",
    ),
    "a number of SASL that is none": (
        changed("node.id = 11", "node.id = 11\nconnections.max.reauth.ms = -1"),
        "quorum.toml:15: node 11: connections.max.reauth.ms must be a number, 0 or more",
    ),
    "a key of TLS that is misspelt": (
        changed("node.id = 11", 'node.id = 11\nssl.keystore.loction = "x"'),
        "quorum.toml:15: unknown key ssl.keystore.loction (did you mean ssl.keystore.location?)",
    ),
    "a password of a file that has none": (
        changed("node.id = 11", 'node.id = 11\nssl.keystore.password = "x"'),
        "quorum.toml:15: ssl.keystore.password cannot be used: a PEM file has no password of its own; that of its "
        "private key is ssl.key.password",
    ),
    "a heartbeat slower than the session": (
        changed("node.id = 11", "node.id = 11\nbroker.heartbeat.interval.ms = 9000"),
        "quorum.toml:15: node 11: broker.heartbeat.interval.ms (9000) must be less than "
        "broker.session.timeout.ms (9000)",
    ),
    "a voter that no node can connect to": (
        changed("node.id = 11", 'node.id = 11\ncontroller.quorum.voters = "1@0.0.0.0:9191"'),
        "quorum.toml:15: controller.quorum.voters: '1@0.0.0.0:9191' names no host that others can connect to",
    ),
    "nodes of two clusters": (
        changed("node.id = 11", 'node.id = 11\ncluster.id = "x"'),
        "quorum.toml:2: the nodes of one config have different cluster.id: AAAAAAAAAAAAAAAAAAAAAg, x",
    ),
}


@pytest.mark.parametrize(("text", "message"), _CASES.values(), ids=_CASES.keys())
def test_a_broken_rule_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    found = messages(tmp_path, text)
    assert message in found, found


def test_the_sound_config_has_no_problem(tmp_path: Path) -> None:
    load_config(write(tmp_path))


def test_all_broken_rules_are_reported_at_once(tmp_path: Path) -> None:
    text = changed("node.id = 11", "node.id = 11\nfoo.bar = 1\nnum.partitions = 0").replace("9191", "91910")
    found = messages(tmp_path, text)
    assert len([line for line in found if "foo.bar" in line]) == 1
    assert len([line for line in found if "num.partitions" in line]) == 1
    assert len([line for line in found if "91910" in line]) == 1


def test_rules_between_nodes_are_reported_all_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("{node.id}", "x").replace("127.0.0.1:9092", "127.0.0.1:9191")
    found = messages(tmp_path, text)
    assert len(found) == 2
    assert any("has the folder of" in line for line in found)
    assert any("has the port of" in line for line in found)


def test_neither_voters_nor_bootstrap_servers(tmp_path: Path) -> None:
    text = changed('"controller"', '"broker"').replace("CONTROLLER://", "PLAINTEXT://")
    assert any("both empty" in line for line in messages(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "quorum.toml: this is not TOML: Invalid value (at end of document)"),
        ("", "quorum.toml: there are no nodes: add a [[nodes]] table for each"),
        ("nodes = 3", "quorum.toml: there are no nodes: add a [[nodes]] table for each"),
    ],
)
def test_a_file_that_is_no_quorum_config(tmp_path: Path, text: str, message: str) -> None:
    assert messages(tmp_path, text) == [message]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing.toml: there is no such config file"):
        load_config(tmp_path / "nothing.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "quorum.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "quorum.toml")


def test_a_node_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    cluster = load_config(write(tmp_path))
    with pytest.raises(ConfigError, match=r"there is no node 4; the nodes are 1, 11"):
        cluster.node(4)


def test_a_properties_file_tells_lines_too(tmp_path: Path) -> None:
    found = messages(tmp_path, PROPERTIES + "node.idd=3\n", "server.properties")
    assert found == ["server.properties:10: unknown key node.idd (did you mean node.id?)"]
