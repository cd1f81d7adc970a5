"""`audit build grpc://...` of a running node makes the tables that its folder makes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.cli.main import run
from kquorum.spark_replay.tables.building.registry import TABLES
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]


@pytest.mark.usefixtures("shared_session")
def test_a_build_over_grpc_is_the_build_of_the_nodes_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path / "cluster", controllers=1, brokers=1, with_grpc=True) as cluster:
        cluster.start()
        assert run(["topics", "create", "orders", "-c", str(cluster.config_path), "-p", "3"]) == 0
        address = f"grpc://127.0.0.1:{cluster.grpc_ports[1]}"
        capsys.readouterr()
        assert run(["audit", "build", address, "--out", str(tmp_path / "live"), "--json"]) == 0
        end = json.loads(capsys.readouterr().out)["sources"][0]["last_offset"] + 1
        folder = cluster.data_folder(1)
        shutil.copytree(folder, tmp_path / "copy" / "node-1")
    assert run(["audit", "build", str(tmp_path / "copy" / "node-1"), "--out", str(tmp_path / "own")]) in (
        0,
        3,
    )
    for name in ("records", "batches"):
        offset = "offset" if name == "records" else "last_offset"
        own = [row for row in rows(tmp_path / "own" / name) if row[offset] < end]
        assert own
        assert rows(tmp_path / "live" / name) == own
    for name in TABLES.keys() - {"records", "batches", "damage", "quorum_epochs"}:
        assert rows(tmp_path / "live" / name) == rows(tmp_path / "own" / name), name
    assert json.loads((tmp_path / "live" / "audit.json").read_text())["inputs"] == [address]


def rows(table: Path) -> list[dict[str, Any]]:
    """Where in which segment a record lies is the copy's own affair."""
    found = pq.read_table(table).to_pylist()
    kept = [
        {key: row[key] for key in row if key not in ("file", "segment_base_offset", "position")}
        for row in found
    ]
    return sorted(kept, key=repr)
