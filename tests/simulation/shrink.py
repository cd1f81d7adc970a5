"""A failing seed made small: fewer actions, less time, fewer hosts, as long as it fails in the same way.

Two failures are of the same kind when they raise the same class with the same words, numbers aside. The search is
delta debugging (Zeller): leave out halves, then quarters, down to single actions, and begin again after success.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from kquorum.raft.node import RaftNode
from tests.simulation.run import SimulationFailed, Trim, plan_of, simulate
from tests.simulation.schedule import LEADER, Action

MAX_TRIES = 400


def kind_of(failure: SimulationFailed) -> str:
    """What is compared: "node 3 leads epoch 7 without ..." is "node # leads epoch # without ..."."""
    words = re.sub(r"[\d,]+", "#", str(failure.cause))
    return f"{type(failure.cause).__name__}: {words[:60]}"


class Shrinker:
    def __init__(self, seed: int, node_class: type[RaftNode], profile: str = "core") -> None:
        self.seed = seed
        self.node_class = node_class
        self.profile = profile
        self.tries = 0
        self.best = self._fail(Trim())
        self.kind = kind_of(self.best) if self.best is not None else ""

    def _fail(self, trim: Trim) -> SimulationFailed | None:
        self.tries += 1
        try:
            simulate(self.seed, self.node_class, trim=trim, profile=self.profile)
        except SimulationFailed as failure:
            return failure
        return None

    def tries_less(self, trim: Trim) -> bool:
        """Whether the run fails in the same way without what `trim` leaves out; then that is the new best."""
        if self.tries >= MAX_TRIES:
            return False
        failure = self._fail(trim)
        if failure is None or kind_of(failure) != self.kind:
            return False
        self.best = failure
        return True

    def run(self) -> SimulationFailed:
        if self.best is None:
            raise ValueError(f"seed {self.seed} does not fail")
        options, schedule = plan_of(self.seed, self.profile)
        before = None
        self._shorten(options.faults_until_ms)
        while before != self.best.trim:
            before = self.best.trim
            self._drop_actions(tuple(range(len(schedule))))
            self._drop_hosts(options.observers)
        return self.best

    def _shorten(self, faults_until_ms: int) -> None:
        """End the faults earlier, by halves of what is left."""
        assert self.best is not None
        low, high = 0, faults_until_ms
        while high - low > 50:
            middle = (low + high) // 2
            if self.tries_less(replace(self.best.trim, faults_until_ms=middle)):
                high = middle
            else:
                low = middle

    def _drop_actions(self, everything: tuple[int, ...]) -> None:
        assert self.best is not None
        kept = self.best.trim.keep if self.best.trim.keep is not None else everything
        size = max(1, len(kept) // 2)
        while kept:
            for without in _without_each(kept, size):
                if self.tries_less(replace(self.best.trim, keep=without)):
                    kept = without
                    break
            else:
                if size == 1:
                    return
                size = max(1, size // 2)

    def _drop_hosts(self, observers: int) -> None:
        assert self.best is not None
        left = self.best.trim.observers if self.best.trim.observers is not None else observers
        for fewer in range(left):
            if self.tries_less(replace(self.best.trim, observers=fewer)):
                return


def _without_each(kept: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(kept), size):
        yield kept[:start] + kept[start + size :]


def shrink(seed: int, node_class: type[RaftNode] = RaftNode, profile: str = "core") -> SimulationFailed:
    """The smallest run of this seed found that fails as the whole run does; raises ValueError if that does not."""
    return Shrinker(seed, node_class, profile).run()


# Telling


def story_of(seed: int, trim: Trim, profile: str = "core") -> str:
    """The world and the schedule that are left, a line an action."""
    options, schedule = plan_of(seed, profile)
    options = trim.options(options)
    indexes = range(len(schedule)) if trim.keep is None else trim.keep
    lines = [
        f"seed {seed}: {options.quorum} quorum of {options.voters} voters, {options.spares} spares, "
        f"{options.observers} observers, election timeout {options.election_timeout_ms} ms, "
        f"fetch timeout {options.fetch_timeout_ms} ms, delays to {options.delay_ms_max} ms, "
        f"flushes to {options.flush_ms_max} ms",
        *(
            f"  {index:>3}  {_sentence(schedule[index])}"
            for index in indexes
            if schedule[index].at_ms <= options.faults_until_ms
        ),
        f"  end  {options.faults_until_ms:>6} ms  faults end",
    ]
    return "\n".join(lines)


def _sentence(action: Action) -> str:
    who = "the leader" if action.who == LEADER else f"host {action.who}"
    amount = f", {action.amount}" if action.amount else ""
    return f"{action.at_ms:>6} ms  {action.kind} ({who}, {action.for_ms} ms{amount})"
