"""Brokers of old releases of Apache Kafka, with their ZooKeeper, as processes; Maven fetches the jars once."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kquorum.cli.processes import wait_until
from kquorum.node.config.materialise import free_ports
from tests.interop.kafka_release import Unavailable, cache_folder

SCALA = {"0.8.2.2": "2.11", "1.1.1": "2.12", "2.8.2": "2.12", "3.9.2": "2.13"}
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
_LOGGING = (("org.slf4j", "slf4j-log4j12", "1.7.25"), ("log4j", "log4j", "1.2.17"))
_RESOLVE_S, _START_S, _PRODUCE_S = 300, 90.0, 90
_DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")


def class_path(version: str) -> str:
    """Raises Unavailable."""
    folder = cache_folder()
    known = folder / f"old-classpath-{version}.txt"
    if known.exists() and all(map(os.path.exists, known.read_text().strip().split(os.pathsep))):
        return known.read_text().strip()
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Maven (mvn) is not installed, and fetches old releases of Kafka for this test")
    wanted = [("org.apache.kafka", f"kafka_{SCALA[version]}", version), *_LOGGING]
    if version.startswith("3"):
        wanted.append(("org.apache.kafka", "kafka-tools", version))
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
        for group, name, number in wanted
    )
    project = folder / f"old-{version}.xml"
    folder.mkdir(parents=True, exist_ok=True)
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>kquorum'
        "</groupId><artifactId>old</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    command = [
        maven,
        "--batch-mode",
        "--quiet",
        "--file",
        str(project),
        _PLUGIN,
        f"-Dmdep.outputFile={known}",
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_RESOLVE_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not get Kafka {version} within {_RESOLVE_S} s") from None
    if done.returncode or not known.exists():
        raise Unavailable(f"Maven cannot get Kafka {version}: {(done.stdout or done.stderr)[-300:]}")
    return known.read_text().strip()


class OldKafka:
    """One broker. Its partitions lie in `logs`; leave it with `kill` or `stop`, or it is killed."""

    def __init__(self, version: str, folder: Path, **configs: object) -> None:
        java = shutil.which("java")
        if java is None:
            raise Unavailable("there is no Java")
        self._java = [java, "-Xmx256m", "-XX:+IgnoreUnrecognizedVMOptions", "-cp", class_path(version)]
        self._version = version
        self._folder = folder
        self.logs = folder / "logs"
        self._configs = configs
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        for name in ("zookeeper", "logs"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._zookeeper_port, self._port = free_ports(2)
        self._start(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            {
                "dataDir": self._folder / "zookeeper",
                "clientPort": self._zookeeper_port,
                "maxClientCnxns": 0,
                "admin.enableServer": "false",
            },
            self._zookeeper_port,
        )
        self._start(
            "kafka.Kafka",
            {
                "broker.id": 0,
                "port": self._port,
                "host.name": "127.0.0.1",
                "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
                "zookeeper.connect": f"127.0.0.1:{self._zookeeper_port}",
                "zookeeper.connection.timeout.ms": 60_000,
                "log.dirs": self.logs,
                "num.partitions": 1,
                "offsets.topic.replication.factor": 1,
                **self._configs,
            },
            self._port,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def produce(self, topic: str, values: Sequence[str], codec: str) -> None:
        command = ["kafka.tools.ConsoleProducer", "--broker-list", f"127.0.0.1:{self._port}"]
        command += ["--topic", topic, "--compression-codec", codec, "--message-send-max-retries", "50"]
        command += ["--request-required-acks", "1"]
        self._run(command, "".join(f"{each}\n" for each in values))

    def create(self, topic: str) -> None:
        if self._version.startswith("3"):
            command = ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", f"127.0.0.1:{self._port}"]
        else:
            command = ["kafka.admin.TopicCommand", "--zookeeper", f"127.0.0.1:{self._zookeeper_port}"]
        command += ["--create", "--topic", topic, "--partitions", "1", "--replication-factor", "1"]
        self._run(command, "")

    def _run(self, command: Sequence[str], given: str) -> None:
        done = subprocess.run(
            [*self._java, *command],
            input=given.encode(),
            capture_output=True,
            timeout=_PRODUCE_S,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-500:]

    def kill(self) -> None:
        """SIGKILL."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        """In order: the broker writes its mark of that."""
        broker = self._processes.pop()
        broker.send_signal(signal.SIGTERM)
        broker.wait(_START_S)
        self.kill()

    def _start(self, main: str, values: dict[str, object], port: int) -> None:
        properties = self._folder / f"{main}.properties"
        properties.write_text("".join(_lines(values.items())))
        with (self._folder / f"{main}.out").open("ab") as output:
            command = [sys.executable, str(_DIE_WITH_PARENT), *self._java, main, str(properties)]
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        self._processes.append(process)
        listens = wait_until(lambda: process.poll() is not None or _listens(port), _START_S, 0.1)
        assert listens, f"{main} does not listen within {_START_S} s"
        assert process.poll() is None, (self._folder / f"{main}.out").read_text()[-1_000:]


def _lines(values: Iterable[tuple[str, object]]) -> Iterable[str]:
    return (f"{name.replace('_', '.')}={value}\n" for name, value in values)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
