"""`kquorum reassign`: plan, execute, watch and cancel moves of replicas to other brokers."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.reassign.execution import Change
    from kquorum.cli.commands.reassign.plan_file import Target
    from kquorum.cli.commands.reassign.planning import Plan
    from kquorum.cli.commands.reassign.progress import Progress
    from kquorum.cli.commands.reassign.throttles import Throttles
    from kquorum.node.config.addresses import HostPort

PlanFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A plan, as `kquorum reassign plan` or Kafka's tools write it.")
]
MaybePlanFile = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="Only the partitions of this plan.", show_default=False),
]
# The controller knows that a move has ended, and the broker that is asked for the replicas learns it a moment later.
_SETTLING_S = 2.0
reassign_app = typer.Typer(
    help="Move replicas of partitions to other brokers.", no_args_is_help=True, add_completion=False
)


@reassign_app.command()
def plan(
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="NAME", help="Only this topic; may be repeated."),
    ] = None,
    broker: Annotated[
        list[int] | None,
        typer.Option(
            "--broker", metavar="ID", min=0, help="Only this broker gets replicas; may be repeated."
        ),
    ] = None,
    remove_broker: Annotated[
        list[int] | None,
        typer.Option("--remove-broker", metavar="ID", min=0, help="This broker keeps none; may be repeated."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, help="Instead of what each partition has."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the plan to this new file.")
    ] = None,
    rollback: Annotated[
        Path | None,
        typer.Option(
            "--rollback", metavar="FILE", help="Write a plan with the present replicas to this file."
        ),
    ] = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 20_000,
    as_json: AsJson = False,
) -> None:
    """Plan an even spread of replicas and preferred leaders over brokers and racks, with few moves; change nothing.

    The file has the format of Kafka's tools, and holds only the partitions that change. --json prints it.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.reassign.plan_file import plan_as_json, write_plan
    from kquorum.cli.commands.reassign.planning import make_plan
    from kquorum.cli.output import print_json
    from kquorum.cli.secrets import check_new_file

    for path in (out, rollback):
        if path is not None:
            check_new_file(path)
    made = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: make_plan(client, topic, broker or (), remove_broker or (), replication_factor),
    )
    if out is not None:
        write_plan(out, made.changed)
    if rollback is not None:
        write_plan(rollback, made.current)
    if as_json:
        print_json(plan_as_json(made.changed))
    else:
        _show_plan(made, out)


def _show_plan(made: "Plan", out: Path | None) -> None:
    from kquorum.cli.output import print_table, say
    from kquorum.wire.wording import counted

    rows = [
        (
            each.broker_id,
            each.rack,
            each.replicas_before,
            each.replicas,
            each.leaders_before,
            each.leaders,
            each.arriving,
            each.arriving_bytes,
        )
        for each in made.rows
    ]
    columns = (
        "#broker",
        "rack",
        "#replicas\nbefore",
        "#replicas\nplanned",
        "#leaders\nbefore",
        "#leaders\nplanned",
        "#arriving",
        "#arriving\nbytes",
    )
    title = f"{counted(len(made.changed), 'partition')} to change, {counted(made.moves, 'replica')} to move"
    print_table(title, columns, rows, spare=("#arriving\nbytes", "rack"))
    if not made.changed:
        say("nothing needs to move")
    elif out is not None:
        say(f"{out} has the plan: `kquorum reassign execute {out}`")
    else:
        say("write the plan with --out FILE, for `kquorum reassign execute FILE`")


@reassign_app.command()
def execute(
    file: PlanFile,
    throttle: Annotated[
        int | None,
        typer.Option(
            "--throttle", metavar="BYTES", min=1, help="Bytes/s that a broker may send and fetch for it."
        ),
    ] = None,
    additional: Annotated[
        bool, typer.Option("--additional", help="Even if other partitions are being moved.")
    ] = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """Begin to move the partitions of a plan. What is as planned already is a success.

    The command returns when the moves have begun: `kquorum reassign status FILE --watch` follows them. A throttle stays
    until `kquorum reassign status --remove-throttles`.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.reassign import execution
    from kquorum.cli.commands.reassign.plan_file import read_plan

    targets = read_plan(file)
    changes = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: execution.execute(
            client, targets, throttle=throttle, additional=additional, dry_run=dry_run, reason=reason
        ),
        reason,
    )
    verb = "would move" if dry_run else "moves"
    _show_changes(changes, verb, f"every partition of {file} is as planned", as_json=as_json, dry_run=dry_run)
    if not (as_json or dry_run) and changes:
        from kquorum.cli.output import say

        ending = " --remove-throttles" if throttle is not None else ""
        say(f"follow it with `kquorum reassign status {file} --watch{ending}`")


@reassign_app.command()
def cancel(
    file: MaybePlanFile = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="NAME", help="Only this topic; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All partitions that are being moved.")] = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """End moves that are under way: the partitions keep the replicas that they had before. Nothing to end is a success.

    Throttles that no other move needs are removed.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.reassign import execution
    from kquorum.cli.commands.reassign.plan_file import read_plan

    if (file is not None) + bool(topic) + every != 1:
        raise typer.BadParameter("name one of FILE, --topic and --all")
    targets = None if file is None else read_plan(file)
    changes = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: execution.cancel(client, targets, topic, dry_run=dry_run),
        reason,
    )
    verb = "would be cancelled" if dry_run else "cancelled"
    _show_changes(changes, verb, "no such partition is being moved", as_json=as_json, dry_run=dry_run)
    if not dry_run:
        removed = _remove_throttles(targets, config, bootstrap_server, timeout_ms, reason)
        if removed is not None and not as_json:
            from kquorum.cli.output import say

            say(f"throttles removed: {removed.words}")


