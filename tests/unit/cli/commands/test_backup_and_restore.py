"""`kquorum backup` of a node over loopback gRPC, and `kquorum restore` of what it made."""

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kquorum.cli.clients import object_store
from kquorum.cli.main import run as kquorum
from kquorum.node.fence import EPOCH_JUMP
from kquorum.raft.adapters.file_log import FileLog
from kquorum.storage import durable_files
from kquorum.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from tests.support.grpc_harness import run, serving
from tests.support.grpc_source import EPOCH, FakeSource, topic

CLUSTER = "kquorum-test-cluster-00"
ACCEPT = "--i-accept-the-loss"


def filled() -> FakeSource:
    source = FakeSource()
    source.commit(FeatureLevelRecord(name="metadata.version", feature_level=25))
    for number in range(3):
        source.commit(topic(f"topic-{number}", number))
    return source


def make_backup(source: FakeSource, to: Path | str, *options: str) -> int:
    async def main() -> int:
        async with serving(source) as rig:
            listener = f"127.0.0.1:{rig.server.bound_port}"
            return await asyncio.to_thread(kquorum, ["backup", str(to), "--grpc", listener, *options])

    return int(run(main))


@pytest.fixture
def backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert make_backup(filled(), tmp_path / "backups", "--json") == 0
    return Path(json.loads(capsys.readouterr().out)["folder"])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "quorum.toml"
    path.write_text(
        "\n".join(
            (
                "[cluster]",
                "[defaults]",
                '"controller.listener.names" = "CONTROLLER"',
                '"controller.quorum.bootstrap.servers" = "127.0.0.1:9191"',
                "[[nodes]]",
                '"node.id" = 3',
                '"process.roles" = "controller"',
                '"listeners" = "CONTROLLER://127.0.0.1:9191"',
                f'"log.dirs" = "{tmp_path}/node-3"',
            )
        )
    )
    return path


def restore(backup: Path, config: Path, *options: str) -> int:
    return int(kquorum(["restore", str(backup), "--node", "3", "-c", str(config), *options]))


def test_a_backup_is_whole_private_and_described(backup: Path) -> None:
    manifest = json.loads((backup / "kquorum-backup.json").read_text())
    assert (manifest["cluster_id"], manifest["node_id"], manifest["end_offset"]) == (CLUSTER, 7, 4)
    assert len(manifest["state_hash"]) == 32
    assert sorted(manifest["files"]) == [
        "node-7/__cluster_metadata-0/00000000000000000000.log",
        "node-7/meta.properties",
    ]
    assert stat.S_IMODE(backup.stat().st_mode) & 0o007 == 0
    assert list(backup.parent.glob("*.part")) == []


def test_what_is_not_committed_is_not_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = filled()
    source.append(topic("not-committed", 9))
    assert make_backup(source, tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["end_offset"] == 4


def test_without_a_node_there_is_no_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kquorum(["backup", str(tmp_path), "--grpc", "127.0.0.1:1"]) == 6
    assert "no node could be copied from" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_restored_controller_begins_alone_in_a_new_epoch(
    backup: Path, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((backup / "kquorum-backup.json").read_text())
    assert restore(backup, config, ACCEPT, "--reason", "fire", "--json") == 0
    done: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (done["epoch"], done["offset"], done["is_dynamic"]) == (EPOCH + EPOCH_JUMP, 4, True)
    assert done["state_hash"] == manifest["state_hash"]
    folder = tmp_path / "node-3"
    properties = read_meta_properties(folder)
    assert (properties.cluster_id, properties.node_id) == (CLUSTER, 3)
    assert properties.directory_id is not None
    log = FileLog(folder / "__cluster_metadata-0")
    try:
        assert log.summary().epochs[-1] == (EPOCH + EPOCH_JUMP, 4)
    finally:
        log.close()
    assert kquorum(["log", "dump", str(folder), "--from-offset", "4"]) == 0
    dumped = capsys.readouterr().out
    assert "restored from a backup of node 7" in dumped
    assert '"operator_reason":"fire"' in dumped


def test_a_restore_needs_the_word_of_the_operator(
    backup: Path, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert restore(backup, config) == 2
    assert "all changes from offset 4 on" in capsys.readouterr().err
    assert not (tmp_path / "node-3").exists()


def test_a_folder_with_something_in_it_is_left_alone(
    backup: Path, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "node-3").mkdir()
    (tmp_path / "node-3" / "kept").write_text("x")
    assert restore(backup, config, ACCEPT) == 4
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda log: log.write_bytes(log.read_bytes()[:-1] + b"!"), "its SHA-256 differs"),
        (lambda log: log.unlink(), "is missing"),
        (
            lambda log: shutil.copy(log, log.with_name("00000000000000000009.log")),
            "does not belong to the backup",
        ),
    ],
)
def test_a_backup_that_has_changed_is_refused(
    backup: Path, config: Path, capsys: pytest.CaptureFixture[str], spoil: Any, reason: str
) -> None:
    spoil(next(backup.rglob("*.log")))
    assert restore(backup, config, ACCEPT) == 3
    assert reason in capsys.readouterr().err


