"""`kquorum start`: run one node of the config in this process."""

import gc
from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import ConfigPath, DataDir


def start(
    config: ConfigPath = Path("quorum.toml"),
    node: Annotated[
        int | None,
        typer.Option("--node", help="The node's id; not needed when the config has one node only."),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run one node of the config until SIGTERM or Ctrl-C.

    Exit status 4: the folder is not formatted, not this node's or in use; 5: a port is in use; 74: the disk failed.
    """
    # All that is made while modules are loaded stays: the collector would go through it again and again, for a fifth of
    # the time until the node serves. `run_node` turns it on again.
    gc.disable()
    from kquorum.cli.output import complain
    from kquorum.node.config.load import load_config
    from kquorum.storage.folder_permissions import keep_files_private

    keep_files_private()
    cluster = load_config(config, data_dir=data_dir)
    for warning in cluster.warnings:
        complain(warning, style="yellow", label="warning")
    node_id = node if node is not None else _only_node([item.node_id for item in cluster.nodes])
    cluster.node(node_id)

    from kquorum.node.process import run_node

    run_node(cluster, node_id)


def _only_node(node_ids: list[int]) -> int:
    if len(node_ids) > 1:
        known = ", ".join(str(node_id) for node_id in node_ids)
        raise typer.BadParameter(f"say which: the config has the nodes {known}", param_hint="--node")
    return node_ids[0]


COMMAND = Command(
    run=start,
    summary="Run one node of the config.",
    panel=Panel.RUN,
    place=4,
    examples={
        "": (
            "kquorum start -c quorum.toml --node 1",
            "kquorum start -c server.properties",
        ),
    },
)
