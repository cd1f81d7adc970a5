"""The attempts to change the voters in a history: those of clients, and of the nemesis where it replaced a disk."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.jepsen.core.history import History, Operation, OpType

ADD, REMOVE = "add-voter", "remove-voter"
# The nemesis' heal of a wiped disk says what it was told as it took the old voter out and put the new one in.
_TOLD, _STARTED = "told", "started"


@dataclass(frozen=True, slots=True)
class Attempt:
    """It was not refused, and took hold between two lines of the history, or is in doubt (`ended` is None). `directory`
    is None where no client wrote down which one it was."""

    f: str
    voter: int
    directory: str | None
    invoked: int
    ended: int | None

    def may_be(self, f: str, voter: int, directory: str | None) -> bool:
        """A directory of None stands for any."""
        is_of_it = None in (directory, self.directory) or directory == self.directory
        return (self.f, self.voter) == (f, voter) and is_of_it

    def may_be_between(self, after: int, before: int) -> bool:
        return self.invoked <= before and (self.ended is None or self.ended > after)


def attempts_in(history: History) -> list[Attempt]:
    clients = [_by_client(each) for each in history.operations() if each.invoke.f in (ADD, REMOVE)]
    nemesis = [each for operation in history.operations(client=False) for each in _by_nemesis(operation)]
    return [*(each for each in clients if each is not None), *nemesis]


def _by_client(operation: Operation) -> Attempt | None:
    if operation.kind is OpType.FAIL:
        return None
    asked = operation.invoke
    ended = operation.end.index if operation.is_ok and operation.end is not None else None
    return Attempt(asked.f, asked.value["voter"], asked.value["directory"], asked.index, ended)


def _by_nemesis(operation: Operation) -> Iterator[Attempt]:
    value = operation.value
    if not isinstance(value, Mapping) or _TOLD not in value:
        return
    voters: Sequence[int] = value.get(_STARTED, ())
    for voter in voters:
        for f in (REMOVE, ADD):
            yield Attempt(f, voter, None, operation.invoke.index, None)
