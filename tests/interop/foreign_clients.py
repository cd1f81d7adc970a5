"""Clients in other languages: kafkajs through npm, franz-go and Sarama through Go's modules, kcat where it is
installed.

What is fetched is kept in the folder of Kafka's own release (`kafka_release`). Each raises Unavailable with the reason
where it cannot be had.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.kafka_release import Unavailable, cache_folder

KAFKAJS = "kafkajs@2.2.4"
FRANZ_GO = ("github.com/twmb/franz-go@v1.22.2", "github.com/twmb/franz-go/pkg/kadm@v1.19.0")
SARAMA = ("github.com/IBM/sarama@v1.61.1",)
_GUARD = Path(__file__).with_name("die_with_parent.py")
_CLIENTS = Path(__file__).parent / "clients"
_FETCHED_WITHIN_S = 180


@dataclass(frozen=True, slots=True)
class Program:
    """The beginning of a command, and what its environment needs."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def running(self, *arguments: str, within_s: float) -> Iterator[subprocess.Popen[str]]:
        """Ended on exit, when the tests' process dies, and after `within_s`: a test that reads its output, or waits
        for it, need have no deadline of their own."""
        guard = [sys.executable, "-P", "-S", str(_GUARD)]
        process = subprocess.Popen(
            [*guard, *self.command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **self.environment},
        )
        timer = threading.Timer(within_s, process.kill)
        timer.daemon = True
        timer.start()
        with process:  # which waits for it at the end
            try:
                yield process
            finally:
                timer.cancel()
                process.kill()


def kafkajs() -> Program:
    node, npm = _tool("node"), _tool("npm")
    folder = _folder("kafkajs")
    if not (folder / "node_modules" / "kafkajs").is_dir():
        _run([npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", KAFKAJS], folder)
    return Program([node, str(_CLIENTS / "kafkajs.js")], {"NODE_PATH": str(folder / "node_modules")})


def franz_go() -> Program:
    return _go_program("franz", FRANZ_GO)


def sarama() -> Program:
    return _go_program("sarama", SARAMA)


def _go_program(name: str, modules: Sequence[str]) -> Program:
    """Built again when its source has changed."""
    go = _tool("go")
    folder = _folder(f"go-{name}")
    source, built = _CLIENTS / name / "main.go", folder / "main.go"
    binary = folder / name
    if not binary.exists() or not built.exists() or built.read_bytes() != source.read_bytes():
        if not (folder / "go.mod").exists():
            _run([go, "mod", "init", "interop"], folder)
            _run([go, "get", *modules], folder)
        shutil.copyfile(source, built)
        _run([go, "build", "-o", str(binary), "."], folder)
    return Program([str(binary)])


def kcat() -> Program:
    """Under either of its names."""
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        raise Unavailable("kcat is not installed")
    return Program([found])


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"there is no {name}")
    return found


def _folder(name: str) -> Path:
    folder = cache_folder() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"the cache {folder} cannot be used: {error}") from error
    return folder


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=_FETCHED_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{' '.join(command)} took longer than {_FETCHED_WITHIN_S} s") from None
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"{' '.join(command)}: {error.stderr[-500:]}") from None
