"""The process that hosts a cluster under test: it loads a node's modules once, and forks a process for each node.

So a node starts in a fraction of the time, and a fault (SIGKILL, SIGSTOP) is done to a real process. The nodes end with
their host, and the host ends with its input.
"""

import asyncio
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from kquorum.metadata.features import default_features
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import NetworkError
from kquorum.node import broker as _broker  # noqa: F401 - loaded before the forks
from kquorum.node import cluster_node as _cluster_node  # noqa: F401 - loaded before the forks
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import LOOPBACK, free_ports, nodes_as_toml
from kquorum.node.config.model import ClusterConfig
from kquorum.node.formatting import data_folders, format_folder, new_uuid, now_ms
from kquorum.node.parent_process import die_with_parent
from kquorum.node.process import run_node
from kquorum.snapshots.bootstrap import (
    DEFAULT_METADATA_VERSION,
    bootstrap_records,
    write_bootstrap_checkpoint,
)
from kquorum.storage.folder_permissions import keep_files_private
from kquorum.testing.commands import ClusterSpec
from kquorum.testing.faulty_loop import Address, FaultyLoop
from kquorum.wire.messages.metadata import MetadataRequest
from kquorum.wire.uuids import uuid_to_text

CONFIG_NAME: Final = "quorum.toml"
_STOP_TIMEOUT_S: Final = 20.0
_LOOK_AGAIN_S: Final = 0.01
_CLIENT_ID: Final = "kquorum-testing"
_CALL_TIMEOUT_MS: Final = 2_000
_LAST_LINES: Final = 8


class HostError(Exception):
    """What the test's process is to raise."""


@dataclass(slots=True)
class _Node:
    """A node's process, and where its faults are written to."""

    pid: int
    faults: int


