"""A leader that was left behind by its quorum must notice it, and say so.

`claim` asks one controller whether it leads, and ends with `{"controller", "leads": bool, "epoch"}`. A controller that
goes on claiming the leadership of an epoch long after a later epoch's leader had been seen **leads on**: no write of
its own can commit, and a client that trusts it waits in vain. Two such claims count, well apart: the first thing that a
paused process does when it goes on is to answer what it was asked before.

An epoch has one leader, by the claims and by the writes (tests.jepsen.checkers.lease) together, else there are
**two-leaders**; and who claimed an epoch claims no earlier one after it, else it **went-back**.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.jepsen.checkers.lease import WRITE_AT, two_leaders
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History

CLAIM = "claim"
# By then it has asked in vain for several fetch timeouts (2 s), also on a machine that is slow.
APART_NS = 7_000_000_000
_SHOWN_MAX = 50


@dataclass(frozen=True, slots=True)
class Claim:
    controller: int
    epoch: int
    invoked_ns: int
    ended_ns: int
    index: int


class Claims:
    """See the head of the module. In doubt without any claim."""

    name = "claims"

    def check(self, history: History) -> Results:
        claims = [
            _claim(each.end.value, each.invoke.time_ns, each.end.time_ns, each.end.index)
            for each in history.operations()
            if each.invoke.f == CLAIM and each.is_ok and each.end is not None and each.end.value["leads"]
        ]
        leads_on = list(_leads_on(claims))
        went_back = list(_went_back(claims))
        acts = [(each.epoch, each.controller, each.index) for each in claims]
        twice = list(two_leaders([*acts, *_writers(history)]))
        doubt = Verdict.VALID if claims else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if leads_on or went_back or twice else doubt,
            "claims": len(claims),
            "epochs": len({each.epoch for each in claims}),
            "leads-on_count": len(leads_on),
            "leads-on": leads_on[:_SHOWN_MAX],
            "went-back_count": len(went_back),
            "went-back": went_back[:_SHOWN_MAX],
            "two-leaders_count": len(twice),
            "two-leaders": twice[:_SHOWN_MAX],
        }


def _claim(value: Any, invoked_ns: int, ended_ns: int, index: int) -> Claim:
    return Claim(int(value["controller"]), int(value["epoch"]), invoked_ns, ended_ns, index)


def _writers(history: History) -> Iterator[tuple[int, int, int]]:
    for each in history.operations():
        if each.invoke.f == WRITE_AT and each.is_ok and each.end is not None:
            yield int(each.value["epoch"]), int(each.value["controller"]), each.end.index


def _went_back(claims: Sequence[Claim]) -> Iterator[Results]:
    """One client asks each controller, one time after the other."""
    last: dict[int, Claim] = {}
    for claim in sorted(claims, key=lambda each: each.ended_ns):
        before = last.get(claim.controller)
        if before is not None and claim.epoch < before.epoch and before.ended_ns < claim.invoked_ns:
            epochs, indexes = [before.epoch, claim.epoch], [before.index, claim.index]
            yield {"controller": claim.controller, "epochs": epochs, "indexes": indexes}
        last[claim.controller] = claim


def _leads_on(claims: Sequence[Claim]) -> Iterator[Results]:
    first_late: dict[tuple[int, int], Claim] = {}
    for claim in sorted(claims, key=lambda each: each.invoked_ns):
        later = [other for other in claims if other.epoch > claim.epoch and other.ended_ns < claim.invoked_ns]
        if not later:
            continue
        first = first_late.setdefault((claim.controller, claim.epoch), claim)
        if claim.invoked_ns - first.ended_ns >= APART_NS:
            by_then = min(later, key=lambda each: each.ended_ns)
            yield {
                "controller": claim.controller,
                "epoch": claim.epoch,
                "index": claim.index,
                "since_index": first.index,
                "by_then": {"controller": by_then.controller, "epoch": by_then.epoch, "index": by_then.index},
            }
