"""How the outcome of a change of voters is shown."""

from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.output import print_json, say, show_table
from cli.quorum_tables import checks_table, voters_table
from cli.voter_changes import Outcome
from wire.wording import counted


def show_outcome(outcome: Outcome, *, dry_run: bool, as_json: bool) -> None:
    """Raises CliError when the pre-flight said no, after telling what it found."""
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
