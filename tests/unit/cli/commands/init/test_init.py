"""`kquorum init` writes configs that a node accepts, and says how the cluster begins."""

import json
from itertools import product
from pathlib import Path

import pytest

from kquorum.cli.commands.init.writing import NewCluster, config_text, next_commands
from kquorum.cli.main import run
from kquorum.node.config.load import load_config


def new_cluster(**changed: object) -> NewCluster:
    values: dict[str, object] = {
        "cluster_id": "a3F1b3J1bS1leGFtcGxlMQ",
        "controllers": 3,
        "brokers": 3,
        "is_dynamic": False,
        "hosts": ["127.0.0.1"],
        "folder": "data",
        "file_name": "quorum.toml",
    }
    return NewCluster(**(values | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("controllers", "brokers", "is_dynamic", "hosts"),
    list(product((1, 3, 5), (0, 1, 20), (False, True), (("127.0.0.1",), ("kq1", "kq2", "kq3")))),
)
def test_every_config_is_one_that_a_node_accepts(
    controllers: int, brokers: int, is_dynamic: bool, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "quorum.toml"
    new = new_cluster(controllers=controllers, brokers=brokers, is_dynamic=is_dynamic, hosts=hosts)
    path.write_text(config_text(new))
    cluster = load_config(path)
    assert (len(cluster.controllers), len(cluster.brokers)) == (controllers, brokers)
    assert cluster.warnings == ()
    voters = {len(node.controller_quorum_voters) for node in cluster.nodes}
    assert voters == ({0} if is_dynamic else {controllers})
    assert {broker.broker_rack for broker in cluster.brokers} <= {None, *hosts}
    assert max(map(len, path.read_text().splitlines())) <= 120


def test_one_machine_begins_with_one_command() -> None:
    assert next_commands(new_cluster()) == ["kquorum up -c quorum.toml"]


def test_several_machines_begin_node_by_node() -> None:
    static = next_commands(new_cluster(hosts=["a", "b"], brokers=1))
    assert [line.split(" #")[0].strip() for line in static] == [
        *(f"kquorum format -c quorum.toml --node {each}" for each in (1, 2, 3, 11)),
        *(f"kquorum start -c quorum.toml --node {each}" for each in (1, 2, 3, 11)),
    ]
    assert static[1].endswith("# on b")
    dynamic = next_commands(new_cluster(hosts=["a", "b"], brokers=1, is_dynamic=True))
    assert "--node 1 --standalone" in dynamic[0]
    assert all("--no-initial-controllers" in line for line in dynamic[1:4])


def test_a_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "quorum.toml"
    assert run(["init", str(path), "--controllers", "1"]) == 0
    assert f"kquorum up -c {path}" in capsys.readouterr().out
    before = path.read_text()
    assert run(["init", str(path), "--json"]) == 1
    assert "exists and is not overwritten" in json.loads(capsys.readouterr().out)["error"]
    assert path.read_text() == before
    assert run(["format", "-c", str(path), "--data-dir", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    "options",
    [("--host", "a b"), ("--host", 'a"'), ("--host", ""), ("--folder", 'a"b'), ("--controllers", "2")],
)
def test_what_cannot_stand_in_a_config_is_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "quorum.toml"
    assert run(["init", str(path), *options]) == 2
    assert not path.exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path / "nowhere" / "quorum.toml")]) == 1
    assert f"there is no folder {tmp_path / 'nowhere'}" in capsys.readouterr().err


def test_an_empty_folder_is_not_the_root_of_the_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "quorum.toml"
    assert run(["init", str(path), "--folder", ""]) == 2
    assert "--folder" in capsys.readouterr().err
    assert not path.exists()
