"""The folders on this machine, as `kquorum doctor` looks at them."""

import os
import shutil
from pathlib import Path

import pytest

from kquorum.cli.commands.doctor.findings import Finding, Severity
from kquorum.cli.commands.doctor.folders import check_folder, written_in_a_day
from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.formatting import format_nodes
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.storage.corruption_marker import FILE_NAME as CORRUPTION_MARKER

DAY_S = 86_400
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


@pytest.fixture
def node(tmp_path: Path) -> NodeConfig:
    """Of node 1, formatted."""
    path = tmp_path / "quorum.toml"
    path.write_text(
        f"""
[cluster]
"cluster.id" = "{CLUSTER_ID}"
[defaults]
"controller.listener.names" = "CONTROLLER"
[[nodes]]
"node.id" = 1
"process.roles" = "controller"
"listeners" = "CONTROLLER://127.0.0.1:9191"
"log.dirs" = "{tmp_path}/node-1"
"""
    )
    found = load_config(path).node(1)
    format_nodes([found], cluster_id=CLUSTER_ID, metadata_version=DEFAULT, ignore_formatted=False)
    return found


def folder_of(node: NodeConfig) -> Path:
    return node.log_dirs[0]


def problems(node: NodeConfig, *, deep: bool = False) -> list[tuple[Severity, str]]:
    found: list[Finding] = list(check_folder(node, folder_of(node), deep=deep))
    assert all(each.remedy for each in found)
    return [(each.severity, each.found) for each in found if each.severity is not Severity.NOTE]


def test_a_formatted_folder_is_well(node: NodeConfig) -> None:
    assert problems(node) == []
    assert problems(node, deep=True) == []


def test_a_folder_of_another_node_or_cluster(node: NodeConfig) -> None:
    properties = folder_of(node) / "meta.properties"
    properties.write_text(
        properties.read_text().replace("node.id=1", "node.id=7").replace(CLUSTER_ID, "x" * 22)
    )
    assert [found for _, found in problems(node)] == [
        "the folder is of node 7, not of node 1",
        f"the folder is of cluster {'x' * 22}, and the config of {CLUSTER_ID}",
    ]


def test_a_folder_that_is_not_formatted(node: NodeConfig) -> None:
    (folder_of(node) / "meta.properties").unlink()
    assert problems(node) == [(Severity.PROBLEM, "it has no meta.properties: it is not formatted")]
    shutil.rmtree(folder_of(node))
    folder_of(node).mkdir(mode=0o700)
    assert problems(node) == [(Severity.WARNING, "it has no meta.properties: it is not formatted")]


def test_an_exposed_folder(node: NodeConfig) -> None:
    folder_of(node).chmod(0o755)
    assert problems(node) == [
        (Severity.WARNING, "others may enter it (mode 755), and it holds the keys of users")
    ]


def test_signs_of_damage(node: NodeConfig) -> None:
    metadata = folder_of(node) / "__cluster_metadata-0"
    metadata.mkdir(exist_ok=True)
    (metadata / CORRUPTION_MARKER).write_text("x")
    (metadata / "00000000000000000000.log.damaged").write_text("x")
    (metadata / "quorum-state").write_text("no json")
    found = dict(map(reversed, problems(node)))  # type: ignore[arg-type]
    assert found["the log has lost records, and is not whole again"] is Severity.PROBLEM
    assert any("were set aside" in each for each in found)
    assert any("the election state cannot be read" in each for each in found)


def test_only_deep_reads_the_batches(node: NodeConfig) -> None:
    metadata = folder_of(node) / "__cluster_metadata-0"
    metadata.mkdir(exist_ok=True)
    (metadata / "00000000000000000000.log").write_bytes(b"\1" * 200)
    assert problems(node) == []
    assert [severity for severity, _ in problems(node, deep=True)][:1] == [Severity.PROBLEM]


def test_growth_is_what_was_written_in_the_last_day(tmp_path: Path) -> None:
    now_s = 2_000_000_000.0
    log = tmp_path / "orders-0"
    log.mkdir()

    def write(name: str, size: int, days_ago: float) -> None:
        (log / name).write_bytes(b"x" * size)
        os.utime(log / name, (now_s - days_ago * DAY_S,) * 2)

    write("partition.metadata", 1, 10)
    write("00000000000000000000.log", 500, 4)  # before
    write("00000000000000000010.log", 400, 0.5)  # 3.5 days, of which half a day counts
    write("00000000000000000020.log", 300, 0)  # all of it
    write("00000000000000000020.index", 1_000, 0)
    assert written_in_a_day(tmp_path, now_s) == round(400 * 0.5 / 3.5) + 300
    assert written_in_a_day(tmp_path / "nowhere", now_s) == 0
