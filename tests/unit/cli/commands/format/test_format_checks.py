"""What `kquorum format` refuses or remarks because the config at hand knows better, and what its report claims."""

from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.node.config.load import load_config
from kquorum.storage.meta_properties import read_meta_properties
from tests.support.config_files import EXAMPLE, PROPERTIES, SMALL, write

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER = "MvDxzVmcRsaTz33bUuRU6A"
SERVERS = 'controller.quorum.bootstrap.servers = "127.0.0.1:9191"\n'
DYNAMIC = SMALL.replace("[defaults]\n", f"[defaults]\n{SERVERS}")
ONE_FILE = PROPERTIES.replace("/var/lib/kafka", "data")


def run_format(folder: Path, *options: str, text: str = DYNAMIC, name: str = "quorum.toml") -> int:
    return run(["format", "--config", str(write(folder, text, name)), "--data-dir", str(folder), *options])


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (f"1@127.0.0.1:9999:{DIRECTORY}", "in the config it is 127.0.0.1:9191"),
        (f"2@127.0.0.1:9192:{DIRECTORY}", "lists 2, but not node 1, a controller that is to be formatted"),
        (f"1@127.0.0.1:9191:{DIRECTORY},11@127.0.0.1:9092:{OTHER}", "node 11, which is a broker"),
    ],
)
def test_initial_controllers_against_the_config_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], listed: str, words: str
) -> None:
    assert run_format(tmp_path, "-I", listed) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_another_name_of_the_machine_is_only_remarked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, "-I", f"1@controller-1:9191:{DIRECTORY}") == 0
    told = capsys.readouterr()
    assert "warning: --initial-controllers names node 1 controller-1, the config 127.0.0.1" in told.err
    assert told.out.splitlines()[0].endswith("metadata.version 25 (4.0-IV3), first voters 1")


def test_a_directory_id_given_twice_is_reported_as_it_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, "-I", f"1@a:9191:{DIRECTORY},2@b:1:{DIRECTORY}") == 2
    assert f"gives directory id {DIRECTORY} to node 1 and to node 2" in capsys.readouterr().err


def test_voters_that_were_not_written_are_not_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, "-N", "--node", "1") == 0
    assert run_format(tmp_path, "-s", "-g", "--node", "1") == 0
    told = capsys.readouterr()
    assert told.out.count("first voters") == 0
    assert ": nothing was written" in told.out
    assert "node 1 was left as it was and has no first voters: those asked for now (1) were" in told.err


def test_a_single_properties_file_makes_up_no_cluster_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, text=ONE_FILE, name="server.properties") == 2
    told = capsys.readouterr().err
    assert "a single .properties file cannot make one up" in told
    assert "--cluster-id ID (`kquorum random-uuid` makes one)" in told
    assert not (tmp_path / "data").exists()
    assert run_format(tmp_path, "-t", DIRECTORY, text=ONE_FILE, name="server.properties") == 0
    assert read_meta_properties(tmp_path / "data").cluster_id == DIRECTORY


def test_a_standalone_properties_file_may(tmp_path: Path) -> None:
    text = re_dynamic(ONE_FILE)
    assert run_format(tmp_path, "-s", text=text, name="server.properties") == 0
    assert len(read_meta_properties(tmp_path / "data").cluster_id) == 22


def re_dynamic(text: str) -> str:
    voters = "controller.quorum.voters=7@localhost:9093,\\\n    8@localhost:9095"
    assert voters in text
    return text.replace(voters, "controller.quorum.bootstrap.servers=localhost:9093")


def test_up_makes_up_no_cluster_id_for_one_node_of_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, ONE_FILE, "server.properties")
    assert run(["up", "-c", str(path), "--data-dir", str(tmp_path)]) == 2
    assert "there is no cluster.id" in capsys.readouterr().err


def test_a_cluster_id_that_no_tool_makes_is_remarked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, "--node", "11", text=SMALL.replace("AAAAAAAAAAAAAAAAAAAAAg", "x")) == 0
    assert "cluster.id x is not 16 bytes in url-safe base64" in capsys.readouterr().err


@pytest.mark.parametrize("cluster_id", ["zz!F1b3J1bS1leGFtcGxlMQ", "two words", "[bold]", "a/b", "c\u00e9"])
def test_a_broken_cluster_id_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cluster_id: str
) -> None:
    text = SMALL.replace("AAAAAAAAAAAAAAAAAAAAAg", cluster_id)
    assert run_format(tmp_path, text=text) == 2
    told = capsys.readouterr().err
    assert f"{cluster_id!r} is no cluster id" in told
    assert "quorum.toml:" in told
    without = "\n".join(line for line in SMALL.splitlines() if "cluster.id" not in line)
    assert run_format(tmp_path, "--cluster-id", cluster_id, text=without) == 2
    told = capsys.readouterr().err
    assert f"--cluster-id: {cluster_id!r} is no cluster id" in told
    assert not any(tmp_path.rglob("meta.properties"))


def test_a_file_as_data_folder_is_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    assert run(["format", "-c", str(path), "--data-dir", str(path)]) == 2
    assert f"--data-dir {path} is a file, not a folder" in capsys.readouterr().err


def test_defaults_for_controllers_pass_brokers_by(tmp_path: Path) -> None:
    text = DYNAMIC.replace("[defaults]\n", "[defaults]\ncontroller.quorum.auto.join.enable = true\n")
    config = load_config(write(tmp_path, text))
    assert config.node(1).controller_quorum_auto_join_enable
    assert not config.node(11).controller_quorum_auto_join_enable


def test_the_dynamic_example_is_sound() -> None:
    config = load_config(EXAMPLE.parent / "dynamic.toml")
    assert [node.controller_quorum_auto_join_enable for node in config.nodes] == [True, True, True, False]
    assert config.warnings == ()
