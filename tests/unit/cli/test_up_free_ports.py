"""`kquorum up --free-ports`: where the copy of the config goes, and how the other commands find it."""

from pathlib import Path

import pytest

from cli import up_run
from cli.config.load import load_config
from cli.config.model import ClusterConfig
from cli.main import run
from tests.unit.cli.config_files import write


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
