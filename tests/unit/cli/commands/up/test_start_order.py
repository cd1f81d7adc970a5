"""In which order `up` starts nodes: brokers can do nothing before a controller leads."""

import os
from pathlib import Path

import pytest

from kquorum.cli.commands.up import run as up_run
from kquorum.cli.commands.up.run import StopRequest
from kquorum.cli.commands.up.view import ClusterView, NodeState
from kquorum.cli.processes import NodeGroup, NodeProcess
from kquorum.node.config.load import load_config
from kquorum.node.config.model import ClusterConfig
from tests.support.config_files import EXAMPLE

BROKER = 11


class Process(NodeProcess):
    """Runs nothing; a node is ready, or has ended, when the test says so."""

    def __init__(self, node_id: int, folder: Path, started: list[int]) -> None:
        super().__init__(folder / "none", node_id, folder / f"{node_id}.out")
        self._started = started
        self.life = NodeState.STARTING

    def start(self) -> None:
        self._started.append(self.node_id)

    @property
    def pid(self) -> int | None:
        return self.node_id if self.node_id in self._started else None

    @property
    def is_running(self) -> bool:
        return self.life is not NodeState.ENDED

    @property
    def is_ready(self) -> bool:
        return self.life is NodeState.READY


class Script:
    """A display that changes the nodes' lives, a step for each view that it is shown, and asks to stop at the end."""

    def __init__(self, group: NodeGroup, stop: StopRequest, steps: list[dict[int, NodeState]]) -> None:
        self._group = group
        self._stop = stop
        self._steps = steps
        self.views: list[ClusterView] = []

    def show(self, view: ClusterView) -> None:
        self.views.append(view)
        if not self._steps:
            self._stop.came = True
            return
        for node_id, life in self._steps.pop(0).items():
            process = self._group[node_id]
            assert isinstance(process, Process)
            process.life = life

    def close(self) -> None:
        """Nothing is held."""


def watch(
    cluster: ClusterConfig, folder: Path, steps: list[dict[int, NodeState]]
) -> tuple[list[list[int]], list[ClusterView]]:
    """What had been started at each step, and what was shown."""
    started: list[int] = []
    group = NodeGroup([Process(node.node_id, folder, started) for node in cluster.nodes])
    stop = StopRequest()
    script = Script(group, stop, steps)
    seen: list[list[int]] = []
    show = script.show

    def note(view: ClusterView) -> None:
        seen.append(sorted(started))
        show(view)

    script.show = note  # type: ignore[method-assign]
    up_run._watch(cluster, group, script, stop)
    return seen, script.views


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterConfig:
    monkeypatch.setattr(up_run, "_maybe_quorum", lambda _: None)
    monkeypatch.setattr(up_run, "run_asking", lambda _: None)
    return load_config(EXAMPLE)


def test_where_processors_are_few_brokers_start_once_a_majority_of_controllers_is_ready(
    cluster: ClusterConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    controllers = sorted(node.node_id for node in cluster.controllers)
    everyone = sorted(node.node_id for node in cluster.nodes)
    majority = controllers[: len(controllers) // 2 + 1]
    steps = [{}, dict.fromkeys(majority[:-1], NodeState.READY), {majority[-1]: NodeState.READY}]
    seen, views = watch(cluster, tmp_path, steps)
    assert seen == [controllers, controllers, controllers, everyone]
    assert views[0].nodes[BROKER].state is NodeState.HELD_BACK
    assert views[-1].nodes[BROKER].state is NodeState.STARTING


def test_brokers_are_not_held_back_for_controllers_that_have_ended(
    cluster: ClusterConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    seen, _ = watch(cluster, tmp_path, [{node.node_id: NodeState.ENDED for node in cluster.controllers}])
    assert BROKER in seen[-1]


def test_with_a_processor_for_each_all_start_at_once(
    cluster: ClusterConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    seen, _ = watch(cluster, tmp_path, [])
    assert seen == [sorted(node.node_id for node in cluster.nodes)]