def _show_changes(changes: "list[Change]", verb: str, nothing: str, *, as_json: bool, dry_run: bool) -> None:
    """Raises CliError if some were refused."""
    from kquorum.cli.failures import CliError, check_refusals
    from kquorum.cli.output import print_json, print_table, say
    from kquorum.wire.wording import counted

    rows = [
        (*each.place, each.before, each.after or (), verb if each.refusal is None else each.refusal)
        for each in changes
    ]
    if as_json:
        keys = ("topic", "partition", "before", "after", "outcome")
        documents = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json({"changed": not dry_run and bool(changes), "partitions": documents})
    elif rows:
        columns = ["topic", "#partition", "replicas", "planned", "~outcome"]
        # Of moves that end there is nothing planned.
        shown = [
            index for index, name in enumerate(columns) if name != "planned" or any(row[3] for row in rows)
        ]
        cells = [[row[index] for index in shown] for row in rows]
        print_table(counted(len(rows), "partition"), [columns[index] for index in shown], cells)
    else:
        say(nothing)
    refused = [f"{each.place[0]}-{each.place[1]}: {each.refusal}" for each in changes if each.refusal]
    try:
        check_refusals(refused, "partitions were refused")
    except CliError as error:
        raise CliError(str(error), status=error.status, is_in_json=True) from None


@reassign_app.command()
def status(
    file: MaybePlanFile = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until nothing moves, or Ctrl-C.")] = False,
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", min=100, help="With --watch: the time from one look to the next.")
    ] = 1_000,
    remove_throttles: Annotated[
        bool,
        typer.Option("--remove-throttles", help="When nothing moves, remove the throttles of replication."),
    ] = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 20_000,
    as_json: AsJson = False,
) -> None:
    """Show how far partitions are that are being moved, by bytes where the brokers tell sizes. --timeout-ms is for one
    look.

    With a plan the command fails if, when nothing moves, a partition is not as planned. It warns of throttles that were
    left behind: they slow down all replication of those topics.
    """
    from kquorum.cli.clients.addresses import broker_addresses
    from kquorum.cli.clients.cluster_client import run_asking
    from kquorum.cli.commands.reassign.plan_file import read_plan
    from kquorum.cli.commands.reassign.progress import Stage
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import print_json

    targets = None if file is None else read_plan(file)
    addresses = broker_addresses(config, bootstrap_server)
    found, throttles = run_asking(_watch(addresses, targets, timeout_ms, interval_ms if watch else None))
    is_over = not found.count(Stage.MOVING)
    removed = None
    if remove_throttles and is_over and throttles.are_set:
        removed = _remove_throttles(targets, config, bootstrap_server, timeout_ms, reason)
    if as_json:
        print_json(_as_json(found, throttles, removed))
    else:
        _show_status(found, throttles, removed)
    astray = [
        f"{each.topic}-{each.partition}" for each in found.partitions if each.stage is Stage.NOT_AS_PLANNED
    ]
    if astray and is_over:
        more = f" and {len(astray) - 5:,} more" if len(astray) > 5 else ""
        raise CliError(f"not as planned: {', '.join(astray[:5])}{more}", is_in_json=True)


async def _look(
    client: "ClusterClient", targets: "Mapping[tuple[str, int], Target] | None"
) -> "tuple[Progress, Throttles]":
    from kquorum.cli.commands.reassign.progress import look, topics_of
    from kquorum.cli.commands.reassign.reassign_client import find_partitions
    from kquorum.cli.commands.reassign.throttles import find_throttles

    wanted = None if targets is None else {place: target.replicas for place, target in targets.items()}
    partitions = await find_partitions(client, None if targets is None else topics_of(targets))
    found = await look(client, wanted, partitions)
    return found, await find_throttles(client, topics_of(partitions))


