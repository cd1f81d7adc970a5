"""The set-full analysis for topics: creates add, deletes remove, every broker's list reads.

Names are never used twice, so an element's life is: unknown, there, gone. An element is *known* from the moment
a client was told so, by the acknowledgement of its create or by a read that showed it.

Brokers serve metadata eventually, so a read may lag behind what is known: such reads are stale, counted, and no
violation. What the metadata log does promise, all brokers applying one sequence of records in order, gives these
rules:

- When all faults are healed and nothing is open, a last create, the barrier, is acknowledged; then every broker
  is read until it shows the barrier, and so everything that the log held before it. What was known before these
  final reads, and was never asked to be deleted, is in the last one of *every* broker: else it is **lost**. What
  was deleted with an acknowledgement is in none: else it has **reappeared**.
- What a broker showed, and then did not, before the barrier was created, is in none of the final reads either,
  whichever client asked to delete it and however that ended: else it has **reappeared**.
- A broker goes forward only: what it showed and shows no more, though no client asked for a delete, has
  **vanished**; what it showed, did not show, and shows again has **reappeared**. One read is after another when
  it was invoked after the other had ended.
- A read shows only what a client began to create, and not what surely failed: else it is **unexpected**. Nothing
  is there twice in one read: else it is **duplicated**.

An acknowledged create that no later read could have shown is **never read**: no violation, but no proof either.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from tests.jepsen.checkers.set_lives import LIST, Life, Read, in_sequence, lag_ms, lives_of
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, OpType

_SHOWN_MAX = 50
_QUANTILES = (0.0, 0.5, 0.95, 0.99, 1.0)


class SetFull:
    """See the head of the module. `nodes` are the brokers that must each give a final read."""

    name = "set"

    def __init__(self, nodes: Iterable[int]) -> None:
        self._nodes = tuple(nodes)

    def check(self, history: History) -> Results:
        operations = history.operations()
        reads = [Read.of(each) for each in operations if each.invoke.f == LIST and each.is_ok]
        lives = lives_of(operations, reads)
        finals = _final_reads(reads)
        settled = _settled_at(finals)
        violations = {
            "lost": [found for life in lives.values() if (found := _lost(life, finals, settled))],
            "vanished": list(_vanished(lives, reads)),
            "reappeared": [
                *_undeleted(lives, finals, settled),
                *_resurrected(lives, reads, finals),
                *_came_back(lives, reads),
            ],
            "unexpected": [found for life in lives.values() if (found := _unexpected(life, reads))],
            "duplicated": [
                {"element": element, "node": read.node, "index": read.ended}
                for read in reads
                for element in sorted(read.duplicated)
            ],
        }
        missing = [node for node in self._nodes if node not in finals]
        never_read = sorted(life.element for life in lives.values() if _is_never_read(life, reads))
        stable = [life for life in lives.values() if _is_stable(life, finals, settled)]
        doubt = bool(missing or never_read or not stable)
        return {
            VALID_KEY: _verdict(any(violations.values()), doubt),
            **_counts(lives.values()),
            "stable_count": len(stable),
            **{f"{name}_count": len(found) for name, found in violations.items()},
            **{name: found[:_SHOWN_MAX] for name, found in violations.items()},
            "never_read_count": len(never_read),
            "never_read": never_read[:_SHOWN_MAX],
            "brokers_without_final_read": missing,
            **_staleness(lives.values()),
            "stable_latency_ms": _quantiles([_stable_latency_ms(life) for life in stable]),
            "reads": len(reads),
        }


def _verdict(violated: bool, doubt: bool) -> Verdict:
    if violated:
        return Verdict.INVALID
    return Verdict.UNKNOWN if doubt else Verdict.VALID


def _final_reads(reads: Iterable[Read]) -> dict[int, Read]:
    """The last final read of each broker."""
    return {read.node: read for read in reads if read.final}


def _settled_at(finals: dict[int, Read]) -> int:
    """The line before which news had to be known to be judged: where the first final read was invoked."""
    return min((read.invoked for read in finals.values()), default=-1)


def _lost(life: Life, finals: dict[int, Read], settled: int) -> Results | None:
    if life.known is None or life.known > settled or life.delete_invoked is not None:
        return None
    missing_on = sorted(node for node, read in finals.items() if life.element not in read.elements)
    if not missing_on:
        return None
    return {
        "element": life.element,
        "missing_on": missing_on,
        "known_by": "acknowledgement" if life.acknowledged is not None else "read",
        "known_at": life.known,
    }


def _undeleted(lives: dict[Any, Life], finals: dict[int, Read], settled: int) -> Iterator[Results]:
    for life in lives.values():
        if life.delete_acknowledged is None or life.delete_acknowledged > settled:
            continue
        shown_on = sorted(node for node, read in finals.items() if life.element in read.elements)
        if shown_on:
            yield {
                "element": life.element,
                "shown_on": shown_on,
                "deleted_at": life.delete_acknowledged,
                "why": "a final read shows it after its delete was acknowledged",
            }


def _resurrected(lives: dict[Any, Life], reads: Iterable[Read], finals: dict[int, Read]) -> Iterator[Results]:
    """Deletes in doubt that one broker had applied; of those that were acknowledged, `_undeleted` tells."""
    gone: dict[Any, Read] = {}
    for chain in in_sequence(read for read in reads if not read.final).values():
        for before, after in pairwise(chain):
            for element in before.elements - after.elements:
                gone.setdefault(element, after)
    for element, read in gone.items():
        life = lives[element]
        if life.delete_acknowledged is not None or not life.may_lack(read):
            continue
        if shown_on := sorted(node for node, each in finals.items() if element in each.elements):
            yield {
                "element": element,
                "shown_on": shown_on,
                "missing_at": read.ended,
                "why": f"a final read shows it, though broker {read.node} had shown that it was gone",
            }


def _vanished(lives: dict[Any, Life], reads: Iterable[Read]) -> Iterator[Results]:
    for node, chain in in_sequence(reads).items():
        for before, after in pairwise(chain):
            for element in sorted(before.elements - after.elements):
                if not lives[element].may_lack(after):
                    yield {
                        "element": element,
                        "node": node,
                        "shown_at": before.ended,
                        "missing_at": after.ended,
                    }


def _came_back(lives: dict[Any, Life], reads: Iterable[Read]) -> Iterator[Results]:
    for node, chain in in_sequence(reads).items():
        gone_at: dict[Any, int] = {}
        for before, after in pairwise(chain):
            for element in before.elements - after.elements:
                gone_at[element] = after.ended
            for element in sorted(gone_at.keys() & after.elements):
                missing_at = gone_at.pop(element)
                yield {
                    "element": element,
                    "node": node,
                    "missing_at": missing_at,
                    "shown_at": after.ended,
                    "why": "the broker showed it, did not show it, and shows it again",
                }


def _unexpected(life: Life, reads: Iterable[Read]) -> Results | None:
    if not life.is_read:
        return None
    first = next(read for read in reads if life.element in read.elements)
    if life.create_invoked is None or first.ended < life.create_invoked:
        why = "no client had begun to create it"
    elif life.create_kind is OpType.FAIL:
        why = "its create failed"
    else:
        return None
    return {"element": life.element, "node": first.node, "index": first.ended, "why": why}


def _is_never_read(life: Life, reads: Iterable[Read]) -> bool:
    if life.acknowledged is None or life.delete_invoked is not None or life.is_read:
        return False
    return not any(read.invoked > life.acknowledged for read in reads)


def _is_stable(life: Life, finals: dict[int, Read], settled: int) -> bool:
    """Known, and in every final read."""
    if life.known is None or not finals or life.known > settled:
        return False
    return all(life.element in read.elements for read in finals.values())


def _stable_latency_ms(life: Life) -> int:
    """From when it was known until the last read that lacked it was invoked; 0 if none did."""
    return max((lag_ms(read.invoked_ns, life.known_ns) for read in life.absent_after_known), default=0)


def _counts(lives: Iterable[Life]) -> dict[str, int]:
    kinds = [life for life in lives if life.create_invoked is not None]
    unsure = [life for life in kinds if life.create_kind is OpType.INFO]
    return {
        "attempt_count": len(kinds),
        "acknowledged_count": sum(life.acknowledged is not None for life in kinds),
        "deleted_count": sum(life.delete_acknowledged is not None for life in kinds),
        "unsure_count": len(unsure),
        "recovered_count": sum(life.is_read for life in unsure),
    }


def _staleness(lives: Iterable[Life]) -> Results:
    """Reads that lagged behind; the longest lag says how far, and on which broker."""
    lags = []
    stale = {"creates": 0, "deletes": 0}
    for life in lives:
        stale["creates"] += bool(life.absent_after_known)
        stale["deletes"] += bool(life.present_after_delete)
        lags += [(lag_ms(read.invoked_ns, life.known_ns), read, life) for read in life.absent_after_known]
        lags += [
            (lag_ms(read.invoked_ns, life.delete_acknowledged_ns), read, life)
            for read in life.present_after_delete
        ]
    worst = max(lags, key=lambda lag: lag[0], default=None)
    return {
        "stale_count": stale["creates"] + stale["deletes"],
        "stale_reads": len({read.ended for _, read, _ in lags}),
        "longest_stale_ms": 0 if worst is None else worst[0],
        "worst_stale": None
        if worst is None
        else {
            "element": worst[2].element,
            "node": worst[1].node,
            "lag_ms": worst[0],
            "index": worst[1].ended,
        },
    }


def _quantiles(values: Iterable[int]) -> dict[str, int]:
    ordered = sorted(values)
    if not ordered:
        return {}
    return {str(each): ordered[round(each * (len(ordered) - 1))] for each in _QUANTILES}
