"""Messages under way, in the order in which they were sent; they arrive when the script says so."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kquorum.raft.messages import Request
from tests.scenarios.errors import ScenarioError


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A request or an answer: `arrive` hands it over; `request` and `correlation_id` are set in requests only."""

    source: int
    target: int
    kind: str
    text: str
    arrive: Callable[[], None]
    request: Request | None = None
    correlation_id: int = 0
    life: int = 0
    asked_as: int = 0

    @property
    def line(self) -> str:
        return f"{self.source}->{self.target} {self.text}"


@dataclass(frozen=True, slots=True)
class Selector:
    """`1->2`, `*->2` or `1->*`, perhaps with a kind (`1->2 fetch`); None takes any."""

    source: int | None
    target: int | None
    kind: str | None

    def matches(self, message: Message) -> bool:
        return (
            self.source in (None, message.source)
            and self.target in (None, message.target)
            and (self.kind is None or self.kind == message.kind.lower())
        )


def read_selector(words: list[str]) -> Selector:
    """No words: everything."""
    if not words or words == ["all"]:
        return Selector(None, None, None)
    source, arrow, target = words[0].partition("->")
    if not arrow or len(words) > 2:
        raise ScenarioError(f"'{' '.join(words)}' is not a link: write 1->2, *->2 or 1->2 fetch")
    return Selector(_node(source), _node(target), words[1].lower() if len(words) == 2 else None)


def _node(word: str) -> int | None:
    return None if word == "*" else int(word)


@dataclass
class Network:
    """`held` messages are late: nothing but `release` sets them free. Links are cut one way each."""

    in_flight: list[Message] = field(default_factory=list)
    held: list[Message] = field(default_factory=list)
    cut: set[tuple[int, int]] = field(default_factory=set)

    def carries(self, source: int, target: int) -> bool:
        return (source, target) not in self.cut

    def take(self, selector: Selector, *, held: bool = False) -> list[Message]:
        """Take the matching messages out; raises ScenarioError if there is none."""
        messages = self.held if held else self.in_flight
        found = [message for message in messages if selector.matches(message)]
        if not found:
            raise ScenarioError(f"no such message; there are: {self.listing()}")
        messages[:] = [message for message in messages if message not in found]
        return found

    def cut_links(self, links: Iterable[tuple[int, int]]) -> None:
        """What is under way on a link goes down with it; what is held back does not."""
        self.cut.update(links)
        self.in_flight = [
            message for message in self.in_flight if self.carries(message.source, message.target)
        ]

    def heal(self) -> None:
        self.cut.clear()

    def listing(self) -> str:
        return "; ".join(message.line for message in self.in_flight + self.held) or "none"