class Host:
    """The nodes of one cluster, each a child process."""

    def __init__(self, spec: ClusterSpec) -> None:
        self._spec = spec
        self._folder = Path(spec.folder)
        self._cluster = _make_cluster(spec, self._folder)
        self._nodes: dict[int, _Node] = {}
        self._cuts: set[frozenset[int]] = set()
        self._flush_delays_ms: dict[int, int] = {}
        self._acts: dict[str, Callable[..., Any]] = {
            "start": self.start,
            "stop": self.stop,
            "kill": lambda node: self._end(node, signal.SIGKILL),
            "pause": lambda node: self._signal(node, signal.SIGSTOP),
            "resume": lambda node: self._signal(node, signal.SIGCONT),
            "cut": self.cut,
            "mend": self.mend,
            "slow_disk": self.slow_disk,
            "wait_ready": self.wait_ready,
        }

    @property
    def bootstrap_servers(self) -> dict[int, str]:
        return {
            node.node_id: _text(_broker_address(self._cluster, node.node_id))
            for node in self._cluster.brokers
        }

    def serve(self, commands: Any, answers: Any) -> None:
        """Until `commands` ends; then all nodes are killed."""
        try:
            for node in self._cluster.nodes:
                self.start(node.node_id)
            started = {"bootstrap_servers": self.bootstrap_servers, "config": str(self._cluster.path)}
            _answer(answers, started)
            for line in commands:
                command = json.loads(line)
                try:
                    self._acts[command.pop("do")](**command)
                except HostError as error:
                    _answer(answers, {"error": str(error)})
                else:
                    _answer(answers, {})
        finally:
            for node_id in list(self._nodes):
                self._end(node_id, signal.SIGKILL)

    def start(self, node: int) -> None:
        self._reap()
        if node in self._nodes:
            raise HostError(f"node {node} runs already")
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(writing)
            for other in self._nodes.values():
                os.close(other.faults)
            self._become(node, reading)
        os.close(reading)
        self._nodes[node] = _Node(pid, writing)
        self._write_faults()

    def stop(self, node: int) -> None:
        """In order, as SIGTERM asks for."""
        self._end(node, signal.SIGTERM)

    def cut(self, nodes: list[int], others: list[int]) -> None:
        """No node of the one list and node of the other reach each other."""
        self._cuts |= {frozenset((one, other)) for one in nodes for other in others if one != other}
        self._write_faults()

    def mend(self) -> None:
        self._cuts.clear()
        self._write_faults()

    def slow_disk(self, node: int, flush_delay_ms: int) -> None:
        self._flush_delays_ms[node] = flush_delay_ms
        self._write_faults()

    def wait_ready(self, timeout_s: float) -> None:
        """Until each broker that runs lists all of them."""
        give_up_at_s = time.monotonic() + timeout_s
        expected = {node_id for node_id in self._spec.broker_ids if node_id in self._nodes}
        waiting = set(expected)
        while waiting:
            ended = self._reap()
            if ended:
                raise HostError("; ".join(f"node {each} ended: {self._last_lines(each)}" for each in ended))
            waiting = {each for each in waiting if not expected <= asyncio.run(self._known_brokers(each))}
            if time.monotonic() > give_up_at_s:
                node_id = min(waiting)
                raise HostError(
                    f"broker {node_id} is not ready after {timeout_s:g} s: {self._last_lines(node_id)}"
                )
            if waiting:
                _pause()

    # Parts

    def _become(self, node_id: int, faults: int) -> NoReturn:
        """In the new process."""
        status = 1
        try:
            os.setsid()
            die_with_parent()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            output = os.open(self._output(node_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for target, source in ((0, null), (1, output), (2, output)):
                os.dup2(source, target)
            run_node(self._cluster, node_id, lambda: FaultyLoop(faults))
            status = 0
        except Exception as error:  # noqa: BLE001 - the boundary of the process
            os.write(2, f"node {node_id} ended: {error}\n".encode())
        finally:
            os._exit(status)

    def _end(self, node_id: int, number: signal.Signals) -> None:
        self._signal(node_id, number)
        node = self._nodes[node_id]
        give_up_at_s = time.monotonic() + _STOP_TIMEOUT_S
        while os.waitpid(node.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > give_up_at_s:
                raise HostError(f"node {node_id} did not end within {_STOP_TIMEOUT_S:g} s")
            _pause()
        self._forget(node_id)

    def _signal(self, node_id: int, number: signal.Signals) -> None:
        self._reap()
        if node_id not in self._nodes:
            raise HostError(f"node {node_id} does not run")
        os.kill(self._nodes[node_id].pid, number)

    def _reap(self) -> list[int]:
        """The nodes that have ended by themselves."""
        ended = [each for each, node in self._nodes.items() if os.waitpid(node.pid, os.WNOHANG)[0]]
        for node_id in ended:
            self._forget(node_id)
        return ended

    def _forget(self, node_id: int) -> None:
        os.close(self._nodes.pop(node_id).faults)

    def _write_faults(self) -> None:
        for node_id, node in self._nodes.items():
            cut: list[Address] = []
            for pair in self._cuts:
                if node_id in pair:
                    [other] = pair - {node_id}
                    cut += _addresses(self._cluster, other)
            faults = {"cut": cut, "flush_delay_ms": self._flush_delays_ms.get(node_id, 0)}
            with suppress(BrokenPipeError):  # the node has ended
                os.write(node.faults, json.dumps(faults).encode() + b"\n")

    async def _known_brokers(self, node_id: int) -> set[int]:
        """Those of a Metadata answer; none while the broker does not serve."""
        host, port = _broker_address(self._cluster, node_id)
        try:
            connection = await KafkaConnection.connect(host, port, _CLIENT_ID, _CALL_TIMEOUT_MS)
        except NetworkError:
            return set()
        try:
            answer = await connection.call(MetadataRequest(topics=()), _CALL_TIMEOUT_MS)
        except NetworkError:
            return set()
        finally:
            connection.close()
        return {broker.node_id for broker in answer.brokers}

    def _output(self, node_id: int) -> Path:
        return self._folder / f"node-{node_id}.txt"

    def _last_lines(self, node_id: int) -> str:
        return " | ".join(self._output(node_id).read_text(errors="replace").splitlines()[-_LAST_LINES:])


def _make_cluster(spec: ClusterSpec, folder: Path) -> ClusterConfig:
    """Config and formatted folders. Raises HostError."""
    ports = iter(free_ports(spec.brokers + spec.controllers))
    replicas = min(3, spec.brokers)
    common: dict[str, object] = {
        "controller.listener.names": "CONTROLLER",
        "default.replication.factor": replicas,
        "min.insync.replicas": max(1, replicas - 1),
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": max(1, replicas - 1),
        "transaction.state.log.num.partitions": 4,
        "group.initial.rebalance.delay.ms": 0,
        **spec.configs,
    }
    tables = [
        {
            "node.id": node_id,
            "process.roles": role,
            "listeners": f"{listener}://{LOOPBACK}:{next(ports)}",
            "log.dirs": str(folder / f"node-{node_id}"),
            **common,
        }
        for role, listener, node_ids in (
            ("controller", "CONTROLLER", spec.controller_ids),
            ("broker", "PLAINTEXT", spec.broker_ids),
        )
        for node_id in node_ids
    ]
    path = folder / CONFIG_NAME
    path.write_text(nodes_as_toml("A cluster for tests: it is gone when they end.", tables))
    try:
        cluster = load_config(path)
    except ConfigError as error:
        raise HostError(str(error)) from error
    cluster_id = uuid_to_text(new_uuid())
    levels = default_features(DEFAULT_METADATA_VERSION)
    checkpoint = write_bootstrap_checkpoint(bootstrap_records(DEFAULT_METADATA_VERSION, levels), now_ms())
    for node in cluster.nodes:
        for log_dir in data_folders(node):
            format_folder(
                log_dir, node, cluster_id=cluster_id, directory_id=new_uuid(), checkpoint=checkpoint
            )
    return cluster


def _addresses(cluster: ClusterConfig, node_id: int) -> list[Address]:
    return [(each.host, each.port) for each in cluster.node(node_id).listeners]


def _broker_address(cluster: ClusterConfig, node_id: int) -> Address:
    listener = cluster.node(node_id).broker_listeners[0]
    return listener.host, listener.port


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


def _answer(answers: Any, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _pause() -> None:
    """Between two looks at a condition."""
    select.select([], [], [], _LOOK_AGAIN_S)


def main() -> None:
    """`python -m kquorum.testing.host SPEC`."""
    gc.disable()
    keep_files_private()
    die_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        host = Host(ClusterSpec.of_json(sys.argv[1]))
        gc.freeze()
        host.serve(sys.stdin, sys.stdout)
    except HostError as error:
        _answer(sys.stdout, {"error": str(error)})


if __name__ == "__main__":
    main()
