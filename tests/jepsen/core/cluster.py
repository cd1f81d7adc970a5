"""The cluster under test: real processes, started, killed, paused and configured again."""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self

from kquorum.cli.processes import NodeFailed, NodeGroup, NodeProcess, wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.wire.uuids import uuid_to_text
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.cluster_config import ConfigWriter, Overrides, text_of
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.members import Members
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.jepsen.net.network import Network

PROJECT_ROOT = Path(__file__).resolve().parents[3]
NODES_FOLDER = "nodes"
EXITS_FILE = "exits.json"
_FORMAT_TIMEOUT_S = 60.0
_READY_TIMEOUT_S = 60.0
_ASK_TIMEOUT_S = 2.0


DiskMaker = Callable[[Path, Path], FaultyDisk]
"""Makes a disk of (data folder, folder for the disk's own state)."""

# What a node prints when it finds its log or election state lacking, and when all is there again.
_LACKS = ("is corrupt at byte", "lacks what was in it", "is not a whole snapshot")
_WHOLE = ("the log is repaired", "caught up with what was lost")


class Cluster:
    """Entering formats and starts all nodes; leaving stops them, and writes which of them had ended by themselves."""

    def __init__(
        self,
        folder: Path,
        members: Members,
        network: Network,
        *,
        overrides: Overrides | None = None,
        make_disk: DiskMaker | None = None,
        no_disks: str = "no fault of this run needs faulty disks",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is added to that of every node; `no_disks` says why there is no `make_disk`."""
        self._folder = folder.absolute() / NODES_FOLDER
        self._members = members
        self._network = network
        self.cluster_id = uuid_to_text(uuid.uuid4())
        self._configs = ConfigWriter(self._folder, members, network, self.cluster_id, overrides or {})
        # Children find the project's packages also where it is not installed.
        self._environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), **(environment or {})}
        self.no_disks = no_disks
        self.disks = {} if make_disk is None else {each: self._disk(each, make_disk) for each in members.all}
        nodes = [self._process(node_id) for node_id in members.all]
        self._group = NodeGroup(nodes, stop_first=members.brokers)
        self._down: set[int] = set()
        self._may_end: set[int] = set()
        self._paused: set[int] = set()
        self._ended: dict[int, int] = {}
        # A node dies with the *thread* that started it (prctl), so one thread that lasts starts them all.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jepsen-starter")

    def __enter__(self) -> Self:
        """Raises NodeFailed."""
        for node_id in self._members.all:
            self._configs.write(node_id)
        try:
            self._format_all()
            for disk in self.disks.values():
                disk.forget()
            for node_id in self._members.all:
                self.start(node_id)
            for node_id in self._members.all:
                self._group[node_id].wait_ready(_READY_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for node_id in self._members.all:
            self._note_end(node_id)
        exits = {str(node_id): self._ended.get(node_id) for node_id in self._members.all}
        try:
            (self._folder / EXITS_FILE).write_text(json.dumps(exits, indent=2) + "\n")
        finally:
            for node_id in list(self._paused):
                self.resume(node_id)
            self._group.stop()
            self._starter.shutdown()

    # What faults do to a node. Each is for one thread at a time, the nemesis'.

    def start(self, node_id: int) -> None:
        """Start it where it does not run; it is not waited for."""
        self._note_end(node_id)
        if not self._group[node_id].is_running:
            self._starter.submit(self._start_inside, node_id).result()
        self._down.discard(node_id)

    def kill(self, node_id: int) -> None:
        """SIGKILL; also a paused one dies of it."""
        self._note_end(node_id)
        self._down.add(node_id)
        self._paused.discard(node_id)
        self._group[node_id].kill()

    def stop(self, node_id: int) -> bool:
        """SIGTERM; whether it stopped by itself in time."""
        self._note_end(node_id)
        self._down.add(node_id)
        self._group[node_id].terminate()
        return self._group[node_id].wait_stopped()

    def pause(self, node_id: int) -> None:
        """SIGSTOP: it keeps its connections and its memory, and does nothing."""
        self._signal(node_id, signal.SIGSTOP)
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGCONT)
        self._paused.discard(node_id)

    def allow_end(self, node_id: int, *, allowed: bool = True) -> None:
        """Whether the node may end by itself from now on: on a disk that fails, it has to."""
        self._note_end(node_id)
        (self._may_end.add if allowed else self._may_end.discard)(node_id)

    def reconfigure(self, node_id: int, overrides: Overrides) -> None:
        """Its config file from its next start on."""
        self._configs.write(node_id, overrides)

    def is_running(self, node_id: int) -> bool:
        return self._group[node_id].is_running

    def await_ready(self, node_id: int, over: threading.Event, timeout_s: float = _READY_TIMEOUT_S) -> bool:
        """Whether the node became ready in time, and before `over` was set; one that ended does not."""
        node = self._group[node_id]
        wait_until(lambda: node.is_ready or not node.is_running or over.is_set(), timeout_s)
        return node.is_ready and node.is_running

    def data_folder(self, node_id: int) -> Path:
        return self._folder / str(node_id) / "data"

    def output_bytes(self, node_id: int) -> int:
        """How much the node has printed in all its lives."""
        return self._group[node_id].output_path.stat().st_size

    def is_whole(self, node_id: int, since_bytes: int) -> bool:
        """Whether it runs and has, or got back, all that its disk should hold, by what it printed from there on."""
        said = self._group[node_id].output_path.read_bytes()[since_bytes:].decode(errors="replace")
        lacked = max(said.rfind(text) for text in _LACKS)
        regained = max(said.rfind(text) for text in _WHOLE)
        node = self._group[node_id]
        return node.is_running and node.is_ready and regained >= lacked

    def grpc_address(self, node_id: int) -> HostPort:
        return self._configs.grpc_addresses[node_id]

    def config_path(self, node_id: int) -> Path:
        return self._configs.path(node_id)

    def format(self, node_id: int, *options: str) -> None:
        """`kquorum format` of the one node. Raises NodeFailed with its words."""
        self.kquorum("format", "--config", str(self.config_path(node_id)), "--node", str(node_id), *options)

    def kquorum(self, *arguments: str) -> str:
        """What a command prints; it runs where this thread is. Raises NodeFailed with its words."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "kquorum.cli.child", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
            env=self._environment,
            check=False,
        )
        if done.returncode != 0:
            raise NodeFailed(
                f"kquorum {arguments[0]} ended with exit status {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def wait_until_brokers_serve(self) -> None:
        """Every broker sees all brokers. Call it in a thread that entered the network as a client."""
        for node_id in self._members.brokers:
            if not wait_until(partial(self._sees_all, node_id), _READY_TIMEOUT_S, 0.1):
                raise NodeFailed(f"broker {node_id} did not see all brokers within {_READY_TIMEOUT_S:.0f} s")

    def _sees_all(self, node_id: int) -> bool:
        address = self._network.address_of(node_id)
        client = TopicsClient(RawClient(address.host, address.port, _ASK_TIMEOUT_S), timeout_ms=0)
        try:
            return client.brokers() >= set(self._members.brokers)
        except ClientError:
            return False
        finally:
            client.close()

    def _process(self, node_id: int) -> NodeProcess:
        output = self._folder / str(node_id) / "output.log"
        disk = self.disks.get(node_id)
        environment = self._environment | dict(disk.environment() if disk is not None else {})
        return NodeProcess(self.config_path(node_id), node_id, output, environment=environment)

    def _disk(self, node_id: int, make_disk: DiskMaker) -> FaultyDisk:
        data = self.data_folder(node_id)
        data.mkdir(parents=True)
        return make_disk(data, data.with_name("disk"))

    def _start_inside(self, node_id: int) -> None:
        with self._network.inside(node_id):
            self._group[node_id].start()

    def _signal(self, node_id: int, number: signal.Signals) -> None:
        process_id = self._group[node_id].pid
        if process_id is not None and self._group[node_id].is_running:
            os.kill(process_id, number)

    def _note_end(self, node_id: int) -> None:
        """Remember that it ended by itself, if it did so without leave."""
        status = self._group[node_id].exit_status
        if status is not None and node_id not in self._down and node_id not in self._may_end:
            self._ended.setdefault(node_id, status)

    def _format_all(self) -> None:
        """A static quorum has one command for all; with spares the voters begin a dynamic one."""
        if not self._members.spares:
            self.kquorum("format", "--config", str(self.config_path(self._members.all[0])))
            return
        initial = ",".join(
            f"{node_id}@{text_of(self._network.advertised(node_id))}:{uuid_to_text(uuid.uuid4())}"
            for node_id in self._members.controllers
        )
        self._format_some(self._members.controllers, "--initial-controllers", initial)
        self._format_some(self._members.spares + self._members.brokers, "--no-initial-controllers")

    def _format_some(self, node_ids: Sequence[int], *options: str) -> None:
        nodes = [word for node_id in node_ids for word in ("--node", str(node_id))]
        self.kquorum("format", "--config", str(self.config_path(node_ids[0])), *nodes, *options)
