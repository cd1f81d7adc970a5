"""One long request is read at a time, and few elements are under way."""

from functools import partial

from kquorum.network.long_requests import MOST_ELEMENTS, LongRequests, Place


class Asked:
    """Requests by name, in the order in which they were begun."""

    def __init__(self) -> None:
        self.requests = LongRequests()
        self.begun: list[str] = []

    def ask(self, name: str) -> Place:
        return self.requests.ask(partial(self._begin, name))

    def _begin(self, name: str, _place: Place) -> None:
        self.begun.append(name)


def test_one_is_read_at_a_time() -> None:
    asked = Asked()
    first, second, _third = (asked.ask(name) for name in "abc")
    assert asked.begun == ["a"]
    first.has(1)
    assert asked.begun == ["a", "b"]
    second.leave()  # it could not be read
    assert asked.begun == ["a", "b", "c"]


def test_many_elements_without_an_answer_keep_the_others_waiting() -> None:
    asked = Asked()
    first, second, _third = (asked.ask(name) for name in "abc")
    first.has(MOST_ELEMENTS - 1)
    second.has(2 * MOST_ELEMENTS)
    first.leave()
    assert asked.begun == ["a", "b"]
    second.leave()
    assert asked.begun == ["a", "b", "c"]


def test_one_that_leaves_the_line_is_not_begun_and_takes_no_room() -> None:
    asked = Asked()
    first, second, third = (asked.ask(name) for name in "abc")
    second.leave()
    first.leave()
    assert asked.begun == ["a", "c"]
    third.has(5)
    third.leave()
    third.leave()
    fourth = asked.ask("d")
    fourth.has(MOST_ELEMENTS - 1)
    asked.ask("e")
    assert asked.begun == ["a", "c", "d", "e"]


def test_thousands_that_give_up_when_they_are_begun_need_no_stack() -> None:
    requests = LongRequests()
    first = requests.ask(lambda _place: None)
    ended: list[Place] = []

    def give_up(place: Place) -> None:
        ended.append(place)
        place.leave()

    for _ in range(5_000):
        requests.ask(give_up)
    first.leave()
    assert len(ended) == 5_000
