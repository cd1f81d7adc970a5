"""`kquorum may`: whether nodes may be stopped, restarted, removed, formatted or upgraded now, and why not."""

from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.commands.may.action import Action
from kquorum.cli.options import AsJson, BootstrapController, GrpcListeners, MaybeConfigPath, TimeoutMs


def may(
    action: Annotated[Action, typer.Argument(help="What you want to do with the nodes.")],
    nodes: Annotated[list[int], typer.Argument(metavar="NODE...", min=0, help="The ids of the nodes.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Ask again until the answer is yes, or the time limit.")
    ] = False,
    may_be_offline: Annotated[
        list[str] | None,
        typer.Option(
            "--may-be-offline",
            metavar="TOPIC",
            help="A topic that may be unavailable meanwhile; can be repeated.",
        ),
    ] = None,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    grpc: GrpcListeners = None,
    timeout_ms: TimeoutMs = 15_000,
    as_json: AsJson = False,
) -> None:
    """Say whether nodes may be stopped, restarted, removed, formatted or upgraded now: yes or no, with the reasons.

    A yes holds while nothing else fails: no acknowledged record is lost, and every partition and the quorum go on.
    restart and upgrade mean one node after the other (ask again before each), the others all nodes together. remove
    means for ever, format also that the node's disk is emptied. The command changes nothing; it exits with 0 for a
    yes, with 1 for a no, and with 6 if no leader answers.
    """
    from kquorum.cli.clients.addresses import grpc_addresses, known_controllers, quorum_addresses
    from kquorum.cli.clients.cluster_client import run_asking
    from kquorum.cli.commands.may.collecting import decide_on_cluster
    from kquorum.cli.commands.may.decision import decide
    from kquorum.cli.commands.may.showing import show_verdict

    addresses = quorum_addresses(config, bootstrap_controller, None)
    listeners = grpc_addresses(config, grpc, needed_by="`kquorum may`")
    known = known_controllers(config, bootstrap_controller)
    verdict = run_asking(
        decide_on_cluster(
            addresses,
            listeners,
            known,
            timeout_ms,
            lambda view: decide(view, action, nodes, may_be_offline=may_be_offline or ()),
            wait=wait,
        )
    )
    show_verdict(verdict, as_json=as_json)


COMMAND = Command(
    run=may,
    summary="Ask whether nodes may be stopped, restarted, removed, formatted or upgraded.",
    panel=Panel.ASK,
    place=7,
    examples={
        "": (
            "kquorum may stop 2 -c quorum.toml",
            "kquorum may restart 101 102 103 -c quorum.toml --wait --timeout-ms 60000",
            "kquorum may format 102 -c quorum.toml --json",
        )
    },
)