async def _watch(
    addresses: "tuple[HostPort, ...]",
    targets: "Mapping[tuple[str, int], Target] | None",
    timeout_ms: int,
    interval_ms: int | None,
) -> "tuple[Progress, Throttles]":
    """What there is when nothing moves any more, with an interval; on the way a line on standard error, on a terminal
    always the same one. Without an interval, what there is now."""
    import asyncio
    import sys

    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.reassign.progress import Stage
    from kquorum.cli.output import remark, tell_waiting

    is_terminal, shown = sys.stderr.isatty(), ""
    loop = asyncio.get_running_loop()
    settled_by_s = loop.time() + _SETTLING_S
    while True:
        async with ClusterClient(addresses, timeout_ms, tell=tell_waiting) as client:
            found, throttles = await _look(client, targets)
        if found.count(Stage.MOVING):
            settled_by_s = loop.time() + _SETTLING_S
        elif found.count(Stage.NOT_AS_PLANNED) and loop.time() < settled_by_s:
            await asyncio.sleep(_SETTLING_S / 10)
            continue
        is_over = interval_ms is None or not found.count(Stage.MOVING)
        line = found.line()
        if is_terminal and (shown or not is_over):
            ending = "\n" if is_over else ""
            sys.stderr.write(f"\r\x1b[K{line}{ending}")
            sys.stderr.flush()
        elif line != shown and not is_over:
            remark(line)
        shown = line
        if interval_ms is None or is_over:
            return found, throttles
        await asyncio.sleep(interval_ms / 1000)


def _remove_throttles(
    targets: "Mapping[tuple[str, int], Target] | None",
    config: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    reason: str | None,
) -> "Throttles | None":
    """What was removed: nothing while partitions move. Raises CliError if throttles are still there afterwards."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.reassign.ending import remove_all_throttles
    from kquorum.cli.commands.reassign.progress import topics_of

    topics = None if targets is None else topics_of(targets)
    return ask_brokers(
        config, bootstrap_server, timeout_ms, lambda client: remove_all_throttles(client, topics), reason
    )


def _show_status(found: "Progress", throttles: "Throttles", removed: "Throttles | None") -> None:
    from kquorum.cli.commands.reassign.progress import Stage, bar
    from kquorum.cli.output import complain, print_table, say

    if not found.partitions:
        say("no partition is being moved")
    else:
        rows = [
            (
                each.topic,
                each.partition,
                each.replicas,
                each.adding,
                each.removing,
                bar(each.bytes_there / each.bytes_needed)
                if each.bytes_needed and each.bytes_there is not None
                else "",
                each.stage,
            )
            for each in found.partitions
        ]
        columns = ("topic", "#partition", "replicas", "arriving", "leaving", "bytes", "state")
        print_table("", columns, rows, spare=("bytes", "leaving"))
        say(found.line())
    if removed is not None:
        say(f"throttles removed: {removed.words}")
    elif throttles.are_set and found.count(Stage.MOVING):
        say(f"throttled: {throttles.words}")
    elif throttles.are_set:
        complain(
            f"nothing moves, and replication is still throttled: {throttles.words}; "
            "`kquorum reassign status --remove-throttles` ends that",
            style="yellow",
            label="warning",
        )


def _as_json(found: "Progress", throttles: "Throttles", removed: "Throttles | None") -> dict[str, object]:
    from kquorum.cli.commands.reassign.progress import Stage

    left = throttles if removed is None else None
    return {
        "share": round(found.share, 4),
        "moving": found.count(Stage.MOVING),
        "bytes_there": found.bytes_there,
        "bytes_needed": found.bytes_needed,
        "partitions": [asdict(each) for each in found.partitions],
        "throttles": {
            "rates": {} if left is None else left.rates,
            "topics": [] if left is None else sorted(left.topics),
            "removed": removed is not None,
        },
    }


COMMAND = Command(
    run=reassign_app,
    summary="Plan, execute, watch and cancel moves of replicas to other brokers.",
    panel=Panel.ADMINISTER,
    place=2,
    examples={
        "plan": (
            "kquorum reassign plan --out plan.json --rollback back.json -c quorum.toml",
            "kquorum reassign plan --topic orders --remove-broker 13 --out plan.json",
        ),
        "execute": (
            "kquorum reassign execute plan.json --throttle 10000000 -c quorum.toml",
            "kquorum reassign execute plan.json --dry-run -b localhost:9092",
        ),
        "status": (
            "kquorum reassign status -c quorum.toml",
            "kquorum reassign status plan.json --watch --remove-throttles",
        ),
        "cancel": (
            "kquorum reassign cancel plan.json -c quorum.toml",
            "kquorum reassign cancel --all --dry-run -b localhost:9092",
        ),
    },
)
