"""`kquorum quorum history` from folders: our notes and our log, a log alone, and what is neither."""

import json
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.raft import roles
from kquorum.raft.adapters.election_log import ElectionLog
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.batches import leader_change_batch
from kquorum.raft.ready import RoleChanged
from kquorum.storage.meta_properties import MetaProperties, write_meta_properties
from kquorum.wire.log_batch import build_batch

T0 = 1_700_000_000_000


def write_log(folder: Path) -> None:
    """Epoch 1 under node 1, whose last record is from T0 + 900; epoch 2 under node 2 from T0 + 3012 on."""
    log = FileLog(folder / FOLDER_NAME)
    log.append(
        [
            leader_change_batch(0, 1, T0, leader_id=1, voters=(1, 2, 3), granting_voters=(1, 3)),
            build_batch(1, 1, T0 + 900, [(None, b"x")]),
            leader_change_batch(2, 2, T0 + 3012, leader_id=2, voters=(1, 2, 3), granting_voters=(2, 3)),
        ]
    )
    log.close()


def note(folder: Path, node_id: int, *events: tuple[int, str, int, str]) -> None:
    notes = ElectionLog(folder / FOLDER_NAME)
    for at, role, epoch, cause in events:
        notes.record(T0 + at, node_id, RoleChanged(role, epoch, cause), -1)


def history(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert run(["quorum", "history", *arguments, "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["elections"]
    return found


def test_two_folders_give_one_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for node_id in (1, 2):
        write_log(tmp_path / str(node_id))
    note(
        tmp_path / "2",
        2,
        (0, "unattached", 0, roles.STARTED),
        (3000, "prospective", 1, roles.FETCH_TIMEOUT),
        (3005, "candidate", 2, "a majority would vote for it"),
        (3010, "leader", 2, "a majority voted for it"),
    )
    first, second = history(capsys, str(tmp_path / "1"), str(tmp_path / "2" / FOLDER_NAME))
    assert (first["cause"], first["winner"]) == ("first start", 1)
    assert (second["cause"], second["winner"], second["stood"]) == ("fetch timeout", 2, [2])
    assert second["leaderless_ms"] == 3012 - 900
    assert second["voted_for_winner"] == [2, 3]


def test_a_log_alone_tells_who_led_and_a_damaged_end_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path)
    (segment,) = (tmp_path / FOLDER_NAME).glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-3])
    (only,) = history(capsys, str(tmp_path))
    assert (only["epoch"], only["winner"]) == (1, 1)


def test_earlier_epochs_are_left_out_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)
    assert [item["epoch"] for item in history(capsys, str(tmp_path), "--from-epoch", "2")] == [2]


def test_the_table_has_a_row_for_each_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)
    assert run(["quorum", "history", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "2 epochs" in out
    assert "2,112 ms" in " ".join(out.split())


def of_cluster(folder: Path, cluster_id: str, node_id: int) -> None:
    write_log(folder)
    write_meta_properties(folder, MetaProperties(cluster_id=cluster_id, node_id=node_id), T0)


def test_folders_of_two_clusters_are_not_one_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_cluster(tmp_path / "1", "abc", 1)
    of_cluster(tmp_path / "2", "xyz", 2)
    write_log(tmp_path / "copy")
    assert run(["quorum", "history", str(tmp_path / "1"), str(tmp_path / "2" / FOLDER_NAME)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / '1'} is of cluster abc, {tmp_path / '2' / FOLDER_NAME} is of cluster xyz: "
        "ask for the history of one cluster at a time\n"
    )
    assert len(history(capsys, str(tmp_path / "1"), str(tmp_path / "copy"))) == 2


def test_the_folder_of_the_nodes_folders_is_met_with_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for node in ("node-1", "node-2"):
        write_log(tmp_path / node)
    assert run(["quorum", "history", str(tmp_path)]) == 2
    both = [str(tmp_path / "node-1"), str(tmp_path / "node-2")]
    assert f"nor notes of elections; name {' '.join(both)}\n" in capsys.readouterr().err
    assert run(["quorum", "history", *both]) == 0
    assert capsys.readouterr().out.startswith(f"2 epochs, as told by node-1, node-2 in {tmp_path}\n")


def test_a_folder_without_a_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quorum", "history", str(tmp_path)]) == 2
    assert f"{tmp_path} holds neither a metadata log" in capsys.readouterr().err


def test_what_is_no_folder_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for name, what in (("file", "is not a folder"), ("missing", "does not exist")):
        assert run(["quorum", "history", str(tmp_path / name)]) == 2
        assert f"{tmp_path / name} {what}: name a data folder or its {FOLDER_NAME}" in capsys.readouterr().err


def test_a_running_quorum_needs_grpc_listeners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "quorum.toml"
    config.write_text(
        '[[nodes]]\nnode.id = 1\nprocess.roles = "controller"\ncontroller.listener.names = "CONTROLLER"\n'
        'listeners = "CONTROLLER://127.0.0.1:9191"\nlog.dirs = "data"\n'
    )
    assert run(["quorum", "history", "--config", str(config)]) == 2
    assert "`kquorum.grpc.listener`, which the history of a running quorum needs" in capsys.readouterr().err
