"""A broker that registers again gets an epoch above every epoch that was ever given.

`rejoin` registers a broker with a new incarnation and ends with `{"broker", "epoch", "old_epoch_refused"}`; the last
says whether a heartbeat with the epoch before was refused afterwards (None: there was none before). Epochs are what
fences the process that the broker was before: with one **reused** it could go on in its name.
"""

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

REJOIN = "rejoin"


class BrokerEpochs:
    name = "broker-epochs"

    def check(self, history: History) -> Results:
        joined = [each for each in history.operations() if each.invoke.f == REJOIN and each.is_ok]
        reused = [row for before, after in _in_sequence(joined) if (row := _reused(before, after))]
        accepted = [
            {"index": each.end.index, **each.end.value}
            for each in joined
            if each.end is not None and each.end.value["old_epoch_refused"] is False
        ]
        told = [each for each in joined if each.value["old_epoch_refused"] is not None]
        doubt = Verdict.VALID if len(joined) > 1 and told else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if reused or accepted else doubt,
            "registrations": len(joined),
            "old_epochs_tried": len(told),
            "reused_count": len(reused),
            "reused": reused,
            "old-epoch-accepted_count": len(accepted),
            "old-epoch-accepted": accepted,
        }


def _in_sequence(joined: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Each with the highest epoch that was known when it was invoked."""
    pairs = []
    for after in joined:
        before = [each for each in joined if each.end and each.end.index < after.invoke.index]
        if before:
            pairs.append((max(before, key=lambda each: int(each.value["epoch"])), after))
    return pairs


def _reused(before: Operation, after: Operation) -> Results | None:
    assert before.end is not None
    assert after.end is not None
    epochs = int(before.value["epoch"]), int(after.value["epoch"])
    if epochs[1] > epochs[0]:
        return None
    return {"epochs": list(epochs), "indexes": [before.end.index, after.end.index]}
