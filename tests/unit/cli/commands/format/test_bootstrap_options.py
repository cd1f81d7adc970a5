"""How a quorum begins: Kafka's options, what excludes what, and what lands in the folders."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.node.config.load import load_config
from kquorum.node.metadata_folder import MARK, has_lost_its_state, prepare_metadata_folder
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.adapters.quorum_checkpoint import FILE_NAME as CHECKPOINT
from kquorum.raft.adapters.quorum_checkpoint import read_quorum_checkpoint
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import KRaftVersionAt, VotersAt
from kquorum.snapshots.bootstrap import read_bootstrap_checkpoint
from kquorum.storage.meta_properties import read_meta_properties
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.uuids import uuid_to_text
from tests.support.config_files import SMALL, write

DYNAMIC = SMALL.replace(
    "[defaults]\n", '[defaults]\ncontroller.quorum.bootstrap.servers = "127.0.0.1:9191"\n'
)
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER = "MvDxzVmcRsaTz33bUuRU6A"


def run_format(folder: Path, *options: str, text: str = DYNAMIC) -> int:
    return run(["format", "--config", str(write(folder, text)), "--data-dir", str(folder), *options])


def metadata_log(folder: Path, node_id: int) -> Path:
    return folder / "data" / str(node_id) / FOLDER_NAME


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *options: str, text: str = DYNAMIC) -> str:
    assert run_format(folder, *options, text=text) == 2
    assert not (folder / "data").exists()
    return capsys.readouterr().err


def test_a_standalone_controller_is_the_only_voter_under_its_own_directory_id(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--standalone") == 0
    version, voters = read_quorum_checkpoint(metadata_log(tmp_path, 1))
    assert version == KRaftVersionAt(-1, 1)
    assert isinstance(voters, VotersAt)
    (voter,) = voters.voters
    assert voter.key.id == 1
    assert voter.key.directory_id == read_meta_properties(tmp_path / "data/1").directory_id
    assert [(item.listener, item.host, item.port) for item in voter.endpoints] == [
        ("CONTROLLER", "127.0.0.1", 9191)
    ]
    # Kafka writes the voters into every metadata folder that is formatted with them, a broker's too.
    assert read_quorum_checkpoint(metadata_log(tmp_path, 11)) == (version, voters)


def test_initial_controllers_give_each_node_its_directory_id(tmp_path: Path) -> None:
    listed = f"1@127.0.0.1:9191:{DIRECTORY},2@[::1]:9192:{OTHER}"
    assert run_format(tmp_path, "--initial-controllers", listed, "--node", "1") == 0
    known = read_meta_properties(tmp_path / "data/1").directory_id
    assert known is not None
    assert uuid_to_text(known) == DIRECTORY
    _, voters = read_quorum_checkpoint(metadata_log(tmp_path, 1))
    assert isinstance(voters, VotersAt)
    assert voters.voters.ids == (1, 2)
    assert voters.voters.voters[2].endpoints[0].host == "::1"


def test_without_initial_controllers_no_voter_is_named(tmp_path: Path) -> None:
    assert run_format(tmp_path, "-N") == 0
    assert read_quorum_checkpoint(metadata_log(tmp_path, 1)) == ()
    assert not has_lost_its_state(tmp_path / "data/1")


def test_a_static_folder_has_a_state_from_the_beginning(tmp_path: Path) -> None:
    assert run_format(tmp_path, text=SMALL) == 0
    folder = metadata_log(tmp_path, 1)
    assert QuorumStateFile(folder, ()).read() == QuorumState()
    assert json.loads((folder / "quorum-state").read_text())["currentVoters"] == [{"voterId": 1}]
    assert not (folder / CHECKPOINT).exists()
    assert not metadata_log(tmp_path, 11).exists()


def test_a_folder_without_election_state_is_lost_also_while_its_log_comes_back(tmp_path: Path) -> None:
    assert run_format(tmp_path, text=SMALL) == 0
    folder = metadata_log(tmp_path, 1)
    assert not has_lost_its_state(tmp_path / "data/1")
    (folder / "quorum-state").unlink()
    assert has_lost_its_state(tmp_path / "data/1")
    (folder / "00000000000000000000.log").write_bytes(b"x")
    assert has_lost_its_state(tmp_path / "data/1")


def test_the_first_voters_alone_are_how_kafka_formats(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--standalone", "--node", "1") == 0
    (metadata_log(tmp_path, 1) / "quorum-state").unlink()
    assert has_lost_its_state(tmp_path / "data/1"), "it was begun by our tool"
    (tmp_path / "data/1" / MARK).unlink()
    assert not has_lost_its_state(tmp_path / "data/1")


def test_a_folder_that_kafka_formatted_is_new_once(tmp_path: Path) -> None:
    assert run_format(tmp_path, text=SMALL) == 0
    data_dir, folder = tmp_path / "data/1", metadata_log(tmp_path, 1)
    shutil.rmtree(folder)
    (data_dir / MARK).unlink()
    assert not prepare_metadata_folder(data_dir, (1,))
    assert QuorumStateFile(folder, ()).read() == QuorumState()
    shutil.rmtree(folder)
    for _ in range(2):
        assert prepare_metadata_folder(data_dir, (1,)), (
            "now it has lost its folder, and stays so until it caught up"
        )
    assert QuorumStateFile(folder, ()).read() is None


def test_an_election_state_without_its_log_counts_for_nothing(tmp_path: Path) -> None:
    """The votes are known, but not what was acknowledged."""
    assert run_format(tmp_path, text=SMALL) == 0
    data_dir, folder = tmp_path / "data/1", metadata_log(tmp_path, 1)
    QuorumStateFile(folder, (1,)).write(QuorumState(leader_epoch=4, leader_id=1))
    for _ in range(2):
        assert prepare_metadata_folder(data_dir, (1,))
        assert not (folder / "quorum-state").exists()
    assert (folder / "quorum-state.lost").exists()


def test_a_replaced_disk_of_a_static_voter_begins_without_state(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--replaced-disk", text=SMALL) == 0
    assert has_lost_its_state(tmp_path / "data/1")


def test_a_replaced_disk_of_a_dynamic_voter_is_a_new_voter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_format(tmp_path, "-N", "--replaced-disk") != 0
    assert "remove-voter" in capsys.readouterr().err


def test_an_interrupted_formatting_is_made_good(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--standalone", "--node", "1") == 0
    before = read_quorum_checkpoint(metadata_log(tmp_path, 1))
    (tmp_path / "data/1/meta.properties").unlink()
    assert run_format(tmp_path, "--standalone", "--node", "1") == 0
    assert read_quorum_checkpoint(metadata_log(tmp_path, 1)) != before


def test_a_folder_with_a_vote_and_no_meta_properties_is_left_alone(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--standalone", "--node", "1") == 0
    QuorumStateFile(metadata_log(tmp_path, 1), (), 1).write(QuorumState(leader_epoch=3))
    (tmp_path / "data/1/meta.properties").unlink()
    assert run_format(tmp_path, "--standalone", "--node", "1") == 4


def test_a_controller_without_voters_must_say_how_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, tmp_path)
    assert "controller.quorum.voters is not set on controller 1" in told
    assert "--standalone, --initial-controllers or --no-initial-controllers" in told


def test_a_broker_alone_needs_no_beginning(tmp_path: Path) -> None:
    assert run_format(tmp_path, "--node", "11") == 0


def test_static_voters_exclude_a_dynamic_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (("--standalone",), ("-N",), ("-I", f"1@a:1:{DIRECTORY}")):
        told = refused(capsys, tmp_path, *option, text=SMALL)
        assert "node 1 has controller.quorum.voters" in told
        assert "controller.quorum.bootstrap.servers" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-s", "-N"), "--standalone and --no-initial-controllers exclude each other"),
        (("-s", "--node", "11"), "node 11 is only a broker"),
        (("-I", "1@a:1"), "is not id@host:port:directoryId"),
        (("-I", ""), "names no controller"),
        (("-I", f"1@0.0.0.0:1:{DIRECTORY}"), "no host that others can connect to"),
        (("-I", f"1@a:99999:{DIRECTORY}"), "the highest is 65535"),
        (("-I", f"1@a:1:{DIRECTORY},1@b:1:{OTHER}"), "names node id 1 twice"),
        (("-I", f"1@a:1:{DIRECTORY},2@b:1:{DIRECTORY}"), "directory id"),
        (("-I", "1@a:1:AAAAAAAAAAAAAAAAAAAAAA"), "the directory id that means none"),
        (("-s", "-f", "kraft.version=0"), "means a static quorum, but --standalone begins a dynamic one"),
        (("-N", "-f", "kraft.version=1"), "needs voters to begin with"),
        (("-s", "-f", "kraft.version=2"), "kraft.version has the levels 0 to 1, not 2"),
        (("-s", "-r", "3.8"), "needs metadata.version 21"),
        (("-s", "-f", "nonsense=1"), "there is no feature nonsense"),
        (("-s", "-f", "kraft.version"), "is not NAME=LEVEL"),
        (("-s", "-f", "group.version=1", "-f", "group.version=0"), "gives group.version twice"),
        (("-s", "-r", "4.0", "-f", "metadata.version=25"), "say the same thing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_contradicts_itself_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    assert words in refused(capsys, tmp_path, *options)


def test_kraft_version_may_be_said_where_it_follows_anyway(tmp_path: Path) -> None:
    assert run_format(tmp_path, "-s", "-f", "kraft.version=1", "-f", "group.version=0", "-r", "4.0") == 0
    records = read_bootstrap_checkpoint((tmp_path / "data/1/bootstrap.checkpoint").read_bytes())
    levels = {item.name: item.feature_level for item in records if isinstance(item, FeatureLevelRecord)}
    assert levels == {"metadata.version": 25, "transaction.version": 2}


def test_json_tells_the_directory_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_format(tmp_path, "--standalone", "--json") == 0
    told: Any = json.loads(capsys.readouterr().out)
    assert (told["kraft_version"], told["voters"]) == (1, [1])
    known = read_meta_properties(tmp_path / "data/1").directory_id
    assert known is not None
    assert told["folders"][0]["directory_id"] == uuid_to_text(known)


def test_a_dynamic_config_loads_and_auto_join_is_for_controllers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DYNAMIC.replace("node.id = 1\n", "node.id = 1\ncontroller.quorum.auto.join.enable = true\n")
    config = load_config(write(tmp_path, text))
    assert config.node(1).controller_quorum_auto_join_enable
    assert config.node(1).controller_quorum_voters == ()
    wrong = DYNAMIC.replace("node.id = 11\n", "node.id = 11\ncontroller.quorum.auto.join.enable = true\n")
    assert "is for controllers" in refused(capsys, tmp_path, "-s", text=wrong)


def test_random_uuids_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["random-uuid"]) == 0
    assert len(capsys.readouterr().out.strip()) == 22
