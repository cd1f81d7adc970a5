"""`KafkaCluster`: a cluster that a test starts, asks, harms, and forgets."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, cast

from kquorum.testing.commands import ClusterSpec

READY_TIMEOUT_S: Final = 30.0
_MOST_BROKERS: Final = 50
_MOST_CONTROLLERS: Final = 9


class ClusterFailed(Exception):
    """The cluster did not start, or a fault could not be done; the message has a node's last lines."""


class KafkaCluster:
    """Brokers with the ids 1, 2, ... and controllers with the ids 101, 102, ..., each a process.

    Any Kafka client connects to `bootstrap_servers`. All data are in a temporary folder, which is removed at the end.
    Faults are real: a killed broker is a process killed with SIGKILL. Used within `with`; not thread-safe.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        controllers: int = 1,
        configs: Mapping[str, Any] | None = None,
        timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        """`configs` are keys of a node's config, for all nodes. Topics have min(3, brokers) replicas by default.
        `timeout_s` bounds the waiting for brokers. Raises ValueError."""
        if not 1 <= brokers <= _MOST_BROKERS:
            raise ValueError(f"brokers is {brokers}, but must be between 1 and {_MOST_BROKERS}")
        if not 1 <= controllers <= _MOST_CONTROLLERS:
            raise ValueError(f"controllers is {controllers}, but must be between 1 and {_MOST_CONTROLLERS}")
        self._folder = Path(tempfile.mkdtemp(prefix="kquorum-"))
        self._spec = ClusterSpec(str(self._folder), brokers, controllers, dict(configs or {}))
        self._timeout_s = timeout_s
        self._host: subprocess.Popen[str] | None = None
        self._servers: dict[int, str] = {}

    # Start and end

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Returns once all brokers serve and know each other. Raises ClusterFailed."""
        self._host = subprocess.Popen(
            [sys.executable, "-P", "-m", "kquorum.testing.host", self._spec.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C ends the test run, which ends the cluster.
            start_new_session=True,
        )
        found = self._answer()
        self._servers = {int(node_id): address for node_id, address in found["bootstrap_servers"].items()}
        self.wait_ready()

    def close(self) -> None:
        """Kill all nodes and remove their data."""
        host, self._host = self._host, None
        if host is not None:
            cast(IO[str], host.stdin).close()
            host.wait()
            cast(IO[str], host.stdout).close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # What there is

    @property
    def is_running(self) -> bool:
        """Whether the process that holds the cluster runs; its nodes may have been killed one by one."""
        return self._host is not None and self._host.poll() is None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of each broker, comma-separated."""
        return ",".join(self._servers.values())

    @property
    def brokers(self) -> tuple[int, ...]:
        return self._spec.broker_ids

    @property
    def controllers(self) -> tuple[int, ...]:
        return self._spec.controller_ids

    @property
    def config_path(self) -> Path:
        """The config file of the cluster, for the command `kquorum`."""
        return self._folder / "quorum.toml"

    def address(self, broker: int) -> str:
        """`host:port` of one broker. Raises KeyError."""
        return self._servers[broker]

    def data_folder(self, node: int) -> Path:
        """The node's log directory: `__cluster_metadata-0` and the folders of partitions."""
        return self._folder / f"node-{node}"

    def output(self, node: int) -> str:
        """What the node has printed."""
        return (self._folder / f"node-{node}.txt").read_text(errors="replace")

    # Faults

    def kill(self, node: int) -> None:
        """SIGKILL: what was not flushed stays with the kernel, as when a process crashes."""
        self._do("kill", node=node)

    def stop_node(self, node: int) -> None:
        """SIGTERM: the node leaves in order."""
        self._do("stop", node=node)

    def start_node(self, node: int, *, wait: bool = True) -> None:
        """Start a node that was killed or stopped; with `wait`, until all running brokers know each other."""
        self._do("start", node=node)
        if wait:
            self.wait_ready()

    def pause(self, node: int) -> None:
        """SIGSTOP: connections stay open, and nothing is answered."""
        self._do("pause", node=node)

    def resume(self, node: int) -> None:
        self._do("resume", node=node)

    def cut(self, nodes: int | Iterable[int], others: int | Iterable[int] | None = None) -> None:
        """Nodes of the two sides do not reach each other until `mend`; `others` are all other nodes by default.
        Clients reach all of them."""
        near = _ids(nodes)
        everyone = (*self.brokers, *self.controllers)
        far = [each for each in everyone if each not in near] if others is None else _ids(others)
        self._do("cut", nodes=near, others=far)

    def mend(self) -> None:
        """All links are there again."""
        self._do("mend")

    def slow_disk(self, node: int, flush_delay_ms: int) -> None:
        """Each flush of the node's disk takes so much longer; 0 ends it."""
        self._do("slow_disk", node=node, flush_delay_ms=flush_delay_ms)

    def wait_ready(self) -> None:
        """Until each broker that runs lists all brokers that run. Raises ClusterFailed."""
        self._do("wait_ready", timeout_s=self._timeout_s)

    def _do(self, what: str, **arguments: Any) -> None:
        if self._host is None:
            raise ClusterFailed("the cluster is not running: use it within `with`")
        target = cast(IO[str], self._host.stdin)
        try:
            target.write(json.dumps({"do": what, **arguments}) + "\n")
            target.flush()
        except BrokenPipeError:
            raise ClusterFailed("the host of the cluster has ended") from None
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._host is not None
        line = cast(IO[str], self._host.stdout).readline()
        if not line:
            raise ClusterFailed(f"the host of the cluster ended with exit status {self._host.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ClusterFailed(answer["error"])
        return answer


def _ids(nodes: int | Iterable[int]) -> list[int]:
    return [nodes] if isinstance(nodes, int) else list(nodes)
