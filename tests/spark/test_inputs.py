"""What lies in an archive, or at an address that Hadoop reads, is audited as if it lay in the node's folder."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.audit import build
from kquorum.spark_replay.audit_manifest import read_manifest
from kquorum.spark_replay.decode.sources import NoLogFound, find_log_files
from kquorum.spark_replay.remote import RemoteFailed, stage
from kquorum.spark_replay.tables.building.registry import TABLES
from tests.support.node_logs import NodeLog
from tests.support.sample_logs import write_sample
from tests.support.spark.random_history import write_random_trimmed_history

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]


@dataclass(frozen=True)
class Both:
    """An audit of logs, and of the archive of them at an address."""

    out: Path
    inputs: tuple[str, ...]

    def rows(self, table: str, is_wanted: Callable[[str], bool]) -> Counter[tuple[Any, ...]]:
        """Rows of the sources wanted, without the source itself, each by its last name."""
        found = pq.read_table(self.out / table).to_pylist()
        return Counter(
            (
                row["source"].rpartition("/")[2],
                *(str(row[name]) for name in sorted(row) if name not in ("source", "gap")),
            )
            for row in found
            if is_wanted(row["source"])
        )


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("inputs")
    write_sample(folder / "logs" / "sample", torn=False)
    write_random_trimmed_history(folder / "logs" / "life", seed=77, operations=80)
    archive([folder / "logs"], folder / "archive", include_active=True)
    inputs = (str(folder / "logs"), "file://" + str(folder / "archive"))
    roots = stage(spark, inputs, folder / "staged")
    build(spark, roots, folder / "out", inputs=inputs)
    return Both(folder / "out", inputs)


@pytest.mark.parametrize("table", sorted(TABLES))
def test_an_archive_at_an_address_has_the_tables_of_its_logs(both: Both, table: str) -> None:
    from_archive = both.rows(table, lambda source: "archive" in source)
    assert from_archive == both.rows(table, lambda source: "archive" not in source)
    if table in ("records", "batches", "partition_history", "leader_changes"):
        assert {row[0] for row in from_archive} == {"sample", "life"}


def test_the_manifest_names_the_inputs_as_they_were_given(both: Both) -> None:
    assert read_manifest(both.out).inputs == both.inputs


def test_only_the_files_of_metadata_logs_are_fetched(spark: Any, tmp_path: Path) -> None:
    node = NodeLog(tmp_path / "disk" / "node 1").fill(2, 1)
    node.take_snapshot()
    topic = tmp_path / "disk" / "node 1" / "orders-0"
    topic.mkdir()
    (topic / "00000000000000000000.log").write_bytes(b"data")
    (topic / "partition.metadata").touch()
    (node.log / "00000000000000000002.log.deleted").touch()
    (root,) = stage(spark, [f"file://{tmp_path}/disk"], tmp_path / "work")
    names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert names == {
        "node 1/meta.properties",
        *(
            f"node 1/__cluster_metadata-0/{name}"
            for name in (
                *("00000000000000000000.log", "00000000000000000002.log", "quorum-state"),
                "00000000000000000003-0000000001.checkpoint",
            )
        ),
    }
    assert [file.source for file in find_log_files(root)] == ["node 1"] * 3


def test_a_file_at_an_address_and_paths_beside_it(spark: Any, tmp_path: Path) -> None:
    node = NodeLog(tmp_path / "node-1").fill(2)
    snapshot = node.take_snapshot()
    roots = stage(spark, [f"file://{snapshot}", str(node.folder)], tmp_path / "work")
    assert roots == [tmp_path / "work" / "00" / snapshot.name, node.folder]
    assert roots[0].read_bytes() == snapshot.read_bytes()
    assert not list(roots[0].parent.glob(".*"))


def test_addresses_that_lead_nowhere(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoLogFound, match="holds no metadata log"):
        stage(spark, [f"file://{tmp_path}/empty"], tmp_path / "work")
    with pytest.raises(RemoteFailed, match="does not exist"):
        stage(spark, [f"file://{tmp_path}/missing"], tmp_path / "work")
    with pytest.raises(RemoteFailed, match="no file system nosuch"):
        stage(spark, ["nosuch://bucket/archive"], tmp_path / "work")


@pytest.mark.slow
def test_several_folders_and_an_address_as_a_user_names_them(tmp_path: Path) -> None:
    first, second = (write_sample(tmp_path / name, torn=False) for name in ("a", "b"))
    out = tmp_path / "out"
    program = [sys.executable, "-m", "kquorum.cli.entry", "audit", "build", str(first), f"file://{second}"]
    done = subprocess.run(
        [*program, "--out", str(out), "--master", "local[1]"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "copying the logs" in done.stderr
    manifest = read_manifest(out)
    assert manifest.inputs == (str(first), f"file://{second}")
    assert [each.source for each in manifest.sources] == ["a", "b"]
    assert all(Path(file.path).is_file() for each in manifest.sources for file in each.files)
