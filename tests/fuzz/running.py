"""One decoder fed with mutated bytes, watched for foreign errors, for time and for memory."""

import resource
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import FrameType

from tests.fuzz.decoders import DECODERS, Decoder
from tests.fuzz.mutation import mutated

SECONDS_MAX = 5.0
# What a batch may be decompressed to is 64 MiB, held twice while it grows.
GROWTH_MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Finding:
    """Bytes that a decoder did not cope with; `seed` and `number` make them again."""

    decoder: str
    seed: int
    number: int
    data: bytes
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.decoder}, seed {self.seed}, number {self.number}: {self.problem}\n"
            f"  {len(self.data)} bytes: {self.data[:2000].hex()}"
        )


class TooLong(BaseException):
    """No decoder may catch it."""


def made(decoder: Decoder, name: str, seed: int, number: int) -> bytes:
    """The bytes of that number, whatever came before."""
    random_source = Random(f"{name} {seed} {number}")
    data = mutated(decoder.seeds(), random_source)
    return decoder.seal(data) if decoder.seal is not None and random_source.random() < 0.8 else data


def problem_with(decoder: Decoder, data: bytes) -> str | None:
    """What is wrong with how it copes with these bytes; None if nothing."""
    before = _peak_bytes()
    try:
        with_deadline(lambda: decoder.read(data))
    except decoder.errors:
        pass
    except TooLong:
        return f"no answer in {SECONDS_MAX} s"
    except Exception:  # noqa: BLE001 - finding these is what it is for
        return traceback.format_exc()
    grown = _peak_bytes() - before
    return f"it took {grown >> 20} MiB" if grown > GROWTH_MAX_BYTES else None


def with_deadline(call: Callable[[], object]) -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(name: str, seed: int, seconds: float, limit: int | None = None) -> tuple[int, list[Finding]]:
    """How many inputs were tried, and what was found; it stops after ten findings, which are mostly alike."""
    decoder = DECODERS[name]
    for valid in decoder.seeds():
        decoder.read(valid)
    found: list[Finding] = []
    number = 0
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s and number != limit and len(found) < 10:
        data = made(decoder, name, seed, number)
        problem = problem_with(decoder, data)
        if problem is not None:
            found.append(Finding(name, seed, number, data, problem))
        number += 1
    return number, found
