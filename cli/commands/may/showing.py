"""The answer of `kquorum may` as a table, lines or JSON, and its exit status."""

from kquorum.cli.commands.may.decision import Verdict
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import print_json, print_table, say


def show_verdict(verdict: Verdict, *, as_json: bool) -> None:
    """Raises CliError after a no."""
    nodes = " ".join(map(str, verdict.nodes))
    asked = f"{verdict.action} {nodes}"
    if as_json:
        print_json(verdict.as_json())
    elif verdict.is_yes:
        say(f"yes: {asked}")
        for risk in verdict.risks:
            say(f"  {risk}")
        if len(verdict.order) > 1:
            how = (
                "one after the other; ask again before each" if verdict.action.is_rolling else "in this order"
            )
            say(f"  {' '.join(map(str, verdict.order))}, {how}")
    else:
        rows = [(reason.why.value, reason.detail, reason.remedy) for reason in verdict.reasons]
        print_table(f"no: {asked}", ("why", "~found", "~remedy"), rows, stacking=True)
    if not verdict.is_yes:
        whys = ", ".join(dict.fromkeys(reason.why.value for reason in verdict.reasons))
        raise CliError(f"no: {asked} ({whys})", status=ExitStatus.FAILED, is_in_json=True)
