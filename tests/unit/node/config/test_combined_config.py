"""The config of nodes of both roles: what each role takes of it, and what is refused."""

from pathlib import Path

import pytest

from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import advertised_brokers, advertised_controllers, controller_endpoints

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "combined.toml"
LINES = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9191",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9191",
    "log.dirs": "data",
}


def loaded(folder: Path, **changes: str) -> NodeConfig:
    path = folder / "server.properties"
    lines = LINES | {key.replace("_", "."): value for key, value in changes.items()}
    path.write_text("\n".join(f"{key}={value}" for key, value in lines.items()))
    return load_config(path).nodes[0]


def test_the_example_is_three_nodes_each_of_both_roles() -> None:
    cluster = load_config(EXAMPLE)
    assert cluster.brokers == cluster.controllers == cluster.nodes
    assert [voter.id for voter in cluster.nodes[0].controller_quorum_voters] == [1, 2, 3]


def test_each_role_has_its_listeners_and_advertises_those_alone(tmp_path: Path) -> None:
    node = loaded(tmp_path)
    assert [each.name for each in node.broker_listeners] == ["PLAINTEXT"]
    assert [each.name for each in node.controller_listeners] == ["CONTROLLER"]
    assert [str(each) for each in advertised_brokers(node)] == ["PLAINTEXT://127.0.0.1:9092"]
    assert [str(each) for each in advertised_controllers(node)] == ["CONTROLLER://127.0.0.1:9191"]


def test_what_is_advertised_to_clients_leaves_the_controllers_listener_as_it_is(tmp_path: Path) -> None:
    node = loaded(tmp_path, advertised_listeners="PLAINTEXT://broker.example.org:19092")
    assert [str(each) for each in advertised_brokers(node)] == ["PLAINTEXT://broker.example.org:19092"]
    assert [place.port for place in controller_endpoints(node)] == [9191]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"listeners": "CONTROLLER://127.0.0.1:9191"}, "a broker needs a listener for clients"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, "listeners of a controller must have CONTROLLER"),
        ({"controller_quorum_voters": "2@127.0.0.1:9191"}, "must contain node 1, a controller"),
        ({"inter_broker_listener_name": "CONTROLLER"}, "which is no broker listener"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded(tmp_path, **changes)
