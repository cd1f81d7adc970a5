"""Whatever way an image came about, by the log or by a snapshot and the rest of the log, it is one image.

`picture` is made when all is healed and little is written any more: `{"observer", "offset", "epoch", "digest",
"problems"}`. The digest is of all that a node's image tells of brokers, topics and partitions as of that offset;
`problems` are what no image may hold, such as a partition that a fenced broker leads. Clients that only list topics
see little of that: not a record applied twice, nor one that a snapshot lacks.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.jepsen.checkers.log_order import OBSERVE
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

PICTURE = "picture"
_SHOWN_MAX = 20


class Images:
    """Two nodes that show two images of one offset **differ**; an image may not be **impossible**, nor one of a node
    that went on running have **gone back**, also behind what that node had shown of its log.

    In doubt when a node showed none, or there is none that all showed: brokers go on to be fenced
    meanwhile, so that nodes which were asked at different times need not have shown it last.
    """

    name = "images"

    def __init__(self, nodes: Collection[int], observe: str = OBSERVE) -> None:
        self._nodes = frozenset(nodes)
        self._observe = observe

    def check(self, history: History) -> Results:
        pictures = [each for each in history.operations() if each.invoke.f == PICTURE and each.is_ok]
        last = {each.invoke.node: each.value for each in pictures}
        shown: dict[int | None, set[str]] = {}
        for each in pictures:
            shown.setdefault(each.invoke.node, set()).add(each.value["digest"])
        silent = sorted(self._nodes - last.keys())
        found = {
            "differ": list(_differing(pictures)),
            "impossible": [_row(each, problems=each.value["problems"]) for each in pictures if _is_odd(each)],
            "gone_back": [*_gone_back(pictures), *self._behind_the_log(history, pictures)],
        }
        is_agreed = not shown or bool(set.intersection(*shown.values()))
        passed = Verdict.UNKNOWN if silent or not is_agreed else Verdict.VALID
        return {
            VALID_KEY: Verdict.INVALID if any(found.values()) else passed,
            "pictures": len(pictures),
            "is_agreed": is_agreed,
            **{f"{anomaly}_count": len(rows) for anomaly, rows in found.items()},
            **{anomaly: rows[:_SHOWN_MAX] for anomaly, rows in found.items()},
            "last": {str(node): [value["offset"], value["digest"]] for node, value in last.items()},
            "nodes_without_picture": silent,
        }

    def _behind_the_log(self, history: History, pictures: Sequence[Operation]) -> Iterator[Results]:
        """What was shown when all was healed; before that a node may have been started again."""
        looks = [
            each for each in history.operations() if each.invoke.f == self._observe and each.invoke.final
        ]
        shown = [each for each in looks if each.is_ok and each.value["records"]]
        for picture in pictures:
            own = [
                each.value["records"][-1][0]
                for each in shown
                if each.value["observer"] == picture.invoke.node and _is_before(each, picture)
            ]
            if (furthest := max(own, default=-1)) > picture.value["offset"]:
                yield _row(picture, shown_before=furthest)


def _is_before(one: Operation, other: Operation) -> bool:
    return one.end is not None and one.end.index < other.invoke.index


def _is_odd(picture: Operation) -> bool:
    return bool(picture.value["problems"])


def _differing(pictures: Sequence[Operation]) -> Iterator[Results]:
    first: dict[int, Operation] = {}
    for each in pictures:
        other = first.setdefault(each.value["offset"], each)
        if other.value["digest"] != each.value["digest"]:
            yield _row(each, unlike=_row(other))


def _gone_back(pictures: Sequence[Operation]) -> Iterator[Results]:
    """One client asks each node, one time after the other."""
    chains: dict[int | None, list[Operation]] = {}
    for each in pictures:
        chains.setdefault(each.invoke.node, []).append(each)
    for chain in chains.values():
        for before, after in pairwise(chain):
            if after.value["offset"] < before.value["offset"]:
                yield _row(after, before=_row(before))


def _row(picture: Operation, **more: Any) -> Results:
    assert picture.end is not None
    value = picture.value
    return {"node": value["observer"], "offset": value["offset"], "index": picture.end.index, **more}
