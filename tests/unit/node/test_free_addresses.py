"""A node whose ports are taken says so before it stands for election or asks to be admitted."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.network.errors import CannotListen, PortInUse
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports
from kquorum.node.free_addresses import check_addresses_are_free
from kquorum.node.logs import FILE_NAME
from kquorum.raft.adapters.election_log import read_elections
from tests.support.tree import ROOT


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def config(folder: Path, listeners: str, *lines: str) -> Path:
    path = folder / "one.toml"
    text = f"""
[cluster]
cluster.id = "a3F1b3J1bS1leGFtcGxlMQ"
[[nodes]]
node.id = 1
process.roles = "controller,broker"
controller.listener.names = "CONTROLLER"
listeners = "{listeners}"
log.dirs = "{folder}/data"
"""
    path.write_text("\n".join((text, *lines)))
    return path


def cases(taken: int) -> dict[str, tuple[str, tuple[str, ...]]]:
    controller, broker = free_ports(2)
    free = f"CONTROLLER://127.0.0.1:{controller},PLAINTEXT://127.0.0.1:{broker}"
    return {
        "controller": (f"CONTROLLER://127.0.0.1:{taken},PLAINTEXT://127.0.0.1:{broker}", ()),
        "broker": (f"CONTROLLER://127.0.0.1:{controller},PLAINTEXT://127.0.0.1:{taken}", ()),
        "grpc": (free, (f'kquorum.grpc.listener = "127.0.0.1:{taken}"',)),
        "metrics": (free, (f'kquorum.metrics.listener = "127.0.0.1:{taken}"',)),
    }


@pytest.mark.parametrize("which", ["controller", "grpc"])
def test_a_node_that_cannot_listen_does_not_join(tmp_path: Path, taken_port: int, which: str) -> None:
    listeners, lines = cases(taken_port)[which]
    path = config(tmp_path, listeners, *lines)
    assert run(["format", "-c", str(path)]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "kquorum.cli.entry", "start", "-c", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitStatus.CANNOT_LISTEN
    folder = tmp_path / "data"
    logged = (folder / FILE_NAME).read_text()
    assert "already in use" in logged
    assert "Traceback" not in logged + done.stderr
    assert not re.search(r"[EWI]\d{4} ", done.stderr), "gRPC adds no lines of its own"
    noted = list(read_elections(folder / "__cluster_metadata-0"))
    assert [event for event in noted if event.role in ("candidate", "leader")] == []


def test_what_is_free_stays_free(tmp_path: Path) -> None:
    listeners, lines = cases(free_ports(1)[0])["grpc"]
    node = load_config(config(tmp_path, listeners, *lines)).node(1)
    check_addresses_are_free(node)
    check_addresses_are_free(node)


def test_the_error_is_that_of_the_listener(tmp_path: Path, taken_port: int) -> None:
    for which, (listeners, lines) in cases(taken_port).items():
        node = load_config(config(tmp_path, listeners, *lines)).node(1)
        with pytest.raises(CannotListen, match=f"127.0.0.1:{taken_port}") as caught:
            check_addresses_are_free(node)
        if which in ("controller", "broker"):
            assert isinstance(caught.value, PortInUse)
        else:
            assert f"kquorum.{which}.listener" in str(caught.value)


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    listeners = f"CONTROLLER://127.0.0.1:{port},PLAINTEXT://192.0.2.1:{port}"
    path = config(tmp_path, listeners, "kquorum.allow.unsecured.listeners = true")
    with pytest.raises(CannotListen, match=r"cannot listen on 192\.0\.2\.1"):
        check_addresses_are_free(load_config(path).node(1))
