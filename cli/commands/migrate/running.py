"""`kquorum migrate step`: the three looks at one controller."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from kquorum.cli.clients.security import remember_cluster
from kquorum.cli.commands.migrate.advice import MigrationView, Program, reasons_against
from kquorum.cli.commands.migrate.showing import next_line, start_command
from kquorum.cli.commands.migrate.stepping import (
    NOTE,
    HashNote,
    Phase,
    compare_state,
    note_state,
    phase_of,
    view_or_none,
)
from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.cli.output import print_json, say
from kquorum.cli.processes import wait_until
from kquorum.node.config.addresses import HostPort, reachable
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.storage.folder_lock import is_folder_in_use

_LOOK_TIMEOUT_MS = 3_000
_LOOK_AGAIN_S = 0.5
# After the leader was stopped.
_ELECTION_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One controller and where the others are asked."""

    node: NodeConfig
    config: Path
    addresses: tuple[HostPort, ...]
    target: Program
    give_up_at_s: float

    def look(self) -> MigrationView | None:
        return asyncio.run(view_or_none(self.addresses, _LOOK_TIMEOUT_MS))


def take_step(
    config: Path, node_id: int | None, target: Program, *, waits: bool, timeout_ms: int, as_json: bool
) -> None:
    """Raises CliError where the step cannot be taken."""
    cluster = load_config(config)
    remember_cluster(cluster)
    controllers = {each.node_id: each for each in cluster.controllers}
    if node_id is None and len(controllers) != 1:
        known = ", ".join(map(str, controllers)) or "none"
        raise usage_error(f"say which controller with --node: {config} has {known}")
    if node_id is not None and node_id not in controllers:
        raise usage_error(f"--node {node_id}: {config} has no such controller")
    node = next(iter(controllers.values())) if node_id is None else controllers[node_id]
    give_up_at_s = time.monotonic() + (timeout_ms / 1000 if waits else 0)
    step = _Step(
        node=node,
        config=config,
        addresses=tuple(dict.fromkeys(reachable(*each) for each in cluster.controller_addresses)),
        target=target,
        give_up_at_s=give_up_at_s,
    )
    phase = _phase(step)
    act = {Phase.BEFORE: _before, Phase.STOPPED: _stopped, Phase.AFTER: _after}[phase]
    line, found = act(step)
    if as_json:
        print_json({"node_id": node.node_id, "target": str(target), "phase": str(phase), **found})
    else:
        say(line)


def _phase(step: _Step) -> Phase:
    """A controller that does not answer is stopped only when no program has its folder: it may be slow, or start. Exit
    status 0 would let a script stop it that has not been told that it may be stopped. Raises CliError."""
    node = step.node
    found = [phase_of(node, step.target)]

    def is_clear() -> bool:
        if found[0] is not Phase.STOPPED or not is_folder_in_use(node.metadata_log_dir):
            return True
        found[0] = phase_of(node, step.target)
        return found[0] is not Phase.STOPPED

    if not is_clear() and not wait_until(
        is_clear, step.give_up_at_s - time.monotonic(), interval_s=_LOOK_AGAIN_S
    ):
        raise CliError(
            f"controller {node.node_id} does not answer, and a program still uses {node.metadata_log_dir}: wait until "
            "it answers, or has ended, and run this command again",
            status=ExitStatus.FAILED,
        )
    return found[0]


def _before(step: _Step) -> tuple[str, dict[str, object]]:
    node_id = step.node.node_id
    reasons: list[str] = []

    def may_go() -> bool:
        view = step.look()
        reasons[:] = (
            ["the quorum has no leader"] if view is None else reasons_against(view, step.target, node_id)
        )
        return not reasons

    if not may_go() and not wait_until(
        may_go, step.give_up_at_s - time.monotonic(), interval_s=_LOOK_AGAIN_S
    ):
        raise CliError(
            f"controller {node_id} must not be stopped now: {'; '.join(reasons)}", status=ExitStatus.FAILED
        )
    return f"controller {node_id} may be stopped now; then run this command again", {"may_be_stopped": True}


def _stopped(step: _Step) -> tuple[str, dict[str, object]]:
    views: list[MigrationView | None] = []

    def is_known() -> bool:
        """A leader that was just elected, because the old one is the controller that was stopped, knows no high
        watermark yet."""
        views[:] = [step.look()]
        return views[0] is not None and views[0].high_watermark > 0

    is_alone = len(step.addresses) == 1
    if not is_alone and not wait_until(is_known, _ELECTION_S, interval_s=_LOOK_AGAIN_S):
        raise CliError(
            f"controller {step.node.node_id} is stopped, and the others have no leader: start the program that it ran "
            "before, and look with `kquorum quorum status`",
            status=ExitStatus.UNREACHABLE,
        )
    note = note_state(step.node, step.target, None if is_alone else views[0])
    command = start_command(step.target, str(step.config))
    line = (
        f"the folder of controller {note.node_id} is sound: state {note.state_hash} at offset {note.offset}. "
        "Start the controller with\n"
        f"  {command}\nand run this command again, with --wait"
    )
    return line, {"offset": note.offset, "state_hash": note.state_hash, "start": command}


def _after(step: _Step) -> tuple[str, dict[str, object]]:
    node_id = step.node.node_id
    views: list[MigrationView] = []
    trouble: list[str] = []

    def follows() -> bool:
        view = step.look()
        voter = None if view is None else view.voter(node_id)
        if view is None or voter is None:
            trouble[:] = ["the quorum has no leader" if view is None else "it is no voter"]
            return False
        views[:] = [view]
        trouble[:] = [voter.trouble or "it does not follow yet"]
        return voter.counts

    if not follows() and not wait_until(
        follows, step.give_up_at_s - time.monotonic(), interval_s=_LOOK_AGAIN_S
    ):
        raise CliError(
            f"controller {node_id} runs {step.target}, but the step is not done: {trouble[0]}",
            status=ExitStatus.FAILED,
        )
    note = HashNote.read(step.node.metadata_log_dir)
    if note is None or note.target != step.target:
        same = "its state was not noted while it was stopped, so there is nothing to compare"
        found: dict[str, object] = {"state_hash": None}
    else:
        now = compare_state(step.node, note)
        same = (
            f"the state at offset {note.offset} is {now}, as before"
            if now is not None
            else f"its log does not reach back to offset {note.offset} any more, so the states were not compared"
        )
        found = {"offset": note.offset, "state_hash": now}
        (step.node.metadata_log_dir / NOTE).unlink(missing_ok=True)
    line = f"controller {node_id} runs {step.target} and follows; {same}\n{next_line(views[0], step.target)}"
    order = views[0].order(step.target)
    return line, {**found, "next": order[0].node_id if order else None}
