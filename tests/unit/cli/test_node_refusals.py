"""What a node refuses before it touches its folder."""

from pathlib import Path

import pytest

from cli.config.load import load_config
from cli.exit_status import ExitStatus
from cli.node import run_node
from cli.nodes.errors import CombinedRoles


def test_a_node_of_both_roles(tmp_path: Path) -> None:
    path = tmp_path / "both.properties"
    lines = [
        "node.id=1",
        "process.roles=broker,controller",
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names=CONTROLLER",
        "controller.quorum.bootstrap.servers=127.0.0.1:9091",
        f"log.dirs={tmp_path / 'data'}",
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(CombinedRoles, match=r"process\.roles=broker,controller") as refused:
        run_node(load_config(path), 1)
    assert refused.value.status is ExitStatus.USAGE
    assert not (tmp_path / "data").exists()
