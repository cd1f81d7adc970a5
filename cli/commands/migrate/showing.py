"""What `kquorum migrate` prints."""

from dataclasses import asdict

from kquorum.cli.commands.migrate.advice import MigrationView, Program, reasons_against, risks_of
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import print_json, print_table, say

_START = {
    Program.KQUORUM: "kquorum start -c server.properties",
    Program.KAFKA: "kafka-server-start.sh server.properties",
}


def start_command(target: Program, config: str | None = None) -> str:
    command = _START[target]
    return command if config is None else command.replace("server.properties", config)


def show_status(view: MigrationView, target: Program, *, as_json: bool) -> None:
    """Raises CliError where controllers are left and the next must wait."""
    order = view.order(target)
    reasons = reasons_against(view, target, order[0].node_id) if order else ()
    if as_json:
        print_json(_as_json(view, target, reasons))
    else:
        _show_voters(view)
        say(next_line(view, target))
    if reasons:
        raise CliError(
            f"controller {order[0].node_id} must not be stopped now: {'; '.join(reasons)}",
            status=ExitStatus.FAILED,
        )


def show_plan(view: MigrationView, target: Program, *, as_json: bool) -> None:
    order = view.order(target)
    reasons = reasons_against(view, target, order[0].node_id) if order else ()
    if as_json:
        print_json(_as_json(view, target, reasons))
        return
    _show_voters(view)
    if not order:
        say(next_line(view, target))
        return
    say(f"exchange in this order: {', '.join(str(each.node_id) for each in order)} (the leader last)")
    say("for each controller, on its machine, with its own config:")
    for line in (
        f"  1. kquorum migrate step --to {target} -c server.properties --wait     whether it may be stopped now",
        "  2. stop its program",
        f"  3. kquorum migrate step --to {target} -c server.properties            checks and hashes its folder",
        f"  4. {start_command(target)}",
        f"  5. kquorum migrate step --to {target} -c server.properties --wait     follows, with the same state",
    ):
        say(line)
    for risk in risks_of(view, target):
        say(f"note: {risk}")
    for reason in reasons:
        say(f"not yet: {reason}")


def next_line(view: MigrationView, target: Program) -> str:
    order = view.order(target)
    if not order:
        return f"all {len(view.voters)} controllers run {target}"
    done = len(view.voters) - len(order)
    return f"{done} of {len(view.voters)} controllers run {target}; the next is controller {order[0].node_id}"


def _show_voters(view: MigrationView) -> None:
    rows = [
        (
            voter.node_id,
            voter.address,
            str(voter.program),
            "leader" if voter.is_leader else "follower",
            voter.trouble or "well",
            voter.lag,
        )
        for voter in view.voters
    ]
    title = f"leader {view.leader_id}, epoch {view.leader_epoch}, high watermark {view.high_watermark}"
    print_table(title, ("#node", "address", "program", "role", "state", "#lag"), rows)


def _as_json(view: MigrationView, target: Program, reasons: tuple[str, ...]) -> dict[str, object]:
    order = view.order(target)
    return {
        **asdict(view),
        "target": str(target),
        "order": [each.node_id for each in order],
        "next": order[0].node_id if order else None,
        "reasons_against": list(reasons),
        "risks": list(risks_of(view, target)),
    }
