"""`kquorum brokers`: the members of the cluster, fenced ones included, and how far each follows."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import (
    AsJson,
    BootstrapController,
    BootstrapServer,
    DryRun,
    GrpcListeners,
    MaybeConfigPath,
    Reason,
    TimeoutMs,
)

if TYPE_CHECKING:
    from kquorum.cli.commands.brokers.rows import Members
    from kquorum.node.config.addresses import HostPort


brokers_app = typer.Typer(
    help="Show the brokers, and unregister one that is gone.",
    add_completion=False,
    invoke_without_command=True,
)


@brokers_app.callback()
def brokers(
    context: typer.Context,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    grpc: GrpcListeners = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 if a broker is fenced, lags or reports a fault."),
    ] = False,
    max_lag: Annotated[
        int, typer.Option("--max-lag", min=0, help="The lag in records that --check tolerates.")
    ] = 1000,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """The registered brokers: address, rack, state, and how far each has applied the metadata log.

    The active controller tells over gRPC, where the config or --grpc says where; else a broker tells, and the
    controllers how far each follows. A broker that no longer hears the quorum says so itself.
    """
    if context.invoked_subcommand is not None:
        _check_nothing_before(context)
        return
    from kquorum.cli.clients.cluster_client import run_asking
    from kquorum.cli.commands.brokers.members import ask_members
    from kquorum.cli.commands.brokers.rows import SPARE_COLUMNS, problems_of, table_of
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import print_json, print_table

    listeners = _grpc_listeners(config, grpc, is_elsewhere=bool(bootstrap_server or bootstrap_controller))
    members: Members = run_asking(
        ask_members(
            listeners, config, bootstrap_server, bootstrap_controller, timeout_ms, falls_back=grpc is None
        )
    )
    if as_json:
        print_json(asdict(members))
    else:
        print_table(f"cluster {members.cluster_id}", *table_of(members.brokers), spare=SPARE_COLUMNS)
    problems = list(problems_of(members.brokers, max_lag)) if check else []
    if problems:
        raise CliError("; ".join(problems), is_in_json=True)


def _grpc_listeners(config: Path | None, listed: str | None, *, is_elsewhere: bool) -> "tuple[HostPort, ...]":
    """Empty where neither an option nor the config names one: then the command uses Kafka's protocol."""
    from kquorum.cli.clients.addresses import grpc_addresses
    from kquorum.cli.failures import CliError

    if listed is not None:
        return grpc_addresses(config, listed, needed_by="this command")
    if is_elsewhere:
        return ()
    try:
        return grpc_addresses(config, None, needed_by="this command")
    except CliError:
        return ()


def _check_nothing_before(context: typer.Context) -> None:
    """Options of `kquorum brokers` would be lost in front of a subcommand."""
    sources = {
        option.opts[0]: context.get_parameter_source(str(option.name)) for option in context.command.params
    }
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        name = context.invoked_subcommand
        raise typer.BadParameter(f"{given[0]} goes behind the subcommand: kquorum brokers {name} ...")


@brokers_app.command()
def unregister(
    broker_id: Annotated[int, typer.Argument(metavar="ID", min=0, help="The broker's node.id.")],
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Take a broker that is gone for good out of the cluster. It leaves all in-sync replica sets; what it has not left
    to other replicas is lost. Move its replicas away before (`kquorum reassign plan --remove-broker`).

    The command refuses a broker that is not fenced: it would only register again. No such broker is a success.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.brokers.unregistering import unregister_broker
    from kquorum.cli.output import print_json, say

    was_there = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: unregister_broker(client, broker_id, dry_run=dry_run),
        reason,
    )
    if as_json:
        print_json({"broker_id": broker_id, "unregistered": was_there and not dry_run})
    elif was_there:
        say(f"broker {broker_id} {'would be' if dry_run else 'was'} unregistered")
    else:
        say(f"broker {broker_id} is not registered")


COMMAND = Command(
    run=brokers_app,
    summary="Show the brokers, how far each lags, and unregister one.",
    panel=Panel.ASK,
    place=2,
    examples={
        "": (
            "kquorum brokers -c quorum.toml",
            "kquorum brokers -b localhost:9092",
            "kquorum brokers --grpc localhost:9291 --check --max-lag 100",
        ),
        "unregister": ("kquorum brokers unregister 13 --reason 'disk is lost' -c quorum.toml",),
    },
)
