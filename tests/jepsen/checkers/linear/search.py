"""The search for an order in which one key's calls may have happened (Wing and Gong, with Lowe's improvements).

It goes through the ends of the required calls, turn by turn: at a turn, its call must have happened. Other calls
that are open then may happen before it, and are tried only there, as late as they can be. Three things keep the
search small: a look that the state allows is taken at once, since it changes nothing; a place that was reached
before is not searched again, nor one that was reached with fewer optional calls used; and an optional call that
made no difference to the next one is not taken.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from tests.jepsen.checkers.linear.models import IMPOSSIBLE, Call, Effect, State
from tests.jepsen.checkers.verdicts import Verdict

MayHelp = Callable[[Effect, State, Sequence[Effect]], bool]


@dataclass(frozen=True, slots=True)
class Turn:
    """The end of a required call, with all the required ones that are open then, itself among them.

    Each open call has a bit; bits are used again after a call's end, so that sets of calls stay small numbers.
    """

    call: Call
    bit: int
    open: tuple[tuple[int, Call], ...]
    looks: tuple[tuple[int, Effect], ...]
    optional_count: int


@dataclass(frozen=True, slots=True)
class Place:
    """`done`: the open required calls that have happened; `used`: the optional ones. `before` is the state that
    the last optional call found, while nothing else came after it."""

    turn: int
    state: State
    done: int
    used: int
    before: State = IMPOSSIBLE


@dataclass(slots=True)
class Outcome:
    """Where it is not VALID: the furthest turn, its call, which nothing got past, and the states before it."""

    verdict: Verdict
    steps: int
    stuck: Call | None = None
    turn: int = 0
    states: list[State] = field(default_factory=list)


class Search:
    def __init__(self, calls: Sequence[Call], start: State, may_help: MayHelp, max_steps: int) -> None:
        self._turns = turns_of(calls)
        self._optional = sorted((call for call in calls if not call.required), key=lambda call: call.invoked)
        self._twins = _twins(self._optional)
        self._start = start
        self._may_help = may_help
        self._max_steps = max_steps
        self._reached: dict[tuple[int, State, int], list[int]] = {}
        self._stack: list[Place] = []
        self._furthest = -1
        self._states: dict[State, None] = {}

    def run(self) -> Outcome:
        self._go(Place(-1, self._start, 0, 0), 0, self._start, 0, 0)
        steps = 0
        while self._stack:
            if self._furthest == len(self._turns):
                return Outcome(Verdict.VALID, steps)
            if steps >= self._max_steps:
                return self._stuck(Verdict.UNKNOWN, steps)
            steps += 1
            self._expand(self._stack.pop())
        if self._furthest == len(self._turns):
            return Outcome(Verdict.VALID, steps)
        return self._stuck(Verdict.INVALID, steps)

    def _stuck(self, verdict: Verdict, steps: int) -> Outcome:
        stuck = self._turns[self._furthest].call
        return Outcome(verdict, steps, stuck, self._furthest, list(self._states))

    def _expand(self, place: Place) -> None:
        """What may happen next; the last that is pushed is tried first: the call whose turn it is."""
        turn = self._turns[place.turn]
        waiting = [call.effect for bit, call in turn.open if not place.done & bit]
        for number in reversed(range(turn.optional_count)):
            bit, twin = 1 << number, self._twins[number]
            if place.used & bit or (twin and not place.used & twin):
                continue
            effect = self._optional[number].effect
            after = effect.apply(place.state)
            if after is IMPOSSIBLE or after == place.state or self._is_idle(place, effect, after):
                continue
            if self._may_help(effect, after, waiting):
                self._go(place, place.turn, after, place.done, place.used | bit)
        for bit, call in sorted(turn.open, key=lambda each: each[0] == turn.bit):
            if not place.done & bit:
                after = call.effect.apply(place.state)
                if after is not IMPOSSIBLE and not self._is_idle(place, call.effect, after):
                    self._go(place, place.turn, after, place.done | bit, place.used)

    def _is_idle(self, place: Place, effect: Effect, after: State) -> bool:
        """Without the optional call before, the same would be had, with one more to use."""
        return place.before is not IMPOSSIBLE and effect.apply(place.before) == after

    def _go(self, origin: Place, turn: int, state: State, done: int, used: int) -> None:
        """To the place after all that now happens by itself: looks at the state, and the ends of what is done."""
        settled = done
        while turn < len(self._turns):
            here = self._turns[turn]
            for bit, effect in here.looks:
                if not settled & bit and effect.apply(state) is not IMPOSSIBLE:
                    settled |= bit
            if not settled & here.bit:
                break
            settled &= ~here.bit
            turn += 1
        if not self._is_new(turn, state, settled, used):
            return
        if turn > self._furthest:
            self._furthest = turn
            self._states.clear()
        if turn == self._furthest and origin.turn < turn:
            self._states[state] = None
        optional_alone = used != origin.used and settled == origin.done and turn == origin.turn
        before = origin.state if optional_alone else IMPOSSIBLE
        self._stack.append(Place(turn, state, settled, used, before))

    def _is_new(self, turn: int, state: State, done: int, used: int) -> bool:
        known = self._reached.setdefault((turn, state, done), [])
        if any(fewer & used == fewer for fewer in known):
            return False
        known[:] = [each for each in known if each & used != used]
        known.append(used)
        return True


def turns_of(calls: Sequence[Call]) -> list[Turn]:
    """The required calls by their ends."""
    events = [(call.invoked, False, call) for call in calls]
    events += [(call.ended, True, call) for call in calls if call.required]
    events.sort(key=lambda event: event[0])
    free: list[int] = []
    bits: dict[int, int] = {}
    open_now: dict[int, Call] = {}
    turns: list[Turn] = []
    optional_count = 0
    for _, is_end, call in events:
        if not call.required:
            optional_count += 1
        elif is_end:
            bit = bits[call.invoked]
            opened = tuple((bits[index], each) for index, each in open_now.items())
            looks = tuple((each, other.effect) for each, other in opened if other.effect.pure)
            turns.append(Turn(call, bit, opened, looks, optional_count))
            del open_now[call.invoked]
            free.append(bits.pop(call.invoked))
        else:
            bits[call.invoked] = free.pop() if free else 1 << len(open_now)
            open_now[call.invoked] = call
    return turns


def _twins(optional: Sequence[Call]) -> list[int]:
    """For each optional call, the bit of the one before it with the same effect, which is to be used first."""
    last: dict[Hashable, int] = {}
    twins: list[int] = []
    for number, call in enumerate(optional):
        twins.append(last.get(call.effect, 0))
        last[call.effect] = 1 << number
    return twins
