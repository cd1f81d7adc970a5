"""Many whole nodes in few processes: each is what `kquorum start` runs, on one event loop with its neighbours.

    with Cluster(folder, brokers=200) as cluster, NodeHosts(cluster) as hosts:
        cluster.format()
        cluster.start_nodes(cluster.controller_ids)
        hosts.start(groups_of(cluster.broker_ids, processes=4))

Every node notes when which offset was in its image, by the clock that all processes of a machine share
(`time.monotonic_ns`): `moments` fetches that. The processes are killed at the end, and end with this one.
"""

import asyncio
import gc
import logging
import multiprocessing
import os
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.cli.processes import NodeFailed
from kquorum.metadata.image.image import MetadataImage
from kquorum.node.cluster_node import ClusterNode
from kquorum.node.config.load import load_config
from kquorum.node.folders import NodeFolders
from kquorum.raft.adapters.clock import MonotonicWallClock
from tests.support.cluster import Cluster

START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 30.0
READY, MOMENTS, FORGET = "ready", "moments", "forget"

# When (monotonic nanoseconds) which offset was the last in the image, in order.
Moments = list[tuple[int, int]]


def groups_of(node_ids: Sequence[int], *, processes: int) -> list[tuple[int, ...]]:
    """The nodes of each process; none is empty."""
    return [tuple(node_ids[first::processes]) for first in range(min(processes, len(node_ids)))]


class NodeHosts:
    """Of one cluster, whose folders are formatted before `start`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._hosts: list[tuple[BaseProcess, Connection]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def process_ids(self) -> list[int]:
        return [process.pid or 0 for process, _ in self._hosts]

    def start(self, groups: Sequence[Sequence[int]]) -> None:
        """A process for each group; returns once all of their nodes serve. Raises NodeFailed."""
        new = [self._spawn(group) for group in groups]
        for process, pipe in new:
            told = _hear(process, pipe, START_TIMEOUT_S)
            if told != READY:
                raise NodeFailed(f"a host of nodes did not start:\n{told}\n{self.log_text()}")

    def moments(self) -> dict[int, Moments]:
        """By node, since the start or the last `forget`."""
        found: dict[int, Moments] = {}
        for answer in self._ask_all(MOMENTS):
            found.update(answer)
        return found

    def forget(self) -> None:
        """Begin again to note moments."""
        self._ask_all(FORGET)

    def log_text(self) -> str:
        """Warnings and errors of all nodes in all processes."""
        return "".join(path.read_text() for path in sorted(self._cluster.folder.glob("host-*.log")))

    def close(self) -> None:
        for process, pipe in self._hosts:
            process.kill()
            process.join()
            pipe.close()
        self._hosts = []

    def _spawn(self, node_ids: Sequence[int]) -> tuple[BaseProcess, Connection]:
        pipe, childs_end = multiprocessing.Pipe()
        log_path = self._cluster.folder / f"host-{node_ids[0]}.log"
        process = multiprocessing.get_context("spawn").Process(
            target=_host, args=(self._cluster.config_path, tuple(node_ids), log_path, childs_end), daemon=True
        )
        process.start()
        childs_end.close()
        self._hosts.append((process, pipe))
        return process, pipe

    def _ask_all(self, command: str) -> list[Any]:
        for _, pipe in self._hosts:
            pipe.send(command)
        return [_hear(process, pipe, ANSWER_TIMEOUT_S) for process, pipe in self._hosts]


def _hear(process: BaseProcess, pipe: Connection, timeout_s: float) -> Any:
    try:
        if pipe.poll(timeout_s):
            return pipe.recv()
    except EOFError:
        process.join(ANSWER_TIMEOUT_S)
        raise NodeFailed(f"a host of nodes ended with {process.exitcode}") from None
    raise NodeFailed(f"a host of nodes said nothing for {timeout_s:.0f} s")


# In the host's process


def _host(config_path: Path, node_ids: tuple[int, ...], log_path: Path, pipe: Connection) -> None:
    import uvloop

    logging.basicConfig(filename=log_path, level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    try:
        uvloop.run(_Host(config_path, node_ids, pipe).run())
    except BaseException:
        pipe.send(traceback.format_exc())
        raise


class _Host:
    def __init__(self, config_path: Path, node_ids: tuple[int, ...], pipe: Connection) -> None:
        self._config_path = config_path
        self._node_ids = node_ids
        self._pipe = pipe
        self._moments: dict[int, Moments] = {node_id: [] for node_id in node_ids}

    async def run(self) -> None:
        """Until the parent hangs up or kills it."""
        clock = MonotonicWallClock()
        cluster = load_config(self._config_path)
        nodes = []
        for node_id in self._node_ids:
            config = cluster.node(node_id)
            nodes.append(ClusterNode(config, NodeFolders(config, clock.now_ms()), clock, _handle_fatal))
            self._note_images_of(node_id, nodes[-1])
        await asyncio.gather(*(node.start() for node in nodes))
        gc.collect()
        gc.freeze()
        self._pipe.send(READY)
        await self._serve()

    def _note_images_of(self, node_id: int, node: ClusterNode) -> None:
        """Called first. A broker's cache has been swapped by then, in the same turn of the loop: no
        client was answered in between."""

        def note(image: MetadataImage) -> None:
            moment = (time.monotonic_ns(), image.provenance.last_contained_offset)
            self._moments[node_id].append(moment)

        if isinstance(node.machine, BrokerStateMachine):
            node.machine.observers.insert(0, lambda _now_ms, _delta, image: note(image))
        else:
            node.machine.publishers.insert(0, lambda image, _delta: note(image))

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                command = await loop.run_in_executor(None, self._pipe.recv)
            except EOFError:
                os._exit(0)
            if command == FORGET:
                for moments in self._moments.values():
                    del moments[:-1]
            self._pipe.send(self._moments if command == MOMENTS else None)


def _handle_fatal(error: Exception) -> None:
    logging.getLogger("tests.node_hosts").error("a node cannot go on", exc_info=error)
    os._exit(1)
