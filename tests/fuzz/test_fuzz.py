"""A short run of the fuzzer, always the same; `python -m tests.fuzz` goes on for as long as one likes."""

import logging

import pytest

from tests.fuzz.cases import CASES
from tests.fuzz.decoders import DECODERS
from tests.fuzz.running import fuzz, made, problem_with

INPUTS = 300


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("name", DECODERS)
def test_only_the_documented_error_comes_out(name: str) -> None:
    tried, found = fuzz(name, seed=1, seconds=30.0, limit=INPUTS)
    assert not found, str(found[0])
    assert tried > 20


@pytest.mark.parametrize(("name", "data"), CASES)
def test_what_was_found_once_does_not_come_back(name: str, data: bytes) -> None:
    assert problem_with(DECODERS[name], data) is None


def test_the_same_seed_makes_the_same_bytes() -> None:
    for name, decoder in DECODERS.items():
        assert [made(decoder, name, 5, number) for number in range(9)] == [
            made(decoder, name, 5, number) for number in range(9)
        ]
