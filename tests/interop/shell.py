"""The image that Kafka's metadata shell makes of a file, as its `tree` draws it."""

from pathlib import Path
from typing import Any

from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka, ToolHangs

SHELL = "org.apache.kafka.shell.MetadataShell"
WAIT_S = 60.0
SHELL_TIMEOUT_S = 20.0

Tree = dict[str, Any]


def shown(kafka: Kafka, path: Path) -> Tree:
    """Folders as dicts and files as the key of an empty one.

    The shell runs its command when the file is read, which may be before the image is made of it (seen of Kafka's own
    snapshots too, one time in ten), and has been seen to wait for that image in vain: it is asked again then.
    """
    found: list[Tree] = []
    hung: list[str] = []

    def is_loaded() -> bool:
        try:
            printed = kafka.run(SHELL, "--snapshot", str(path), "tree", "/image", timeout_s=SHELL_TIMEOUT_S)
        except ToolHangs as error:
            hung.append(str(error))
            return False
        found.append(_parse_tree(printed)["image"])
        return not next(iter(found[-1]["provenance"])).startswith("offset -1,")

    assert wait_until(is_loaded, WAIT_S), f"{found[-1:]} {hung}"
    return found[-1]


def without_provenance(image: Tree) -> Tree:
    """What an image says of the cluster; its source is worded differently for a snapshot and for a log."""
    return {name: part for name, part in image.items() if name != "provenance"}


def partitions_shown(image: Tree) -> dict[str, dict[int, str]]:
    """Topic -> partition -> what Kafka says of it."""
    return {
        name: {int(number): next(iter(text)) for number, text in topic.items() if number.isdecimal()}
        for name, topic in image["topics"]["byName"].items()
    }


def _parse_tree(text: str) -> Tree:
    root: Tree = {}
    levels = [root]
    for line in ("image:", *(f"  {line}" for line in text.splitlines())):
        depth = (len(line) - len(line.lstrip())) // 2
        child: Tree = {}
        levels[depth][line.strip().removesuffix(":")] = child
        levels[depth + 1 :] = [child]
    return root
