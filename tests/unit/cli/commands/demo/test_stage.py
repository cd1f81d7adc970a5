"""How the demo looks at the quorum while it waits."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kquorum.cli.commands.demo import stage
from kquorum.cli.commands.demo.stage import Stage
from kquorum.cli.failures import ExitStatus
from kquorum.cli.processes import NodeGroup
from kquorum.node.config.load import load_config
from kquorum.node.config.model import ClusterConfig
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import fake_node, quorum_response

NOT_LEADER = 6


def seen_by_demo(folder: Path, response: dict[str, object]) -> dict[str, Any] | None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: response}) as node:
        path = folder / "quorum.toml"
        path.write_text(
            '[defaults]\ncontroller.listener.names = "CONTROLLER"\nlog.dirs = "data"\n'
            '[[nodes]]\nnode.id = 1\nprocess.roles = "controller"\n'
            f'listeners = "CONTROLLER://127.0.0.1:{node.port}"\n'
        )
        return Stage(Console(), path, load_config(path), NodeGroup([], stop_first=[]), folder).quorum()


def test_what_its_conditions_read_is_there(tmp_path: Path) -> None:
    seen = seen_by_demo(tmp_path, quorum_response())
    assert seen is not None
    assert seen["leader_id"] == 1
    assert seen["leader_epoch"] >= 0
    assert {voter["replica_id"]: voter["lag"] for voter in seen["voters"]} == {1: 0, 2: 3, 3: None}
    assert [observer["replica_id"] for observer in seen["observers"]] == [11]


def test_while_there_is_no_leader_there_is_nothing_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "STATUS_TIMEOUT_MS", 200)
    assert seen_by_demo(tmp_path, quorum_response(error_code=NOT_LEADER, leader_id=-1)) is None


def test_an_interrupt_of_a_command_within_it_ends_it_as_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has the interrupt, and the demo only its exit status."""
    monkeypatch.setattr("kquorum.cli.main.run", lambda _: ExitStatus.INTERRUPTED)
    demo = Stage(
        Console(),
        tmp_path,
        ClusterConfig(path=tmp_path, cluster_id=None, nodes=()),
        NodeGroup([], stop_first=[]),
        tmp_path,
    )
    with pytest.raises(SystemExit) as ended:
        demo.show_here("audit", "build")
    assert ended.value.code == ExitStatus.INTERRUPTED


def test_what_it_runs_is_interrupted_without_a_traceback() -> None:
    """`cli.main` imports for 0.2 s before it has a handler; `cli.entry` has one at once."""
    assert stage._command(("topics", "list"))[1:4] == ["-P", "-m", "kquorum.cli.entry"]
