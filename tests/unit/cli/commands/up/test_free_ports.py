"""`kquorum up --free-ports`: where the copy of the config goes, and how the other commands find it."""

import io
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.console import Console

from kquorum.cli.commands.up import run as up_run
from kquorum.cli.commands.up.run import look
from kquorum.cli.commands.up.view import ChangeLines, ClusterView, NodeState
from kquorum.cli.main import run
from kquorum.cli.processes import NodeGroup, NodeProcess
from kquorum.node.config.load import load_config
from kquorum.node.config.model import ClusterConfig
from tests.support.config_files import write


def test_without_a_data_folder_the_copy_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[ClusterConfig] = []

    def note(cluster: ClusterConfig, *, data_dir: Path | None) -> None:
        ran.append(cluster)

    monkeypatch.setattr(up_run, "run_cluster", note)
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path)
    assert run(["up", "-c", str(path), "--free-ports"]) == 0
    copy = tmp_path / "kquorum-data/free-ports/quorum.toml"
    assert f"export KQUORUM_CONFIG={copy} lets the other commands find it" in capsys.readouterr().err
    (cluster,) = ran
    assert cluster.nodes == load_config(copy).nodes
    assert (copy.parent / "data/1/meta.properties").exists()
    assert 9191 not in {listener.port for node in cluster.nodes for listener in node.listeners}


def test_a_copy_is_not_written_over_its_original(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    before = path.read_text()
    assert run(["up", "-c", str(path), "--free-ports", "--data-dir", str(tmp_path)]) == 2
    assert "name another folder" in capsys.readouterr().err
    assert path.read_text() == before


def test_ports_in_use_are_reported_at_once_and_nothing_is_formatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    cluster = load_config(path)
    listeners = [listener for node in cluster.nodes[:2] for listener in node.listeners]
    with ExitStack() as held:
        for listener in listeners:
            held.enter_context(socket.create_server(("127.0.0.1", listener.port)))
        assert run(["up", "-c", str(path), "--data-dir", str(tmp_path)]) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.count("already in use") == 1
    assert all(f":{listener.port} (node" in told.err for listener in listeners)
    assert "--free-ports" in told.err
    assert not any(tmp_path.rglob("meta.properties"))


def test_a_node_that_was_started_again_by_hand_is_not_called_ended(tmp_path: Path) -> None:
    cluster = load_config(write(tmp_path))
    config = cluster.nodes[0]
    process = NodeProcess(cluster.path, config.node_id, tmp_path / "output")
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(9)"])
    ended.wait()
    process._process = ended
    group = NodeGroup([process])
    view = look(group, (), cluster).nodes[config.node_id]
    assert (view.state, view.exit_status) == (NodeState.ENDED, 9)
    with socket.create_server(("127.0.0.1", config.listeners[0].port)):
        view = up_run._node_view(process, config)
    assert view.state is NodeState.OUTSIDE
    lines = io.StringIO()
    ChangeLines(Console(file=lines, width=200), cluster).show(ClusterView({config.node_id: view}, None))
    assert f"node {config.node_id} was started again" in lines.getvalue()
    assert "ended" not in lines.getvalue()
