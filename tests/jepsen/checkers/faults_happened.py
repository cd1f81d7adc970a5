"""A run whose nemesis did nothing has proved nothing."""

from collections import Counter

from tests.jepsen.checkers.availability import HEAL
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History

_SHOWN_MAX = 20


class FaultsHappened:
    """Which faults there were, how often, and why others were not; with none at all the run is in doubt, and so it is
    when a heal went wrong, for what came after it was hurt by no one knows what.

    `each`: who asked for these faults by name gets an answer about every one of them, so that each has to happen once.
    """

    name = "nemesis"

    def __init__(self, *, each: bool) -> None:
        self._each = each

    def check(self, history: History) -> Results:
        done: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        tried: set[str] = set()
        problems: list[str] = []
        for operation in history.operations(client=False):
            f, end = operation.invoke.f, operation.end
            error = "it never ended" if end is None else end.error
            if f == HEAL:
                problems += [] if error is None else [error]
            elif error is None:
                done[f] += 1
            else:
                refused[f"{f}: {error}"] += 1
                tried.add(f)
        missing = sorted(tried - done.keys()) if self._each else []
        return {
            VALID_KEY: Verdict.VALID if done and not problems and not missing else Verdict.UNKNOWN,
            "faults": dict(sorted(done.items())),
            "never_happened": missing,
            "refused": dict(refused.most_common(_SHOWN_MAX)),
            "heal_problems": problems[:_SHOWN_MAX],
        }
