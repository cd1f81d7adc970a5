"""Forbidden requests are refused: reports on in-sync sets in another broker's name, or with an old epoch.

`trespass` is an AlterPartition in which one thing is wrong, and all else as a controller would have it. `as` says what:

- **leader-epoch**: the sender led the partition once, by the epoch that it names;
- **broker-epoch**: the sender is a process that the broker was before;
- **member-epoch**: one of the in-sync replicas is (KIP-903);
- **not-leader**: the sender is another replica, and right in all that it says of itself.

It ends as ok with `refused`, the name of the code, or None when it was **accepted**. No state of a cluster makes one of
them right, a leader or a broker that has changed meanwhile least of all: so there is nothing to doubt in a violation.
Runs from before there were trespasses have nothing to judge here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

TRESPASS = "trespass"
LEADER_EPOCH, BROKER_EPOCH = "leader-epoch", "broker-epoch"
MEMBER_EPOCH, NOT_LEADER = "member-epoch", "not-leader"
OWN_CODES: Final[Mapping[str, str]] = {
    LEADER_EPOCH: "FENCED_LEADER_EPOCH",
    BROKER_EPOCH: "STALE_BROKER_EPOCH",
    MEMBER_EPOCH: "INELIGIBLE_REPLICA",
    NOT_LEADER: "INVALID_REQUEST",
}
"""Which code says that it was refused for being such a one. Any other refusal is lawful too, and proves less."""
_SHOWN_MAX = 50


class Trespass:
    """Unknown if some were tried and none was answered: then nothing was tested."""

    name = "trespass"

    def check(self, history: History) -> Results:
        tried = [each for each in history.operations() if each.invoke.f == TRESPASS]
        answered = [each for each in tried if each.is_ok]
        accepted = [_row(each) for each in answered if each.value["refused"] is None]
        doubt = Verdict.UNKNOWN if tried and not answered else Verdict.VALID
        codes = {kind: _codes(answered, kind) for kind in OWN_CODES}
        return {
            VALID_KEY: Verdict.INVALID if accepted else doubt,
            "tried": len(tried),
            "answered": len(answered),
            "refused": codes,
            "never_refused_as_such": [kind for kind, code in OWN_CODES.items() if code not in codes[kind]],
            "accepted_count": len(accepted),
            "accepted": accepted[:_SHOWN_MAX],
        }


def _codes(answered: Sequence[Operation], kind: str) -> dict[str, int]:
    told = (each.value["refused"] for each in answered if each.value["as"] == kind)
    return dict(sorted(Counter(code for code in told if code is not None).items()))


def _row(accepted: Operation) -> Results:
    assert accepted.end is not None
    return {"index": accepted.end.index, **accepted.value}
