"""Deadlines fire in their order, a bounded number at a time."""

from functools import partial

from kquorum.broker.coordinators.timers import MOST_AT_ONCE, Timers


def test_a_call_fires_a_bounded_number_and_the_rest_stays_due() -> None:
    """Ten thousand members whose sessions end in one millisecond are not removed in one turn of the loop."""
    timers = Timers()
    fired: list[int] = []

    def note(number: int, _now_ms: int) -> None:
        fired.append(number)

    for number in range(2 * MOST_AT_ONCE + 1):
        timers.set(number, 5, partial(note, number))
    timers.fire(5)
    assert (len(fired), timers.next_deadline_ms()) == (MOST_AT_ONCE, 5)
    timers.fire(5)
    timers.fire(5)
    assert (fired, timers.next_deadline_ms()) == (list(range(2 * MOST_AT_ONCE + 1)), None)


def test_what_an_action_cancels_or_sets_again_does_not_fire_in_the_same_call() -> None:
    timers = Timers()
    fired: list[str] = []

    def first(_now_ms: int) -> None:
        fired.append("first")
        timers.cancel("second")
        timers.set("third", 9, partial(note, "third again"))

    def note(name: str, _now_ms: int) -> None:
        fired.append(name)

    timers.set("first", 1, first)
    timers.set("second", 2, partial(note, "second"))
    timers.set("third", 3, partial(note, "third"))
    timers.fire(5)
    assert (fired, timers.next_deadline_ms()) == (["first"], 9)
