"""Bytes that are nearly right: made from valid ones, always the same from the same random seed."""

from collections.abc import Callable, Sequence
from random import Random

MAX_BYTES = 64 * 1024
# Lengths, counts and numbers at the borders of what their fields hold, as varints and as fixed-width integers.
_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)


def mutated(seeds: Sequence[bytes], random_source: Random) -> bytes:
    """One of the seeds after one to a few changes."""
    data = bytearray(random_source.choice(seeds))
    for _ in range(random_source.choice((1, 1, 1, 2, 3, 8))):
        random_source.choices(_CHANGES, _WEIGHTS)[0](data, seeds, random_source)
        del data[MAX_BYTES:]
    return bytes(data)


def _flip_bit(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    if data:
        data[random_source.randrange(len(data))] ^= 1 << random_source.randrange(8)


def _set_byte(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    if data:
        data[random_source.randrange(len(data))] = random_source.choice(
            (0, 1, 0x7F, 0x80, 0xFF, random_source.randrange(256))
        )


def _set_number(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    position = random_source.randint(0, len(data))
    if random_source.random() < 0.5:
        raw = random_source.choice(_NUMBERS).to_bytes(8, "big")[-random_source.choice((2, 4, 8)) :]
        data[position : position + len(raw)] = raw
    else:
        data[position : position + random_source.randint(0, 3)] = _varint(
            random_source.choice(_NUMBERS) + random_source.randint(-2, 2)
        )


def _varint(number: int) -> bytes:
    number, out = max(0, number), bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _cut(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    del data[random_source.randint(0, len(data)) :]


def _remove(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    start = random_source.randint(0, len(data))
    del data[start : start + random_source.randint(1, 40)]


def _insert(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    position = random_source.randint(0, len(data))
    data[position:position] = random_source.randbytes(random_source.choice((1, 2, 4, 30)))


def _repeat(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    start = random_source.randint(0, len(data))
    piece = data[start : start + random_source.randint(1, 40)]
    data[start:start] = piece * random_source.choice((1, 2, 100, 3000))


def _splice(data: bytearray, seeds: Sequence[bytes], random_source: Random) -> None:
    """Go on with another seed."""
    other = random_source.choice(seeds)
    data[random_source.randint(0, len(data)) :] = other[random_source.randint(0, len(other)) :]


def _zeros(data: bytearray, _seeds: Sequence[bytes], random_source: Random) -> None:
    start = random_source.randint(0, len(data))
    size = random_source.randint(1, 64)
    data[start : start + size] = bytes(size)


_Change = Callable[[bytearray, Sequence[bytes], Random], None]
_CHANGES: tuple[_Change, ...] = (
    _flip_bit,
    _set_byte,
    _set_number,
    _cut,
    _remove,
    _insert,
    _repeat,
    _splice,
    _zeros,
)
_WEIGHTS = (6, 6, 6, 2, 2, 2, 1, 2, 1)