def test_a_manifest_must_be_one(backup: Path, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = backup / "kquorum-backup.json"
    for text, status in (("{", 3), ('{"format": 2, "files": {}}', 3)):
        path.write_text(text)
        assert restore(backup, config, ACCEPT) == status
    path.unlink()
    assert restore(backup, config, ACCEPT) == 2
    assert "give a folder that `kquorum backup` made" in capsys.readouterr().err


def test_another_cluster_id_in_the_config_is_refused(
    backup: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(
        config.read_text().replace("[cluster]", '[cluster]\n"cluster.id" = "4L6g3nShT-eMCtK--X86sw"')
    )
    assert restore(backup, config, ACCEPT) == 2
    assert f"the backup is of cluster {CLUSTER}" in capsys.readouterr().err


def forged(backup: Path, **values: Any) -> None:
    path = backup / "kquorum-backup.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def sparse(path: Path) -> None:
    os.truncate(path, 1 << 40)


def replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


MANIFESTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (replaced(os.mkfifo), "it is no regular file"),
    "a link": (replaced(lambda path: path.symlink_to("/dev/zero")), "it is a symbolic link"),
    "sparse": (sparse, "at most 67,108,864"),
    "a folder": (replaced(Path.mkdir), "Is a directory"),
    "deep": (lambda path: path.write_text("[" * 200_000), "recursion"),
    "a list": (lambda path: path.write_text("[1, 2]"), "is damaged"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe\xff"), "is damaged"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_of_another_kind_is_refused_in_a_line(
    backup: Path, config: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe kept the command waiting for ever, a sparse file took gigabytes."""
    make, words = MANIFESTS[name]
    make(backup / "kquorum-backup.json")
    assert restore(backup, config, ACCEPT) == 3
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cluster_id": "a\nnode.id=9"}, "control characters"),
        ({"cluster_id": 5}, "cluster_id is no str"),
        ({"node_id": "../../etc"}, "node_id is no int"),
        ({"end_offset": None}, "end_offset is no int"),
        ({"state_hash": []}, "state_hash is no str"),
        ({"last_timestamp_ms": "x"}, "last_timestamp_ms is no int"),
        ({"files": 5}, "is damaged"),
    ],
)
def test_a_manifest_with_wrong_values_is_refused_in_a_line(
    backup: Path, config: Path, values: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forged(backup, **values)
    assert restore(backup, config, ACCEPT) == 3
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cluster_id", "node_id", "end_offset", "state_hash", "files"])
def test_a_manifest_without_a_value_is_refused_in_a_line(
    backup: Path, config: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = backup / "kquorum-backup.json"
    manifest = json.loads(path.read_text())
    del manifest[name]
    path.write_text(json.dumps(manifest))
    assert restore(backup, config, ACCEPT) == 3
    assert f"it lacks '{name}'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["a link to a folder", "a link to a file", "a pipe"])
def test_a_backup_has_files_and_folders_alone(
    backup: Path, config: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a link to a folder led to, such as all files of the machine, was copied into the node's folder."""
    operators = tmp_path / "operators"
    operators.mkdir()
    (operators / "key.pem").write_text("a key")
    place = backup / "node-7" / "__cluster_metadata-0" / "more"
    if kind == "a pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(operators if kind == "a link to a folder" else operators / "key.pem")
    assert restore(backup, config, ACCEPT) == 3
    assert "more is no regular file" in capsys.readouterr().err
    assert not (tmp_path / "node-3").exists()


def test_what_is_restored_is_private(backup: Path, config: Path, tmp_path: Path) -> None:
    for path in backup.rglob("*"):
        path.chmod(0o755)
    assert restore(backup, config, ACCEPT) == 0
    log = tmp_path / "node-3" / "__cluster_metadata-0"
    assert stat.S_IMODE(log.stat().st_mode) & 0o007 == 0
    assert stat.S_IMODE((log / "00000000000000000000.log").stat().st_mode) == 0o600


def test_the_name_of_a_backup_is_durable_when_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut would else leave a folder that is named as one which is not whole."""
    synced: list[tuple[Path, list[str]]] = []
    plain = durable_files.sync_folder

    def noted(folder: Path, *given: Any) -> None:
        plain(folder, *given)
        synced.append((folder, [each.name for each in folder.iterdir()]))

    monkeypatch.setattr(durable_files, "sync_folder", noted)
    assert make_backup(filled(), tmp_path / "backups", "--json") == 0
    name = Path(json.loads(capsys.readouterr().out)["folder"]).name
    assert synced[-1] == (tmp_path / "backups", [name])


def test_what_was_restored_is_on_the_disk_before_the_node_may_lead(
    backup: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[Path] = set()
    plain = os.fsync

    def noted(descriptor: int) -> None:
        plain(descriptor)
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", noted)
    assert restore(backup, config, ACCEPT) == 0
    folder = tmp_path / "node-3" / "__cluster_metadata-0"
    assert {folder, folder / f"{0:020d}.log"} <= synced


def with_data_folder(config: Path, tmp_path: Path, cluster_id: str) -> Path:
    """The node keeps its metadata apart from a folder that it has already."""
    text = config.read_text()
    config.write_text(text + f'\n"metadata.log.dir" = "{tmp_path}/metadata-3"\n')
    folder = tmp_path / "node-3"
    folder.mkdir(mode=0o700)
    write_meta_properties(
        folder, MetaProperties(cluster_id=cluster_id, node_id=3, directory_id=UUID(int=0xD1)), 0
    )
    return folder


def test_a_folder_of_records_keeps_its_directory_id(backup: Path, config: Path, tmp_path: Path) -> None:
    """The metadata that are restored say by it where the broker's replicas lie."""
    folder = with_data_folder(config, tmp_path, CLUSTER)
    assert restore(backup, config, ACCEPT) == 0
    assert read_meta_properties(folder).directory_id == UUID(int=0xD1)
    assert read_meta_properties(tmp_path / "metadata-3").directory_id not in (None, UUID(int=0xD1))


def test_a_folder_of_another_cluster_is_refused_before_anything_is_written(
    backup: Path, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_data_folder(config, tmp_path, "another-cluster-000000")
    assert restore(backup, config, ACCEPT) != 0
    assert "another-cluster-000000" in capsys.readouterr().err
    assert read_meta_properties(folder).cluster_id == "another-cluster-000000"
    assert not (tmp_path / "metadata-3").exists()


def test_a_backup_in_a_store_is_restored_from_its_url(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = (tmp_path / "store").as_uri()
    assert make_backup(filled(), store, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["folder"].startswith(f"{store}/")
    assert kquorum(["restore", made["folder"], "--node", "3", "-c", str(config), ACCEPT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state_hash"] == made["state_hash"]


def test_a_store_that_has_nothing_or_cannot_be_reached(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = (tmp_path / "nothing").as_uri()
    assert kquorum(["restore", nothing, "--node", "3", "-c", str(config)]) == 2
    assert f"{nothing}: there is nothing" in capsys.readouterr().err
    assert kquorum(["restore", "nosuchstore://bucket/x", "--node", "3", "-c", str(config)]) == 74
    assert "nosuchstore://bucket/x cannot be opened" in capsys.readouterr().err


def test_the_manifest_is_uploaded_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a backup that has one is whole."""
    written: list[str] = []
    open_store = object_store._open

    def noting(url: str) -> tuple[Any, str]:
        store, base = open_store(url)
        note = SimpleNamespace(
            get_file_info=store.get_file_info,
            open_output_stream=lambda name: (written.append(Path(name).name), BytesIO())[1],
        )
        return note, base

    folder = tmp_path / "made"
    (folder / "node-7").mkdir(parents=True)
    for name in ("a-manifest.json", "node-7/00.log", "z.checkpoint"):
        (folder / name).write_bytes(b"x")
    monkeypatch.setattr(object_store, "_open", noting)
    object_store.upload(folder, (tmp_path / "store").as_uri(), last="a-manifest.json")
    assert written[-1] == "a-manifest.json"
    assert len(written) == 3


def test_a_damaged_object_is_noticed(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_backup(filled(), (tmp_path / "store").as_uri(), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    [segment] = (tmp_path / "store").rglob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    assert kquorum(["restore", made["folder"], "--node", "3", "-c", str(config), ACCEPT]) == 3
    assert "is not what was backed up" in capsys.readouterr().err


def test_a_backup_goes_to_a_real_s3_server_and_back(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `pip install moto[server]`."""
    server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    boto3 = pytest.importorskip("boto3")
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = server.ThreadedMotoServer(port=0)
    store.start()
    try:
        host, port = store.get_host_and_port()
        capsys.readouterr()  # the server has said that it serves
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        boto3.client("s3").create_bucket(Bucket="backups")
        assert make_backup(filled(), "s3://backups/quorum", "--json") == 0
        made = json.loads(capsys.readouterr().out)
        assert kquorum(["restore", made["folder"], "--node", "3", "-c", str(config), ACCEPT, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state_hash"] == made["state_hash"]
        assert kquorum(["restore", "s3://nosuchbucket/x", "--node", "3", "-c", str(config)]) == 2
    finally:
        store.stop()
