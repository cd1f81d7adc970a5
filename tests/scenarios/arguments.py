"""The words of a command: plain ones in order, and `name=value` options."""

from dataclasses import dataclass
from uuid import UUID

from kquorum.raft.voters import ReplicaKey
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch
from tests.scenarios.errors import ScenarioError


@dataclass
class Arguments:
    """Every option must be taken; `finish` complains of those that were not."""

    words: list[str]
    options: dict[str, str]

    @staticmethod
    def of(words: list[str]) -> "Arguments":
        options = dict(word.split("=", 1) for word in words if _is_option(word))
        return Arguments([word for word in words if not _is_option(word)], options)

    def word(self, meaning: str) -> str:
        if not self.words:
            raise ScenarioError(f"{meaning} is missing")
        return self.words.pop(0)

    def number(self, meaning: str) -> int:
        word = self.word(meaning)
        if not word.lstrip("-").isdigit():
            raise ScenarioError(f"{meaning} is '{word}', not a number")
        return int(word)

    def numbers(self, meaning: str) -> list[int]:
        return read_numbers(self.word(meaning))

    def rest(self) -> list[str]:
        words, self.words = self.words, []
        return words

    def option(self, name: str, default: str) -> str:
        return self.options.pop(name, default)

    def maybe(self, name: str) -> str | None:
        return self.options.pop(name, None)

    def finish(self) -> None:
        left = [*self.words, *(f"{name}={value}" for name, value in self.options.items())]
        if left:
            raise ScenarioError(f"not understood: {' '.join(left)}")


def _is_option(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("-", "").isalpha()


def read_numbers(text: str) -> list[int]:
    """`1,2,3`; a lone `-` is none at all."""
    try:
        return [] if text in ("", "-") else [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ScenarioError(f"'{text}' is not a list of numbers like 1,2,3") from error


def read_key(text: str) -> ReplicaKey:
    """`2` is node 2 with the directory it was first given, `2/7` the same node with directory 7; 0 is "none"."""
    node_id, slash, directory = text.partition("/")
    return ReplicaKey(int(node_id), UUID(int=int(directory) if slash else max(0, int(node_id))))


def read_place(text: str) -> OffsetAndEpoch:
    """`3@2`: everything below offset 3, whose last record is of epoch 2."""
    offset, at, epoch = text.partition("@")
    if not at:
        raise ScenarioError(f"'{text}' is not a place in the log: write offset@epoch, as in 3@2")
    return OffsetAndEpoch(int(offset), int(epoch))


def read_log(text: str, start_offset: int = 0) -> list[LogBatch]:
    """`1x3,4x2`: three records of epoch 1, then two of epoch 4, each in a batch of its own; `-` is an empty log.

    `1xfoo` is one record with the value "foo".
    """
    batches: list[LogBatch] = []
    for part in [] if text == "-" else text.split(","):
        epoch, _, content = part.partition("x")
        count = int(content) if content.isdigit() else 1
        for _ in range(count):
            offset = batches[-1].next_offset if batches else start_offset
            value = f"{epoch}.{offset}" if content.isdigit() else content
            batches.append(build_batch(offset, int(epoch), 0, [(None, value.encode())]))
    return batches


def read_records(text: str) -> bytes:
    """The bytes of a Fetch answer: `2@1:x` is a batch at offset 2 of epoch 1, `2@1:x!` the same with a wrong CRC,
    `2@1:x~` the same cut short, `garbage` no batch at all; several are joined by commas."""
    return b"".join(_record_bytes(part) for part in text.split(","))


def _record_bytes(part: str) -> bytes:
    if part == "garbage":
        return b"this is not a record batch, though it is longer than the header of one would be"
    place, _, value = part.partition(":")
    at = read_place(place)
    data = build_batch(at.offset, at.epoch, 0, [(None, value.strip("!~").encode())]).data
    if value.endswith("!"):
        return data[:-1] + bytes([data[-1] ^ 1])
    return data[:-3] if value.endswith("~") else data
