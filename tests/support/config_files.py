"""Configs to break: a sound one, and a way to change one line of it."""

from pathlib import Path

from tests.support.tree import ROOT

EXAMPLE = ROOT / "examples" / "quorum.toml"

SMALL = """\
[cluster]
cluster.id = "AAAAAAAAAAAAAAAAAAAAAg"

[defaults]
controller.listener.names = "CONTROLLER"
log.dirs = "data/{node.id}"

[[nodes]]
node.id = 1
process.roles = "controller"
listeners = "CONTROLLER://127.0.0.1:9191"

[[nodes]]
node.id = 11
process.roles = "broker"
listeners = "PLAINTEXT://127.0.0.1:9092"
"""

CONTROLLER = """\
[cluster]
cluster.id = "a3F1b3J1bS1leGFtcGxlMQ"

[[nodes]]
node.id = 1
process.roles = "controller"
listeners = "CONTROLLER://127.0.0.1:0"
controller.listener.names = "CONTROLLER"
"""

PROPERTIES = """\
# as `kafka-server-start` takes it
process.roles=controller
node.id = 7
controller.quorum.voters=7@localhost:9093,\\
    8@localhost:9095
listeners=CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
log.dirs=/var/lib/kafka
num.network.threads=3
"""


def write(folder: Path, text: str = SMALL, name: str = "quorum.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def write_controller(folder: Path, *lines: str) -> Path:
    """The config of node 1 alone, with its data in `folder / "data"`; `lines` are more keys of it."""
    return write(folder, CONTROLLER + "\n".join((f'log.dirs = "{folder}/data"', *lines, "")))


def changed(old: str, new: str) -> str:
    """The small config with one thing changed."""
    assert SMALL.count(old) == 1, old
    return SMALL.replace(old, new)
