"""What a node refuses before it touches its folder."""

from pathlib import Path

import pytest

from cli.config.load import load_config
from cli.exit_status import ExitStatus
from cli.node import run_node
from cli.nodes.errors import NoVoters


def test_a_node_that_names_no_voters(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    lines = [
        "node.id=11",
        "process.roles=broker",
        "listeners=PLAINTEXT://127.0.0.1:0",
        "controller.listener.names=CONTROLLER",
        "controller.quorum.bootstrap.servers=127.0.0.1:9091",
        f"log.dirs={tmp_path / 'data'}",
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(NoVoters, match=r"controller\.quorum\.voters") as refused:
        run_node(load_config(path), 11)
    assert refused.value.status is ExitStatus.USAGE
    assert not (tmp_path / "data").exists()
