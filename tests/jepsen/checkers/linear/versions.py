"""What the versions in replies tell at once, without a search: their order has to agree with real time.

For the register of versioned.py. The checks together are as strong as the search (but for refusals that do not
say what they found), take a time that grows with the history alone, and give each violation a name:

- **lost-update**: two acknowledged cas replaced one version; or a cas was acknowledged with another version than
  the one after what it expected; or a read shows another value under a version than the cas which was
  acknowledged with it.
- **version-reused**: two cas were acknowledged with one version, or one with the first version of all; or reads
  show two values under one version.
- **phantom**: a client saw what no client can have written: a value that no cas gave to this version, a version
  before any client tried to write it, or after one that no client wrote.
- **stale-read**: a read shows less than was known when it was invoked.
- **gone-back**: a cas was acknowledged with no more than the version that was known when it was invoked.
- **wrongly-refused**: a cas was refused, though what it found is what it expected.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, pairwise

from tests.jepsen.checkers.linear.checker import Names, calls_by_key, plain, words_of
from tests.jepsen.checkers.linear.models import Call
from tests.jepsen.checkers.linear.versioned import Refused, Replaces, Shows, VersionedRegister
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History

ANOMALIES = ("lost-update", "version-reused", "phantom", "stale-read", "gone-back", "wrongly-refused")
_SHOWN_MAX = 50


class VersionOrder:
    """See the head of the module."""

    def __init__(self, model: VersionedRegister, fs: Names, name: str = "versions") -> None:
        self.name = name
        self._model = model
        self._words = words_of(fs, model.words)

    def check(self, history: History) -> Results:
        keys = calls_by_key(history, self._words, self._model)
        found: dict[str, list[Results]] = {anomaly: [] for anomaly in ANOMALIES}
        last: dict[str, int] = {}
        for key, calls in keys.items():
            order = KeyOrder(self._model, calls)
            for anomaly, row in order.anomalies():
                found[anomaly].append({"key": plain(key), **row})
            last[str(plain(key))] = max((version for _, version in order.seen), default=self._model.start[0])
        tested = any(call.operation.is_ok for calls in keys.values() for call in calls)
        verdict = Verdict.VALID if tested else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if any(found.values()) else verdict,
            "keys": len(keys),
            "versions": last,
            **{f"{anomaly}_count": len(rows) for anomaly, rows in found.items()},
            **{anomaly: rows[:_SHOWN_MAX] for anomaly, rows in found.items()},
        }


Found = Iterator[tuple[str, Results]]


class KeyOrder:
    """The versions of one key: `seen` has those that a client saw, each with the call."""

    def __init__(self, model: VersionedRegister, calls: Sequence[Call]) -> None:
        self._first, self._first_value = model.start
        self._step = model.step
        self._shown = [(call, call.effect) for call in calls if isinstance(call.effect, Shows)]
        self._refused = [(call, call.effect) for call in calls if isinstance(call.effect, Refused)]
        tries = [(call, call.effect) for call in calls if isinstance(call.effect, Replaces)]
        self._written = [(call, effect) for call, effect in tries if call.required]
        self._by_version: dict[int, list[tuple[Call, Replaces]]] = {}
        for call, effect in self._written:
            self._by_version.setdefault(version_of(effect), []).append((call, effect))
        self._perhaps: dict[int, list[tuple[Call, Replaces]]] = {}
        for call, effect in tries:
            if not call.required:
                self._perhaps.setdefault(effect.version, []).append((call, effect))
        looked = [(call, each.version) for call, each in self._shown]
        looked += [(call, each.found) for call, each in self._refused if each.found is not None]
        self._looked = looked
        self.seen = looked + [(call, version_of(effect)) for call, effect in self._written]

    def anomalies(self) -> Found:
        return chain(
            self._lost(), self._reused(), self._never_written(), self._too_early(), self._out_of_order()
        )

    def _lost(self) -> Found:
        by_expected: dict[int, list[Call]] = {}
        for call, effect in self._written:
            by_expected.setdefault(effect.expected, []).append(call)
            if version_of(effect) != effect.version:
                why = f"it replaced version {effect.expected} and was acknowledged with {effect.told}"
                yield "lost-update", _row(version_of(effect), why, call)
        for expected, calls in by_expected.items():
            for one, other in pairwise(calls):
                yield "lost-update", _row(expected, "two cas replaced one version", one, other)
        for call, look in self._shown:
            writers = self._by_version.get(look.version, [])
            if writers and all(written.value != look.value for _, written in writers):
                why = "a read shows another value than the cas that was acknowledged"
                yield "lost-update", _row(look.version, why, call, writers[0][0])

    def _reused(self) -> Found:
        for version, writers in self._by_version.items():
            for (one, _), (other, _) in pairwise(writers):
                yield "version-reused", _row(version, "two cas were acknowledged with it", one, other)
            if version <= self._first:
                yield "version-reused", _row(version, "no cas can have made the first version", writers[0][0])
        first_shown: dict[int, tuple[Call, Hashable]] = {}
        for call, effect in self._shown:
            before, value = first_shown.setdefault(effect.version, (call, effect.value))
            if value != effect.value:
                why = "two reads show two values under it"
                yield "version-reused", _row(effect.version, why, before, call)

    def _never_written(self) -> Found:
        for call, effect in self._shown:
            if effect.version == self._first:
                known = effect.value == self._first_value
            else:
                tries = self._perhaps.get(effect.version, [])
                known = effect.version in self._by_version or any(
                    each.value == effect.value for _, each in tries
                )
            if not known:
                yield "phantom", _row(effect.version, "no client can have written what the read shows", call)

    def _too_early(self) -> Found:
        """A call that saw a version ended after a client tried each version up to it."""
        reach = self._reach()
        seen = self._looked + [(call, effect.expected) for call, effect in self._written]
        for call, version in seen:
            if version == self._first:
                continue
            tried = reach.get(version)
            if tried is None:
                yield "phantom", _row(version, "no client can have written it, or one before it", call)
            elif tried.invoked > call.ended:
                why = "it was seen before any client had tried to write it, or one before it"
                yield "phantom", _row(version, why, call, tried)

    def _reach(self) -> dict[int, Call]:
        """For each version that can be reached, the call without whose invocation it could not be."""
        shown: dict[int, set[Hashable]] = {}
        for _, look in self._shown:
            shown.setdefault(look.version, set()).add(look.value)
        reach: dict[int, Call] = {}
        latest: Call | None = None
        version = self._first + self._step
        while writers := self._writers(version, shown.get(version)):
            earliest = min(writers, key=lambda call: call.invoked)
            latest = earliest if latest is None or earliest.invoked > latest.invoked else latest
            reach[version] = latest
            version += self._step
        return reach

    def _writers(self, version: int, shown: set[Hashable] | None) -> list[Call]:
        if version in self._by_version:
            return [call for call, _ in self._by_version[version]]
        tries = self._perhaps.get(version, [])
        return [call for call, effect in tries if shown is None or effect.value in shown]

    def _out_of_order(self) -> Found:
        """A sweep over time: what was known when each call was invoked, by the ends before."""
        looks = {id(call) for call, _ in self._looked}
        expected = {id(call): effect.found == effect.expected for call, effect in self._refused}
        events = [(call.invoked, call, version) for call, version in self.seen]
        events += [(call.ended, call, version) for call, version in self.seen]
        known, teller = self._first, None
        for index, call, version in sorted(events, key=lambda event: event[0]):
            if index == call.ended:
                if version > known:
                    known, teller = version, call
                if expected.get(id(call)):
                    yield "wrongly-refused", _row(version, "it is what the cas expected", call)
                continue
            why = f"version {known} was known before"
            if id(call) in looks:
                if version < known:
                    yield "stale-read", _row(version, why, call, teller)
            elif version <= known and teller is not None:
                yield "gone-back", _row(version, why, call, teller)


def version_of(effect: Replaces) -> int:
    return effect.version if effect.told is None else effect.told


def _row(version: int, why: str, call: Call, other: Call | None = None) -> Results:
    """The lines of the history where the two calls ended; an open one's is that of its invocation."""
    row: Results = {"version": version, "why": why, "index": call.ended}
    return row if other is None else {**row, "other": other.ended if other.required else other.invoked}
