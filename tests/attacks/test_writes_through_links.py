"""What a command writes into a folder of somebody else does not go through the links in it.

The author of the folder knows the names that a command writes there. A symbolic link by such a name led the log of a
failed Spark to the operator's `authorized_keys`, with lines that the author chose.
"""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

from kquorum.cli.commands.audit import report, spark
from kquorum.cli.commands.audit.live_log import Mirror
from kquorum.cli.failures import CliError
from kquorum.cli.processes import MAX_OUTPUT_BYTES, NodeProcess
from kquorum.node.config.materialise import with_free_ports
from kquorum.spark_replay.audit_manifest import AuditManifest, write_manifest
from kquorum.spark_replay.stream import merging, state
from kquorum.spark_replay.table_files import TableFile
from kquorum.storage.durable_files import replace_file
from kquorum.storage.errors import StorageFailed
from kquorum.storage.folder_lock import FolderLock

SECRET = b"ssh-ed25519 the operator's key"


def _keep_sparks_log(folder: Path) -> None:
    work = folder.parent / "work"
    work.mkdir(exist_ok=True)
    (work / spark.SPARK_LOG).write_bytes(b"\nssh-ed25519 the attacker's key\n")
    with pytest.raises(CliError), spark._failures_told(work, folder, spark.SparkInterrupts()):
        raise PySparkException("it failed")


def _write_table(folder: Path) -> None:
    import pyarrow as pa

    schema = StructType([StructField("a", LongType())])
    with TableFile(folder / "part.parquet", schema) as file:
        file.add(pa.RecordBatch.from_pydict({"a": [1]}))


def _write_state(folder: Path) -> None:
    state.write_state(folder, state.StreamState(input="log"))


def _manifest() -> AuditManifest:
    return AuditManifest(inputs=(), made_ms=0, sources=(), rows={})


WRITERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "spark.log": (spark.SPARK_LOG, f".{spark.SPARK_LOG}.unfinished", _keep_sparks_log),
    "a report": (
        "report.html",
        ".report.html.unfinished",
        lambda folder: report._put(folder / "report.html", b"page"),
    ),
    "the manifest": (
        "audit.json",
        ".audit.json.unfinished",
        lambda folder: write_manifest(folder, _manifest()),
    ),
    "a table": ("part.parquet", ".part.parquet.unfinished", _write_table),
    "a stream's state": (
        f"{state.FOLDER}/{state.STATE}",
        f"{state.FOLDER}/.{state.STATE}.unfinished",
        _write_state,
    ),
    "a stream's note": (
        f"{state.FOLDER}/{merging._NOTE}",
        f"{state.FOLDER}/.{merging._NOTE}.unfinished",
        lambda folder: merging._write_note(folder, "merged"),
    ),
}


@pytest.mark.parametrize("which", [0, 1], ids=["its name", "its name until it is whole"])
@pytest.mark.parametrize("writer", list(WRITERS))
def test_a_file_takes_the_place_of_a_link(tmp_path: Path, writer: str, which: int) -> None:
    victim, folder = tmp_path / "authorized_keys", tmp_path / "given"
    victim.write_bytes(SECRET)
    *names, write = WRITERS[writer]
    written, planted = folder / names[0], folder / names[which]
    planted.parent.mkdir(parents=True)
    planted.symlink_to(victim)
    write(folder)
    assert victim.read_bytes() == SECRET
    assert written.is_file()
    assert not written.is_symlink()
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert sorted(path.name for path in written.parent.iterdir()) == [written.name]


def test_sparks_log_is_kept_elsewhere_when_the_folder_takes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    work = tmp_path / "work"
    work.mkdir()
    (work / spark.SPARK_LOG).write_bytes(b"what Spark said")
    with (
        pytest.raises(CliError) as raised,
        spark._failures_told(work, folder, spark.SparkInterrupts()),
    ):
        raise PySparkException("it failed")
    kept = Path(str(raised.value).rpartition("its log is ")[2])
    assert kept.read_bytes() == b"what Spark said"
    assert kept.parent != folder
    kept.unlink()
    kept.parent.rmdir()


def test_a_copy_of_a_log_is_not_written_through_links(tmp_path: Path) -> None:
    victim, folder = tmp_path / "authorized_keys", tmp_path / "given"
    victim.write_bytes(SECRET)
    (folder / "node-1").mkdir(parents=True)
    (folder / "node-1" / "meta.properties").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        Mirror(folder, 1, "a-cluster")
    assert victim.read_bytes() == SECRET


def test_a_nodes_output_is_not_written_through_links(tmp_path: Path) -> None:
    victim, folder = tmp_path / "authorized_keys", tmp_path / "given"
    folder.mkdir()
    victim.write_bytes(SECRET)
    (folder / "out.txt").write_bytes(b"x" * (MAX_OUTPUT_BYTES + 1))
    (folder / "out.txt.1").symlink_to(victim)
    node = NodeProcess(tmp_path / "quorum.toml", 1, folder / "out.txt")
    node.limit_output()
    assert victim.read_bytes() == SECRET
    assert (folder / "out.txt.1").stat().st_size > MAX_OUTPUT_BYTES
    (folder / "out.txt").unlink()
    (folder / "out.txt").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        node.start()
    assert victim.read_bytes() == SECRET


def test_a_copied_config_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "authorized_keys"
    victim.write_bytes(SECRET)
    source = Path("examples/quorum.toml")
    target = tmp_path / "given" / "quorum.toml"
    target.parent.mkdir()
    target.symlink_to(victim)
    with_free_ports(source, target)
    assert victim.read_bytes() == SECRET
    assert not target.is_symlink()


def test_a_file_of_a_node_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "authorized_keys"
    victim.write_bytes(SECRET)
    (tmp_path / "quorum-state.tmp").symlink_to(victim)
    with pytest.raises(StorageFailed):
        replace_file(tmp_path / "quorum-state", b"new")
    assert victim.read_bytes() == SECRET


def test_a_lock_is_not_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(Exception, match="symbolic link"):
        FolderLock(tmp_path / "given")
    assert not (tmp_path / "made").exists()
