"""A node of both roles in a process that may open few files, and the connections that an attacker holds to it."""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.request import urlopen

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.materialise import free_ports
from tests.support.cluster import PROJECT_ROOT
from tests.support.single_node import HOST, NODE_ID, both_roles, write_config


@dataclass
class LimitedNode:
    """Its listeners' ports, by name."""

    process: subprocess.Popen[bytes]
    output: Path
    log_folder: Path
    ports: dict[str, int]

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.ports['PLAINTEXT']}"

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def segments(self) -> int:
        return len(list(self.log_folder.glob("*.log")))

    @property
    def log_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.log_folder.glob("*.log*"))

    def lowest_free_descriptor(self) -> int:
        held = {int(each.name) for each in Path(f"/proc/{self.process.pid}/fd").iterdir()}
        return next(number for number in count() if number not in held)

    @property
    def spare_descriptors(self) -> int:
        """Beside those of the standard streams."""
        held = Path(f"/proc/{self.process.pid}/fd").iterdir()
        return sum(int(each.name) > 2 and each.readlink() == Path(os.devnull) for each in held)

    def told(self) -> str:
        log = self.log_folder.parent / "kquorum.log"
        return self.output.read_text() + (log.read_text() if log.exists() else "")

    def metrics(self) -> str:
        """Raises OSError where they are not told in time."""
        with urlopen(f"http://{HOST}:{self.ports['metrics']}/metrics", timeout=10) as answer:
            return str(answer.read().decode())


@contextmanager
def limited_node(folder: Path, open_files: int, **keys: object) -> Iterator[LimitedNode]:
    names = ("PLAINTEXT", "CONTROLLER", "grpc", "metrics")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    of_kafka = {name: ports[name] for name in ("PLAINTEXT", "CONTROLLER")}
    roles = both_roles(of_kafka, grpc=ports["grpc"], metrics=ports["metrics"])
    config = write_config(folder, roles | keys)
    assert run(["format", "-c", str(config)]) == 0
    path = folder / "node.out"
    with path.open("wb") as output:
        process = subprocess.Popen(
            [
                *("sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh"),
                sys.executable,
                "-P",
                "-m",
                "kquorum.cli.child",
                "start",
                "--config",
                str(config),
                "--node",
                str(NODE_ID),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)},
        )
    node = LimitedNode(process, path, folder / "data" / "__cluster_metadata-0", ports)
    try:
        assert wait_until(lambda: " ready" in path.read_text() or not node.is_running, 60), node.told()
        assert node.is_running, node.told()
        yield node
    finally:
        process.kill()
        process.wait()


@contextmanager
def held_connections(port: int, wanted: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many, each with these first bytes, as far as the node takes them."""
    with ExitStack() as held:
        peers = [held.enter_context(socket.socket()) for _ in range(wanted)]
        for peer in peers:
            peer.settimeout(5)
            # A node that refuses closes at once; one without descriptors lets its kernel's queue fill.
            with suppress(ConnectionResetError, BrokenPipeError, TimeoutError):
                peer.connect((HOST, port))
                peer.sendall(first)
        yield peers


def still_open(held: list[socket.socket]) -> int:
    """How many of them the node has not closed, as far as this end has heard."""
    return sum(not is_closed(peer) for peer in held)


def is_closed(peer: socket.socket) -> bool:
    """Whether the other end has closed it; what it said before is thrown away."""
    poll = select.poll()
    poll.register(peer, select.POLLIN)
    try:
        while poll.poll(0):
            if not peer.recv(65_536):
                return True
    except OSError:
        return True
    return False
