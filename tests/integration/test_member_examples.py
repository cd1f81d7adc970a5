"""The programs in examples/ as members of a real cluster: they join, lead, report, take over from each other, leave."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, run_asking
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK
from kquorum.wire.protocol.apis import ApiKey
from tests.support.api_calls import message_of
from tests.support.cluster import PROJECT_ROOT, Cluster

pytest.importorskip("grpc")

pytestmark = [pytest.mark.interop, pytest.mark.slow]

EXAMPLES = PROJECT_ROOT / "examples"
DIE_WITH_PARENT = PROJECT_ROOT / "tests" / "interop" / "die_with_parent.py"
PATIENCE_S = 30.0
INSTALL_TIMEOUT_S = 180
FIRST, SECOND = 201, 202


class MemberProcess:
    """One life of an example program."""

    def __init__(self, program: "Program", address: str, broker_id: int, folder: Path, life: int) -> None:
        self._path = folder / f"{broker_id}-{life}.out"
        self._output: IO[str] = self._path.open("w")
        self.process = subprocess.Popen(
            [sys.executable, str(DIE_WITH_PARENT), *program.command, address, str(broker_id)],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=program.environment,
            cwd=PROJECT_ROOT,
        )

    @property
    def lines(self) -> list[str]:
        return self._path.read_text().splitlines()

    def wait_for(self, line: str, cluster: Cluster) -> None:
        """Until it has printed a line that begins so."""
        wait_until(
            lambda: self._has_said(line) or self.process.poll() is not None, PATIENCE_S, interval_s=0.1
        )
        assert self._has_said(line), f"no {line!r} in\n" + "\n".join(self.lines) + f"\n{cluster.tails()}"

    def wait_for_last(self, line: str, cluster: Cluster) -> None:
        """Until what it said last of this partition is that."""
        found = wait_until(lambda: self._last_of(line.partition(" ")[0]) == line, PATIENCE_S, interval_s=0.1)
        assert found, f"not {line!r} at last in\n" + "\n".join(self.lines) + f"\n{cluster.tails()}"

    def _has_said(self, beginning: str) -> bool:
        return any(line.startswith(beginning) for line in self.lines)

    def _last_of(self, partition: str) -> str | None:
        return next((line for line in reversed(self.lines) if line.partition(" ")[0] == partition), None)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        self._output.close()
        return status


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("members")
    with Cluster(folder, controllers=1, brokers=1, with_grpc=True) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where Node.js finds what the example imports."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js with npm is not installed")
    if (EXAMPLES / "member-node" / "node_modules").exists():
        return str(EXAMPLES / "member-node" / "node_modules")
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(EXAMPLES / "member-node" / "package.json", folder)
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S, cwd=folder)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install what the example needs (is its registry reachable?): {error}")
    return str(folder / "node_modules")


@dataclass(frozen=True)
class Program:
    language: str
    command: tuple[str, ...]
    environment: dict[str, str]


@pytest.fixture(params=["python", "node"])
def program(request: pytest.FixtureRequest) -> Program:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    if request.param == "python":
        return Program(request.param, (sys.executable, str(EXAMPLES / "member.py")), environment)
    environment["NODE_PATH"] = request.getfixturevalue("node_modules")
    node = shutil.which("node")
    assert node is not None, "else the modules would not be there"
    return Program(request.param, (node, str(EXAMPLES / "member-node" / "member.js")), environment)


def create_topic(cluster: Cluster, name: str, *replicas: int) -> None:
    async def ask() -> int:
        async with ClusterClient([HostPort(LOOPBACK, cluster.ports[101])], 10_000) as client:
            topic = {
                "name": name,
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [{"partition_index": 0, "broker_ids": list(replicas)}],
                "configs": [],
            }
            body = {"topics": [topic], "timeout": 10_000, "validate_only": False}
            return int(
                (await client.ask(PendingRequest(request=message_of(ApiKey.CREATE_TOPICS, body), doubt="")))
                .topics[0]
                .error_code
            )

    assert run_asking(ask()) == 0


def test_members_of_any_language_lead_report_take_over_and_leave(
    cluster: Cluster, tmp_path: Path, program: Program, request: pytest.FixtureRequest
) -> None:
    # One is served by the controller, the other by a broker that carries its requests there.
    addresses = {FIRST: cluster.grpc_ports[1], SECOND: cluster.grpc_ports[101]}
    topic = f"orders-of-{program.language}"

    def start(broker_id: int, life: int) -> MemberProcess:
        member = MemberProcess(program, f"{LOOPBACK}:{addresses[broker_id]}", broker_id, tmp_path, life)
        request.addfinalizer(member.process.kill)
        member.wait_for("active with epoch ", cluster)
        return member

    first, second = start(FIRST, 1), start(SECOND, 1)
    create_topic(cluster, topic, FIRST, SECOND)
    led_by = f"{topic}-0 leader="
    for member in (first, second):
        member.wait_for_last(f"{led_by}{FIRST} isr=[{FIRST}, {SECOND}]", cluster)
    second.end(signal.SIGKILL)
    first.wait_for_last(f"{led_by}{FIRST} isr=[{FIRST}]", cluster)
    second = start(SECOND, 2)
    first.wait_for(f"isr reported: NONE [{FIRST}, {SECOND}]", cluster)
    second.wait_for_last(f"{led_by}{FIRST} isr=[{FIRST}, {SECOND}]", cluster)
    first.end(signal.SIGKILL)
    second.wait_for_last(f"{led_by}{SECOND} isr=[{SECOND}]", cluster)
    first = start(FIRST, 2)
    first.wait_for_last(f"{led_by}{SECOND} isr=[{FIRST}, {SECOND}]", cluster)
    assert second.end(signal.SIGTERM) == 0
    assert second.lines[-1] == "left", second.lines
    first.wait_for_last(f"{led_by}{FIRST} isr=[{FIRST}]", cluster)
    assert first.end(signal.SIGTERM) == 0
    assert first.lines[-1] == "left"
