"""A sound config is read as it is meant."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from kquorum.broker.internal_topics import creatable_topic
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.image.image import MetadataImage
from kquorum.node.config.addresses import HostPort, Listener, VoterAddress
from kquorum.node.config.load import load_config
from kquorum.node.config.properties_file import properties_of
from tests.support.config_files import EXAMPLE, PROPERTIES, changed, write


def test_the_example_is_three_controllers_and_three_brokers() -> None:
    cluster = load_config(EXAMPLE)
    assert [node.node_id for node in cluster.controllers] == [1, 2, 3]
    assert [node.node_id for node in cluster.brokers] == [11, 12, 13]
    assert len({node.broker_rack for node in cluster.brokers}) == 3
    assert cluster.warnings == ()


@pytest.mark.parametrize("path", sorted(EXAMPLE.parent.glob("*.toml")), ids=lambda path: path.stem)
def test_the_brokers_of_an_example_can_hold_kafkas_own_topics(path: Path) -> None:
    """The defaults ask for three replicas, and a group of consumers waits for ever where there are fewer brokers."""
    cluster = load_config(path)
    for node in cluster.brokers:
        configs = NodeConfigs.of(MetadataImage.empty(), node.node_id, node.as_kafka_keys())
        for topic in ("__consumer_offsets", "__transaction_state"):
            assert creatable_topic(topic, configs).replication_factor <= len(cluster.brokers)
        replicas = configs.number("transaction.state.log.replication.factor")
        assert configs.number("transaction.state.log.min.isr") <= replicas


def test_voters_are_the_controllers_of_the_file(tmp_path: Path) -> None:
    cluster = load_config(write(tmp_path))
    voters = (VoterAddress(1, "127.0.0.1", 9191),)
    assert [node.controller_quorum_voters for node in cluster.nodes] == [voters, voters]
    assert cluster.node(11).controller_addresses == (HostPort("127.0.0.1", 9191),)


def test_a_controller_that_is_advertised_elsewhere_votes_there(tmp_path: Path) -> None:
    text = changed(
        'listeners = "CONTROLLER://127.0.0.1:9191"',
        'listeners = "CONTROLLER://:9191"\nadvertised.listeners = "CONTROLLER://example.org:19191"',
    )
    cluster = load_config(write(tmp_path, text))
    assert cluster.node(1).controller_quorum_voters == (VoterAddress(1, "example.org", 19191),)


def test_a_nodes_own_key_wins_over_the_default(tmp_path: Path) -> None:
    text = changed('process.roles = "broker"', 'process.roles = "broker"\nlog.dirs = "elsewhere"')
    cluster = load_config(write(tmp_path, text), data_dir=tmp_path)
    assert cluster.node(1).log_dirs == (tmp_path / "data/1",)
    assert cluster.node(11).log_dirs == (tmp_path / "elsewhere",)


def test_relative_folders_are_beneath_the_data_dir_and_absolute_ones_stay(tmp_path: Path) -> None:
    text = changed('"data/{node.id}"', '["one/{node.id}", "/two/x"]').replace("{node.id}", "n")
    text = text.replace("node.id = 11", 'node.id = 11\nlog.dirs = "b,c"\nmetadata.log.dir = "/meta"')
    cluster = load_config(write(tmp_path, text), data_dir=Path("/base"))
    assert cluster.node(1).log_dirs == (Path("/base/one/n"), Path("/two/x"))
    assert cluster.node(1).metadata_log_dir == Path("/base/one/n")
    assert cluster.node(11).log_dirs == (Path("/base/b"), Path("/base/c"))
    assert cluster.node(11).metadata_log_dir == Path("/meta")


def test_dotted_quoted_and_nested_toml_keys_are_one_thing(tmp_path: Path) -> None:
    text = changed("node.id = 11", '"node.id" = 11\nbroker = { rack = "a" }')
    assert load_config(write(tmp_path, text)).node(11).broker_rack == "a"


def test_a_kafka_properties_file_is_the_config_of_one_node(tmp_path: Path) -> None:
    path = write(tmp_path, PROPERTIES, "server.properties")
    cluster = load_config(path)
    node = cluster.node(7)
    assert node.controller_quorum_voters == (
        VoterAddress(7, "localhost", 9093),
        VoterAddress(8, "localhost", 9095),
    )
    assert node.listeners == (Listener("CONTROLLER", "localhost", 9093),)
    assert node.is_controller
    assert not node.is_broker
    assert cluster.warnings == (
        f"{path}:9: num.network.threads has no effect here: each node serves all connections in one event loop",
    )


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("a=b", "a", "b"),
        ("  a : b c ", "a", "b c"),
        ("a b", "a", "b"),
        ("a\\=b=c", "a=b", "c"),
        ("a=\\u0041\\t", "a", "A"),
        ("a", "a", ""),
        ("path=C:\\\\x", "path", "C:\\x"),
    ],
)
def test_properties_are_read_as_java_reads_them(tmp_path: Path, line: str, key: str, value: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(line)
    assert properties_of(file) == [(1, key, value)]


def test_comments_and_continued_lines_keep_the_number_of_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("! no\n\na=1,\\\n   2\nb=3\n")
    assert properties_of(file) == [(3, "a", "1,2"), (5, "b", "3")]


def test_ipv6_hosts_lose_their_brackets_and_get_them_back(tmp_path: Path) -> None:
    text = changed("PLAINTEXT://127.0.0.1:9092", "plaintext://[::1]:9092")
    listener = load_config(write(tmp_path, text)).node(11).listeners[0]
    assert listener == Listener("PLAINTEXT", "::1", 9092)
    assert str(listener) == "PLAINTEXT://[::1]:9092"


def test_snapshots_and_retention_have_kafkas_keys_and_defaults(tmp_path: Path) -> None:
    node = load_config(write(tmp_path)).node(1)
    assert node.metadata_log_max_record_bytes_between_snapshots == 20 * 1024 * 1024
    assert node.metadata_log_max_snapshot_interval_ms == 3_600_000
    assert node.metadata_max_retention_bytes == 100 * 1024 * 1024
    assert node.metadata_max_retention_ms == node.metadata_log_segment_ms == 7 * 24 * 3_600_000
    assert node.kquorum_reserved_space_bytes == 16 * 1024 * 1024
    text = changed(
        "node.id = 11", "node.id = 11\nmetadata.max.retention.ms = -1\nmetadata.log.segment.ms = 5"
    )
    cluster = load_config(write(tmp_path, text))
    assert (cluster.node(11).metadata_max_retention_ms, cluster.node(11).metadata_log_segment_ms) == (-1, 5)
    assert cluster.warnings == ()


def test_a_config_cannot_be_changed(tmp_path: Path) -> None:
    node = load_config(write(tmp_path)).node(1)
    with pytest.raises(ValidationError, match="frozen"):
        node.node_id = 5  # type: ignore[misc]
