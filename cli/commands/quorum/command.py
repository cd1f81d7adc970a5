"""`kquorum quorum`: show the leader, the voters and the elections; change the voters."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import (
    AsJson,
    BootstrapController,
    BootstrapServer,
    GrpcListeners,
    MaybeConfigPath,
    Reason,
    TimeoutMs,
)

if TYPE_CHECKING:
    from kquorum.cli.clients.quorum_client import QuorumStatus

quorum_app = typer.Typer(
    help="Show the leader, the voters and the elections; change the voters.",
    no_args_is_help=True,
    add_completion=False,
)
NodeId = Annotated[int, typer.Argument(metavar="ID", min=0, help="The node's id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Run the checks only; change nothing.")]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait", help="Retry checks that pass with time, such as catching up, until the time limit."
    ),
]


@quorum_app.callback()
def _quorum() -> None:
    """Show the quorum's leader, voters, lags and elections, or change its voters."""


@quorum_app.command()
def status(
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """Show the leader, the epoch, the high watermark, and the lag of every voter and observer.

    The leader reports these values. With no leader, the command shows what each controller knows and which nodes to
    start, and exits with 6. If a node's metadata differs from the leader's at the same offset, the command names the
    node and exits with 1.
    """
    from kquorum.cli.clients.addresses import known_controllers, quorum_addresses
    from kquorum.cli.clients.cluster_client import ClusterClient, Unanswered, run_asking
    from kquorum.cli.clients.quorum_client import describe_quorum, differing_states
    from kquorum.cli.commands.quorum.status import no_leader, quorum_table, silent_voters
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import print_json, say, show_table, tell_waiting

    addresses = quorum_addresses(config, bootstrap_controller, bootstrap_server)
    known = known_controllers(config, bootstrap_controller or bootstrap_server)

    async def ask() -> "QuorumStatus":
        async with ClusterClient(addresses, timeout_ms, known=known, tell=tell_waiting) as client:
            return await describe_quorum(client)

    try:
        found = run_asking(ask())
    except Unanswered as error:
        raise no_leader(error, known, as_json=as_json, asks_brokers=bool(bootstrap_server)) from error
    if as_json:
        print_json(found.as_json())
    else:
        show_table(quorum_table(found, time.time_ns() // 1_000_000))
        if silent := silent_voters(found):
            say(silent, style="yellow")
    if differing := differing_states(found.leader_id, found.states):
        raise CliError(differing, is_in_json=True)


@quorum_app.command("add-voter")
def add_voter(
    node_id: NodeId,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint", metavar="HOST:PORT", help="The node's controller listener; looked up by default."
        ),
    ] = None,
    directory_id: Annotated[
        str | None,
        typer.Option(
            "--directory-id", help="Refuse any other id; by default the id that the node fetches with."
        ),
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """Make a running, caught-up controller a voter.

    Format the node with --no-initial-controllers (or --initial-controllers) and start it first. The command looks up
    its directory id and its listener. If a check fails, the command changes nothing, shows the reason and the remedy,
    and exits with 1.
    """
    from kquorum.cli.commands.quorum.outcome import show_outcome
    from kquorum.cli.commands.quorum.voters import Target, run_add_voter

    target = Target(config, bootstrap_controller, bootstrap_server, timeout_ms, reason)
    outcome = run_add_voter(
        target, node_id, endpoint=endpoint, directory_id=directory_id, dry_run=dry_run, wait=wait
    )
    show_outcome(outcome, dry_run=dry_run, as_json=as_json)


@quorum_app.command("remove-voter")
def remove_voter(
    node_id: NodeId,
    dry_run: DryRun = False,
    wait: Wait = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """Remove a voter from the quorum, even if it is dead or the leader.

    If the node runs, it continues as an observer. It does not become a voter again by itself. If a check fails, the
    command changes nothing and exits with 1.
    """
    from kquorum.cli.commands.quorum.outcome import show_outcome
    from kquorum.cli.commands.quorum.voters import Target, run_remove_voter

    target = Target(config, bootstrap_controller, bootstrap_server, timeout_ms, reason)
    outcome = run_remove_voter(target, node_id, dry_run=dry_run, wait=wait)
    show_outcome(outcome, dry_run=dry_run, as_json=as_json)


@quorum_app.command("transfer-leadership")
def transfer_leadership(
    node_id: NodeId,
    dry_run: DryRun = False,
    wait: Wait = False,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    grpc: GrpcListeners = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Transfer the leadership to another voter. This takes milliseconds.

    The command asks the leader over gRPC (kquorum.grpc.listener in the config, or --grpc), because Kafka's protocol has
    no such request.
    """
    from kquorum.cli.commands.quorum.outcome import show_outcome
    from kquorum.cli.commands.quorum.voters import Target, run_transfer

    target = Target(config, bootstrap_controller, bootstrap_server, timeout_ms)
    outcome = run_transfer(target, node_id, grpc=grpc, dry_run=dry_run, wait=wait)
    show_outcome(outcome, dry_run=dry_run, as_json=as_json)


@quorum_app.command()
def upgrade(
    dry_run: DryRun = False,
    wait: Wait = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """Make a static quorum dynamic: its log then holds the voters, and they can be changed.

    The command does the same as `kafka-features upgrade --feature kraft.version=1`, and cannot be undone. Afterwards
    controller.quorum.voters has no effect: set controller.quorum.bootstrap.servers instead.
    """
    from kquorum.cli.commands.quorum.outcome import show_outcome
    from kquorum.cli.commands.quorum.voters import Target, run_upgrade

    target = Target(config, bootstrap_controller, bootstrap_server, timeout_ms, reason)
    outcome = run_upgrade(target, dry_run=dry_run, wait=wait)
    show_outcome(outcome, dry_run=dry_run, as_json=as_json)


@quorum_app.command()
def history(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Data folders to read instead of asking nodes."),
    ] = None,
    from_epoch: Annotated[
        int, typer.Option("--from-epoch", min=0, help="Show only this epoch and later ones.")
    ] = 0,
    config: MaybeConfigPath = None,
    grpc: GrpcListeners = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """Show for every epoch why it began, the candidates, the winner, and the time without a leader.

    The command asks the nodes over gRPC for their election notes and for the leader changes in their logs. With
    folders, it reads both from the files. Apache Kafka's nodes write no notes, so for their folders the history shows
    only what the log holds.
    """
    from kquorum.cli.clients.addresses import grpc_addresses
    from kquorum.cli.commands.quorum.history import history_json, history_table, read_folders
    from kquorum.cli.output import complain, print_json, show_table
    from kquorum.raft.elections_history import merge

    if folders:
        noted = read_folders(folders)
    else:
        from kquorum.cli.clients.cluster_client import run_asking
        from kquorum.cli.commands.quorum.history import fetch_elections

        addresses = grpc_addresses(config, grpc, needed_by="the history of a running quorum")
        noted = run_asking(
            fetch_elections(
                addresses, from_epoch, timeout_ms, lambda text: complain(text, style="yellow", label="note")
            )
        )
    found = merge(
        (event for place in noted for event in place.events),
        (change for place in noted for change in place.leader_changes),
    )
    found = tuple(election for election in found if election.epoch >= from_epoch)
    if as_json:
        print_json(history_json(found, [place.place for place in noted]))
    else:
        show_table(history_table(found, [place.place for place in noted]))


COMMAND = Command(
    run=quorum_app,
    summary="Show the leader and the voters; change the voters.",
    panel=Panel.ASK,
    place=1,
    examples={
        "status": (
            "kquorum quorum status -c quorum.toml",
            "kquorum quorum status --bootstrap-controller localhost:9191 --json",
        ),
        "add-voter": (
            "kquorum quorum add-voter 4 -c quorum.toml --dry-run",
            "kquorum quorum add-voter 4 --bootstrap-controller localhost:9191 --wait",
        ),
        "remove-voter": (
            "kquorum quorum remove-voter 3 -c quorum.toml --dry-run",
            "kquorum quorum remove-voter 3 --bootstrap-controller localhost:9191",
        ),
        "transfer-leadership": ("kquorum quorum transfer-leadership 2 -c quorum.toml",),
        "upgrade": ("kquorum quorum upgrade -c quorum.toml --dry-run",),
        "history": (
            "kquorum quorum history -c quorum.toml",
            "kquorum quorum history kquorum-data/node-1 kquorum-data/node-2",
        ),
    },
)
