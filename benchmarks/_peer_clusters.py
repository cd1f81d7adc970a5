"""The clusters that benchmarks.peers writes to: ours, etcd's and Apache Kafka's controllers, three processes each.

etcd is built from the Go module proxy, once, into the user's cache; Kafka comes from Maven Central
(tests/interop/kafka_release.py). A side that cannot be had raises Unavailable, and the benchmark runs without it.
"""

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from kquorum.cli.processes import NodeFailed, NodeProcess, wait_until
from kquorum.compiled import ENVIRONMENT
from kquorum.node.config.materialise import free_ports
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import Unavailable, find_release
from tests.interop.node_config import NodeConfig, static_voters
from tests.support.cluster import CLUSTER_ID, KAFKAS_TIMES, Cluster

LOOPBACK = "127.0.0.1"
NODES = (1, 2, 3)
ETCD_VERSION = "v3.6.5"
KAFKA_LEVEL = "4.3"
_ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""
# What etcd's own benchmark does: goroutines that write one key after the other, sixteen to a connection. It prints
# "begin" after the warm-up, "end", and the microseconds of each write in between.
_ETCD_CLIENT = """package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const names, aConnection = 997, 16

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	clients, err := strconv.Atoi(os.Args[2])
	check(err)
	warmUp, err := time.ParseDuration(os.Args[3])
	check(err)
	length, err := time.ParseDuration(os.Args[4])
	check(err)
	connections := make([]*clientv3.Client, (clients+aConnection-1)/aConnection)
	for i := range connections {
		connections[i], err = clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}})
		check(err)
	}
	value := string(make([]byte, 100))
	var number atomic.Int64
	drive := func(length time.Duration) [][]time.Duration {
		found := make([][]time.Duration, clients)
		ends := time.Now().Add(length)
		var all sync.WaitGroup
		for i := range found {
			all.Add(1)
			go func() {
				defer all.Done()
				client := connections[i/aConnection]
				for now := time.Now(); now.Before(ends); {
					_, err := client.Put(context.Background(), fmt.Sprintf("client-%d", number.Add(1)%names), value)
					check(err)
					done := time.Now()
					found[i] = append(found[i], done.Sub(now))
					now = done
				}
			}()
		}
		all.Wait()
		return found
	}
	drive(warmUp)
	fmt.Println("begin")
	found := drive(length)
	fmt.Println("end")
	out := bufio.NewWriter(os.Stdout)
	for _, some := range found {
		for _, each := range some {
			fmt.Fprintln(out, each.Microseconds())
		}
	}
	check(out.Flush())
}
"""
_GUARD = Path(__file__).parent.parent / "tests" / "interop" / "die_with_parent.py"
_JVM = ("-server", "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
_BUILD_TIMEOUT_S, _START_TIMEOUT_S = 600.0, 60.0

__all__ = ["EtcdSide", "KafkaSide", "OurSide", "Side", "Unavailable"]


class Side(Protocol):
    """A running cluster: where its nodes listen, and their process ids, by node id. `close` kills its processes."""

    name: str
    ports: Mapping[int, int]

    @property
    def pids(self) -> Mapping[int, int]: ...

    def close(self) -> None: ...


class OurSide:
    """Three controllers of the checkout in `tree`, with its compiled modules if there are some, or from its sources."""

    def __init__(
        self,
        name: str,
        folder: Path,
        tree: Path,
        *,
        is_compiled: bool = True,
        python: str = sys.executable,
        compiled: Path | None = None,
    ) -> None:
        """`python` runs the nodes; `compiled` is where its compiled modules are, if not in the checkout."""
        self.name = name
        self._cluster = Cluster(folder, brokers=0, overrides=KAFKAS_TIMES)
        self._cluster.write_config()
        self._cluster.format()
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        if not is_compiled:
            environment[ENVIRONMENT] = "0"
        elif compiled is not None:
            environment[ENVIRONMENT] = str(compiled)
        self._nodes = [
            NodeProcess(
                self._cluster.config_path,
                node_id,
                folder / f"node-{node_id}.out",
                environment=environment,
                python=python,
            )
            for node_id in NODES
        ]
        self.ports = {node_id: self._cluster.ports[node_id] for node_id in NODES}
        with ExitStack() as failing:
            failing.callback(self.close)
            for node in self._nodes:
                node.start()
            for node in self._nodes:
                node.wait_ready(_START_TIMEOUT_S)
            failing.pop_all()

    @property
    def pids(self) -> Mapping[int, int]:
        return {node.node_id: node.pid for node in self._nodes if node.pid is not None}

    def close(self) -> None:
        for node in self._nodes:
            node.kill()


class _Processes:
    """Programs of others, each killed when this process dies, with its output in a file."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, node_id: int, command: Sequence[str], output: Path) -> None:
        with output.open("wb") as file:
            self._running[node_id] = subprocess.Popen(
                [sys.executable, "-P", "-S", str(_GUARD), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pids(self) -> Mapping[int, int]:
        return {node_id: process.pid for node_id, process in self._running.items()}

    def kill(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


class KafkaSide:
    """Three controllers of Apache Kafka, compiled and collected as Kafka's start script has it, with half its heap."""

    name = "kafka"

    def __init__(self, folder: Path) -> None:
        release = find_release()
        folder.mkdir(parents=True, exist_ok=True)
        kafka = Kafka(release, folder)
        self.ports = dict(zip(NODES, free_ports(len(NODES)), strict=True))
        self._processes = _Processes()
        options = (*_JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", release.classpath)
        outputs = []
        with ExitStack() as failing:
            failing.callback(self.close)
            for node_id, port in self.ports.items():
                quorum = static_voters(self.ports)
                config = NodeConfig(folder, node_id, port, quorum=quorum, settings=KAFKAS_TIMES)
                words = ("-t", CLUSTER_ID, "-c", str(config.kafka_path), "-r", KAFKA_LEVEL)
                kafka.run("kafka.tools.StorageTool", "format", *words)
                outputs.append(folder / f"kafka-{node_id}.out")
                command = [release.java, *options, "kafka.Kafka", str(config.kafka_path)]
                self._processes.start(node_id, command, outputs[-1])
            if not wait_until(lambda: all(map(_has_started, outputs)), _START_TIMEOUT_S):
                raise NodeFailed(
                    f"Kafka has not started in {_START_TIMEOUT_S:.0f} s; its output is in {folder}"
                )
            failing.pop_all()

    @property
    def pids(self) -> Mapping[int, int]:
        return self._processes.pids

    def close(self) -> None:
        self._processes.kill()


def _has_started(output: Path) -> bool:
    return "Kafka Server started" in output.read_text(errors="replace")


class EtcdSide:
    """Three members with etcd's defaults."""

    name = "etcd"

    def __init__(self, folder: Path) -> None:
        program, self.client = _etcd()
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * len(NODES))
        self.ports = dict(zip(NODES, ports[: len(NODES)], strict=True))
        peers = dict(zip(NODES, (f"http://{LOOPBACK}:{port}" for port in ports[len(NODES) :]), strict=True))
        members = ",".join(f"n{node_id}={url}" for node_id, url in peers.items())
        self._processes = _Processes()
        with ExitStack() as failing:
            failing.callback(self.close)
            for node_id in NODES:
                command = self._command(program, folder, node_id, peers[node_id], members)
                self._processes.start(node_id, command, folder / f"n{node_id}.out")
            is_led = wait_until(lambda: self.leader_id() is not None, _START_TIMEOUT_S)
            if not is_led:
                raise NodeFailed(
                    f"etcd has no leader after {_START_TIMEOUT_S:.0f} s; its output is in {folder}"
                )
            failing.pop_all()

    def _command(self, program: Path, folder: Path, node_id: int, peer: str, members: str) -> list[str]:
        client = f"http://{LOOPBACK}:{self.ports[node_id]}"
        options = {
            "name": f"n{node_id}",
            "data-dir": str(folder / f"n{node_id}"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": members,
            "log-level": "warn",
        }
        return [str(program), *(f"--{key}={value}" for key, value in options.items())]

    @property
    def pids(self) -> Mapping[int, int]:
        return self._processes.pids

    def leader_id(self) -> int | None:
        """As the members' own metrics say."""
        for node_id, port in self.ports.items():
            try:
                with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=2) as answer:
                    lines = answer.read().decode().splitlines()
            except (urllib.error.URLError, OSError):
                continue
            if "etcd_server_is_leader 1" in lines:
                return node_id
        return None

    def close(self) -> None:
        self._processes.kill()


def _etcd() -> tuple[Path, Path]:
    """etcd's server and a client, built once. Raises Unavailable."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "kquorum" / f"etcd-{ETCD_VERSION}"
    program, client = folder / "etcd", folder / "put"
    client_source = folder / "client" / "main.go"
    if program.exists() and client.exists() and client_source.read_text() == _ETCD_CLIENT:
        return program, client
    go = shutil.which("go")
    if go is None:
        raise Unavailable("etcd cannot be built: there is no Go (install Go 1.24 or newer)")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.go").write_text(_ETCD_MAIN)
    client_source.parent.mkdir(exist_ok=True)
    client_source.write_text(_ETCD_CLIENT)
    if not (folder / "go.mod").exists():
        _go(go, folder, "mod", "init", "kquorum-bench-etcd")
    _go(go, folder, "get", f"go.etcd.io/etcd/server/v3@{ETCD_VERSION}")
    _go(go, folder, "get", f"go.etcd.io/etcd/client/v3@{ETCD_VERSION}")
    for made, package in ((program, "."), (client, "./client")):
        _go(go, folder, "build", "-o", f"{made.name}.new", package)
        (folder / f"{made.name}.new").replace(made)
    return program, client


def _go(go: str, folder: Path, *words: str) -> None:
    try:
        done = subprocess.run(
            [go, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"etcd cannot be built: go {words[0]} took more than {_BUILD_TIMEOUT_S:.0f} s"
        ) from None
    if done.returncode:
        raise Unavailable(f"etcd cannot be built: go {words[0]}: {done.stderr.strip()[-300:]}")


def processor_s(pids: Sequence[int]) -> list[float]:
    """User and system time that each process has used; 0 where the kernel does not tell (only Linux does)."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = []
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            used.append(0.0)
            continue
        used.append((int(fields[11]) + int(fields[12])) / ticks)
    return used
