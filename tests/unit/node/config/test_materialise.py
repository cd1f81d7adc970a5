"""A copy on free ports is the same cluster elsewhere."""

import socket
from pathlib import Path

import pytest

from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports, with_free_ports
from tests.support.config_files import EXAMPLE, changed, write


def test_free_ports_differ_and_can_be_bound() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


def test_free_ports_are_out_of_the_way_of_outgoing_connections() -> None:
    range_file = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not range_file.exists():
        pytest.skip("this system does not tell its ephemeral range")
    assert max(free_ports(200)) < int(range_file.read_text().split()[0])


def test_every_listener_moves_and_the_voters_follow(tmp_path: Path) -> None:
    target = with_free_ports(EXAMPLE, tmp_path / "run" / "quorum.toml")
    before, after = load_config(EXAMPLE), load_config(target)
    addresses = [(item.host, item.port) for node in after.nodes for item in node.listeners]
    addresses += [node.kquorum_grpc_listener for node in after.nodes if node.kquorum_grpc_listener]
    addresses += [node.kquorum_metrics_listener for node in after.nodes if node.kquorum_metrics_listener]
    assert len(set(addresses)) == 18
    assert {host for host, _ in addresses} == {"127.0.0.1"}
    for voter in after.node(11).controller_quorum_voters:
        assert (voter.host, voter.port) == after.node(voter.id).controller_listeners[0][1:]
    assert not {item.port for node in before.nodes for item in node.listeners} & {
        port for _, port in addresses
    }


def test_all_but_ports_and_folders_stays(tmp_path: Path) -> None:
    target = with_free_ports(EXAMPLE, tmp_path / "quorum.toml")
    moved = {
        "listeners",
        "advertised_listeners",
        "controller_quorum_voters",
        "kquorum_grpc_listener",
        "kquorum_metrics_listener",
        "log_dirs",
        "metadata_log_dir",
    }
    for before, after in zip(load_config(EXAMPLE).nodes, load_config(target).nodes, strict=True):
        assert before.model_dump(exclude=moved) == after.model_dump(exclude=moved)


def test_folders_are_absolute_and_beneath_the_data_dir(tmp_path: Path) -> None:
    target = with_free_ports(EXAMPLE, tmp_path / "quorum.toml", data_dir=tmp_path / "data")
    folders = {
        node.node_id: node.metadata_log_dir for node in load_config(target, data_dir=Path("/other")).nodes
    }
    assert folders[13] == tmp_path / "data" / "kquorum-data" / "node-13"


def test_odd_values_survive_the_copy(tmp_path: Path) -> None:
    text = changed(
        "node.id = 11", 'node.id = 11\nbroker.rack = "a \\"b\\" \\\\c"\ncontrolled.shutdown.enable = false'
    )
    target = with_free_ports(write(tmp_path, text), tmp_path / "copy.toml")
    broker = load_config(target).node(11)
    assert broker.broker_rack == 'a "b" \\c'
    assert broker.controlled_shutdown_enable is False
