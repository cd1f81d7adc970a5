"""A name of a topic belongs to one topic at a time, and what is said of it is of the one that lives.

`race` creates a topic whose name another client asks for at the same time; no client ever deletes it. Two that end as
ok are **created-twice**. `rebirth` creates a topic with several partitions and a config, deletes it, creates one with
the same name, one partition and no config, and ends with what a broker then shows of it: the ids that the two creates
were answered (`first_id`, `second_id`), the one that is shown (`shown_id`), `partitions`, and the topic's own
`configs`. The same id again, or one that no create was answered, is **wrong-id**; partitions or configs of the first
life are **left-over**.

A run in which none of them succeeded has nothing to judge here, for they are incidental to what it is for.
"""

from collections import defaultdict
from collections.abc import Sequence

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

RACE, REBIRTH = "race", "rebirth"
REBORN_PARTITIONS = 1
_SHOWN_MAX = 50


class Names:
    name = "names"

    def check(self, history: History) -> Results:
        operations = history.operations()
        races = [each for each in operations if each.invoke.f == RACE]
        won = [each for each in races if each.is_ok]
        reborn = [each for each in operations if each.invoke.f == REBIRTH and each.is_ok]
        found = {
            "created-twice": _twice(won),
            "wrong-id": [_row(each) for each in reborn if _has_wrong_id(each)],
            "left-over": [_row(each) for each in reborn if _has_left_over(each)],
        }
        return {
            VALID_KEY: Verdict.INVALID if any(found.values()) else Verdict.VALID,
            "names_raced_for": len({each.invoke.value["name"] for each in races}),
            "races_won": len(won),
            "rebirths": len(reborn),
            **{f"{anomaly}_count": len(rows) for anomaly, rows in found.items()},
            **{anomaly: rows[:_SHOWN_MAX] for anomaly, rows in found.items()},
        }


def _twice(won: Sequence[Operation]) -> list[Results]:
    by_name: dict[str, list[Operation]] = defaultdict(list)
    for each in won:
        by_name[each.value["name"]].append(each)
    return [
        {
            "name": name,
            "ids": [each.value["id"] for each in winners],
            "indexes": [each.end.index for each in winners if each.end is not None],
        }
        for name, winners in by_name.items()
        if len(winners) > 1
    ]


def _has_wrong_id(rebirth: Operation) -> bool:
    told = rebirth.value
    first, second, shown = (str(told[key]) for key in ("first_id", "second_id", "shown_id"))
    return first == second or shown != second


def _has_left_over(rebirth: Operation) -> bool:
    return rebirth.value["partitions"] != REBORN_PARTITIONS or bool(rebirth.value["configs"])


def _row(rebirth: Operation) -> Results:
    assert rebirth.end is not None
    return {"index": rebirth.end.index, **rebirth.value}
