"""`kquorum format`: all or nothing, and never over another's folder."""

import json
from pathlib import Path

import pytest

from kquorum.cli.commands.format.formatting import is_formatted
from kquorum.cli.main import run
from kquorum.node.config.load import load_config
from kquorum.snapshots.bootstrap import metadata_version_of, read_bootstrap_checkpoint
from kquorum.storage.meta_properties import read_meta_properties
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from tests.support.config_files import SMALL, changed, write

ELR = "eligible.leader.replicas.version"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAg"


def run_format(folder: Path, *options: str, text: str = SMALL) -> int:
    return run(["format", "--config", str(write(folder, text)), "--data-dir", str(folder), *options])


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (folder / "data").rglob("*") if path.is_file()}


def test_every_folder_says_whose_it_is(tmp_path: Path) -> None:
    assert run_format(tmp_path) == 0
    found = [read_meta_properties(tmp_path / "data" / str(node_id)) for node_id in (1, 11)]
    assert [(item.cluster_id, item.node_id) for item in found] == [(CLUSTER_ID, 1), (CLUSTER_ID, 11)]
    assert all(item.directory_id is not None for item in found)
    assert len({item.directory_id for item in found}) == 2
    assert all(is_formatted(node) for node in load_config(tmp_path / "quorum.toml", data_dir=tmp_path).nodes)


@pytest.mark.parametrize(
    ("version", "level"), [("3.9-IV0", 21), ("4.0", 25), ("24", 24), ("4.1", 27), ("4.4", 33)]
)
def test_the_checkpoint_names_the_metadata_version(tmp_path: Path, version: str, level: int) -> None:
    assert run_format(tmp_path, "--metadata-version", version) == 0
    records = read_bootstrap_checkpoint((tmp_path / "data/1/bootstrap.checkpoint").read_bytes())
    assert metadata_version_of(records) == level


@pytest.mark.parametrize(
    ("version", "levels"),
    [
        ("3.9", {}),
        ("22", {"group.version": 1}),
        ("4.0", {"group.version": 1, "transaction.version": 2}),
        ("4.1", {"group.version": 1, "transaction.version": 2, ELR: 1}),
        ("4.2-IV0", {"group.version": 1, "transaction.version": 2, ELR: 1, "share.version": 1}),
        (
            "4.4",
            {
                "group.version": 1,
                "transaction.version": 2,
                ELR: 1,
                "share.version": 2,
                "streams.version": 1,
            },
        ),
    ],
)
def test_a_new_cluster_has_the_other_features_of_its_release(
    tmp_path: Path, version: str, levels: dict[str, int]
) -> None:
    assert run_format(tmp_path, "--release-version", version) == 0
    assert other_levels(tmp_path) == levels


def test_features_are_chosen_one_by_one(tmp_path: Path) -> None:
    options = ["-r", "4.1", "-f", f"{ELR}=0", "-f", "share.version=1", "-f", "transaction.version=1"]
    assert run_format(tmp_path, *options) == 0
    assert other_levels(tmp_path) == {"group.version": 1, "share.version": 1, "transaction.version": 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["-r", "3.9", "-f", f"{ELR}=1"],
            f"{ELR} could not be set to 1 because it depends on metadata.version",
        ),
        (["-f", "share.version=3"], "share.version has the levels 0 to 2, not 3"),
        (["-f", "a.version=1"], "there is no feature a.version"),
    ],
)
def test_a_feature_that_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run_format(tmp_path, *options) == 2
    assert words in capsys.readouterr().err
    assert tree(tmp_path) == {}


def other_levels(folder: Path) -> dict[str, int]:
    records = read_bootstrap_checkpoint((folder / "data/1/bootstrap.checkpoint").read_bytes())
    found = {each.name: each.feature_level for each in records if isinstance(each, FeatureLevelRecord)}
    return {name: level for name, level in found.items() if name != "metadata.version"}


def test_an_unknown_metadata_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_format(tmp_path, "--metadata-version", "5.9") == 2
    assert "unknown metadata version 5.9; known are 3.3-IV3" in capsys.readouterr().err
    assert tree(tmp_path) == {}


def test_formatting_twice_is_refused_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path) == 0
    before = tree(tmp_path)
    assert run_format(tmp_path) == 4
    assert f"{tmp_path}/data/1 is formatted already" in capsys.readouterr().err
    assert tree(tmp_path) == before


def test_ignore_formatted_formats_the_rest_only(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--node", "1") == 0
    before = tree(tmp_path)
    assert run_format(tmp_path, "--ignore-formatted") == 0
    after = tree(tmp_path)
    assert before.items() <= after.items()
    assert f"{tmp_path}/data/11/meta.properties" in after


def test_a_folder_of_another_cluster_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, "--node", "11") == 0
    before = tree(tmp_path)
    assert run_format(tmp_path, "--ignore-formatted", text=SMALL.replace(CLUSTER_ID, "another")) == 4
    told = capsys.readouterr().err
    assert f"{tmp_path}/data/11/meta.properties" in told
    assert CLUSTER_ID in told
    assert "another" in told
    assert tree(tmp_path) == before


def test_a_folder_of_another_node_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_format(tmp_path, "--node", "11") == 0
    text = changed("node.id = 11", 'node.id = 12\nlog.dirs = "data/11"')
    assert run_format(tmp_path, "--ignore-formatted", text=text) == 4
    assert "says node.id is 11, but this node is configured with 12" in capsys.readouterr().err


def test_a_log_without_meta_properties_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data/1/__cluster_metadata-0").mkdir(parents=True)
    assert run_format(tmp_path) == 4
    assert "has a metadata log but no meta.properties" in capsys.readouterr().err
    assert tree(tmp_path) == {}


def test_nodes_formatted_one_by_one_need_a_cluster_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SMALL.replace(f'cluster.id = "{CLUSTER_ID}"\n', "")
    assert run_format(tmp_path, "--node", "1", text=text) == 2
    assert "there is no cluster.id" in capsys.readouterr().err
    assert run_format(tmp_path, "--node", "1", "--cluster-id", "mine", text=text) == 0
    assert read_meta_properties(tmp_path / "data/1").cluster_id == "mine"


def test_a_whole_cluster_without_an_id_is_given_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SMALL.replace(f'cluster.id = "{CLUSTER_ID}"\n', "")
    assert run_format(tmp_path, "--json", text=text) == 0
    cluster_id = json.loads(capsys.readouterr().out)["cluster_id"]
    assert {read_meta_properties(tmp_path / f"data/{node_id}").cluster_id for node_id in (1, 11)} == {
        cluster_id
    }


def test_an_id_against_the_configs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_format(tmp_path, "--cluster-id", "other") == 2
    assert f"cluster.id is {CLUSTER_ID}, but --cluster-id is other" in capsys.readouterr().err


def test_a_node_that_the_config_lacks_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_format(tmp_path, "--node", "5") == 2
    assert "there is no node 5; the nodes are 1, 11" in capsys.readouterr().err
