"""`kquorum migrate plan|status|step`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapController, ConfigPath, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.commands.migrate.advice import MigrationView, Program

migrate_app = typer.Typer(
    help="Exchange a running cluster's controllers, one by one: Apache Kafka's for kquorum, or back.",
    no_args_is_help=True,
    add_completion=False,
)


class Target(StrEnum):
    """Whose program is to run the controllers."""

    KQUORUM = "kquorum"
    KAFKA = "kafka"


To = Annotated[Target, typer.Option("--to", help="The program that is to run the controllers.")]


@migrate_app.callback()
def _migrate() -> None:
    """Exchange a running cluster's controllers, one by one: Apache Kafka's for kquorum, or back."""


@migrate_app.command()
def plan(
    to: To = Target.KQUORUM,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Say in which order to exchange the controllers, what to do for each, and what may hinder it. Changes nothing."""
    from kquorum.cli.commands.migrate.showing import show_plan

    show_plan(_observe(config, bootstrap_controller, timeout_ms), _program(to), as_json=as_json)


@migrate_app.command()
def status(
    to: To = Target.KQUORUM,
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Say which program runs each controller, and whether the next may be exchanged now (else: exit status 1)."""
    from kquorum.cli.commands.migrate.showing import show_status

    show_status(_observe(config, bootstrap_controller, timeout_ms), _program(to), as_json=as_json)


@migrate_app.command()
def step(
    to: To = Target.KQUORUM,
    config: ConfigPath = Path("server.properties"),
    node: Annotated[
        int | None,
        typer.Option("--node", help="The controller; not needed when the config has one node only."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the step can be taken, or --timeout-ms is over.")
    ] = False,
    timeout_ms: TimeoutMs = 60_000,
    as_json: AsJson = False,
) -> None:
    """Take the next step for one controller, on its machine; run it three times for each controller.

    1. The former program runs: may it be stopped now? 2. It is stopped: the folder is checked, and its state hashed.
    3. The other program runs: does it follow, and has it the same state? The command itself stops and starts nothing.
    Exit status 0: go on as it says; 1: not yet, or not so.
    """
    from kquorum.cli.commands.migrate.running import take_step

    take_step(config, node, _program(to), waits=wait, timeout_ms=timeout_ms, as_json=as_json)


def _program(target: Target) -> "Program":
    from kquorum.cli.commands.migrate.advice import Program

    return Program(target)


def _observe(config: Path | None, bootstrap: str | None, timeout_ms: int) -> "MigrationView":
    import asyncio

    from kquorum.cli.clients.addresses import controller_addresses
    from kquorum.cli.commands.migrate.observing import observe

    return asyncio.run(observe(controller_addresses(config, bootstrap), timeout_ms))


COMMAND = Command(
    run=migrate_app,
    summary="Exchange Kafka's controllers for kquorum's while the cluster serves, or back.",
    panel=Panel.RUN,
    place=12,
    examples={
        "plan": ("kquorum migrate plan -c server.properties",),
        "status": ("kquorum migrate status --bootstrap-controller controller-1:9093",),
        "step": (
            "kquorum migrate step -c server.properties --wait && systemctl stop kafka",
            "kquorum migrate step -c server.properties --to kafka",
        ),
    },
)
