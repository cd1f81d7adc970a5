"""What a change of the voters or of the leader has led to, and how the command prints it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag
from kquorum.cli.commands.quorum.voter_checks import PreflightCheck, size_in_words
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import print_json, say, show_table
from kquorum.wire.wording import counted

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`after` is None if nothing was done: the pre-flight failed, this was a dry run, or there was nothing to
    change."""

    command: str
    checks: Sequence[PreflightCheck]
    before: QuorumStatus
    after: QuorumStatus | None = None
    took_ms: int | None = None

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def nothing_to_do(self) -> str | None:
        """Why there is nothing to do, if the cluster is already as the user wants it."""
        return next((check.detail for check in self.checks if check.is_wished), None)

    def as_json(self) -> dict[str, object]:
        return {
            "command": self.command,
            "preflight_passed": self.passed,
            "done": self.after is not None,
            "took_ms": self.took_ms,
            "nothing_to_do": self.nothing_to_do,
            "checks": [check.as_json() for check in self.checks],
            "before": self.before.as_json(),
            "after": None if self.after is None else self.after.as_json(),
        }


def checks_table(command: str, checks: "Sequence[PreflightCheck]") -> "Table":
    """A row for each point of a pre-flight, the remedies where they are needed."""
    from kquorum.cli.output import make_table

    rows = [
        ("ok" if check.passed else "NO", check.name, check.detail, "" if check.passed else check.remedy)
        for check in checks
    ]
    return make_table(f"{command}: pre-flight", ("", "check", "~found", "~remedy"), rows)


def voters_table(before: QuorumStatus, after: QuorumStatus) -> "Table":
    """The voters before the change and after it."""
    from kquorum.cli.output import make_table

    then = {voter.replica_id: voter for voter in before.voters}
    now = {voter.replica_id: voter for voter in after.voters}
    rows = [
        (
            node_id,
            (now.get(node_id) or then[node_id]).directory_id,
            _place(after, node_id) or _place(before, node_id),
            _standing(before, then.get(node_id), node_id),
            _standing(after, now.get(node_id), node_id),
        )
        for node_id in sorted(then.keys() | now.keys())
    ]
    return make_table(
        size_in_words(len(now)),
        ("#node", "directory id", "listener", "before", "after"),
        rows,
        spare=("before",),
    )


def _place(status: QuorumStatus, node_id: int) -> str | None:
    place = status.place_of(node_id)
    return None if place is None else str(place)


def _standing(status: QuorumStatus, voter: ReplicaLag | None, node_id: int) -> str:
    if voter is None:
        return "-"
    return "leader" if status.leader_id == node_id else "voter"


def show_outcome(outcome: Outcome, *, dry_run: bool, as_json: bool) -> None:
    """Print the outcome. Raises CliError afterwards if the pre-flight failed."""
    if as_json:
        print_json(outcome.as_json())
    else:
        _show_in_words(outcome, dry_run=dry_run)
    if not outcome.passed and outcome.nothing_to_do is None:
        failed = [check.name for check in outcome.checks if not check.passed]
        message = f"{outcome.command} is not possible now: {counted(len(failed), 'check')} failed ({', '.join(failed)})"
        raise CliError(message, status=ExitStatus.FAILED, is_in_json=True)


def _show_in_words(outcome: Outcome, *, dry_run: bool) -> None:
    if outcome.nothing_to_do is not None:
        say(f"nothing to do: {outcome.nothing_to_do}")
        return
    show_table(checks_table(outcome.command, outcome.checks))
    if outcome.after is not None:
        show_table(voters_table(outcome.before, outcome.after))
        say(f"done in {outcome.took_ms} ms")
    elif dry_run and outcome.passed:
        say("nothing was changed: this was a dry run")
