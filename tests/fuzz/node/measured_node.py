"""A node as `kquorum start` runs it, in a process of its own, which tells how long the turns of its loop were.

uvloop does not let its turns be measured, so the node runs in asyncio's own loop.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

import uvloop

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports
from kquorum.node.process import run_node
from tests.support.certificates import authority, issued, write
from tests.support.node.loop_turns import Turns, measured
from tests.support.single_node import NODE_ID, both_roles, write_config

LIMIT_S = 0.05
USER, SUPER_USER = "mallory", "admin"
SECRET = "a-secret-of-a-test"
_AUTHORITY = "ca.pem"
_START_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 60.0
_LISTENERS = ("PLAINTEXT", "LOGIN", "TLS", "CONTROLLER")
# The peers of the fuzzer wait for the node to give them up, and so less long than the defaults have it.
_SHORT_TIMES = {
    "kquorum.frame.timeout.ms": 1_000,
    "kquorum.output.timeout.ms": 1_000,
    "connection.failed.authentication.delay.ms": 10,
}
_USERS = " ".join(f'user_{name}="{SECRET}"' for name in ("node", USER, SUPER_USER))
# With an authorizer the controllers' listener must ask for a login: nodes use it too.
_SECURED: dict[str, object] = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,TLS:SASL_SSL,CONTROLLER:SASL_PLAINTEXT"
    ),
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.login.plain.sasl.jaas.config": f"PlainLoginModule required {_USERS};",
    "kquorum.grpc.security": "ssl",
    "listener.name.tls.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.tls.plain.sasl.jaas.config": f"PlainLoginModule required {_USERS};",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        f'PlainLoginModule required username="node" password="{SECRET}" {_USERS};'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:node;User:{SUPER_USER}",
    "delegation.token.secret.key": SECRET,
}


# The inputs are to come as fast as they can: many are connections of their own.
_FAST_GRPC = {
    "listener.name.grpc.max.connection.creation.rate": 1_000_000,
    "kquorum.grpc.max.calls.per.second": 1_000_000,
}


@dataclass
class MeasuredNode:
    """Its listeners' ports, by name."""

    process: BaseProcess
    pipe: Connection
    output: Path
    folder: Path
    ports: dict[str, int]

    @property
    def is_running(self) -> bool:
        return self.process.is_alive()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def trust(self) -> dict[str, str]:
        """A client's keys for a node with TLS."""
        return {"ssl.truststore.location": str(self.folder / _AUTHORITY)}

    def told(self) -> str:
        logs = sorted(self.folder.rglob("kquorum.log*"))
        return self.output.read_text() + "".join(path.read_text() for path in logs)

    def turns(self) -> Turns | None:
        """Since the last time this was asked; None where the node has ended or answers no more."""
        try:
            self.pipe.send(None)
            if self.pipe.poll(_ANSWER_TIMEOUT_S):
                found: Turns = self.pipe.recv()
                return found
        except (OSError, EOFError):
            pass
        return None


@contextmanager
def measured_node(folder: Path, *, is_secured: bool, limit_s: float = LIMIT_S) -> Iterator[MeasuredNode]:
    """A node of both roles with all of its listeners: with an authorizer and logins, or as the defaults have it."""
    names = _LISTENERS if is_secured else ("PLAINTEXT", "CONTROLLER")
    ports = dict(zip((*names, "grpc", "metrics"), free_ports(len(names) + 2), strict=True))
    roles = both_roles({name: ports[name] for name in names}, grpc=ports["grpc"], metrics=ports["metrics"])
    others: dict[str, object] = {"inter.broker.listener.name": "PLAINTEXT"} | _SHORT_TIMES | _FAST_GRPC
    if is_secured:
        folder.mkdir(parents=True, exist_ok=True)
        key_store = write(folder / "node.pem", issued("node", "localhost"))
        write(folder / _AUTHORITY, authority().pem.decode())
        others |= _SECURED
        for name in ("tls", "grpc"):
            others[f"listener.name.{name}.ssl.keystore.location"] = key_store
    config, output = write_config(folder, roles | others), folder / "node.out"
    assert run(["format", "-c", str(config)]) == 0
    output.touch()
    pipe, childs_end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_run, args=(config, output, childs_end, limit_s), daemon=True
    )
    process.start()
    childs_end.close()
    node = MeasuredNode(process, pipe, output, folder, ports)
    try:
        is_ready = wait_until(lambda: " ready" in output.read_text() or not node.is_running, _START_TIMEOUT_S)
        assert is_ready, node.told()
        assert node.is_running, node.told()
        node.turns()
        yield node
    finally:
        process.kill()
        process.join()
        pipe.close()


# In the node's process


def _run(config: Path, output: Path, pipe: Connection, limit_s: float) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for each in (1, 2):
        os.dup2(descriptor, each)
    uvloop.run = lambda main, **_options: asyncio.run(main)  # type: ignore[assignment]
    with measured(counts_calls=False, limit_s=limit_s) as turns:
        Thread(target=_answer, args=(turns, pipe), daemon=True).start()
        run_node(load_config(config), NODE_ID)


def _answer(turns: Turns, pipe: Connection) -> None:
    while True:
        try:
            pipe.recv()
        except EOFError:
            os._exit(0)
        pipe.send(turns.take())
