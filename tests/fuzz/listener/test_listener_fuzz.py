"""A short run of garbage at a live listener; `python -m tests.fuzz.listener` throws a million."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from kquorum.wire.protocol.api_keys import ApiKey
from tests.fuzz.listener.campaign import Campaign
from tests.fuzz.listener.inputs import Inputs
from tests.fuzz.listener.target import small_image

_LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def run(inputs: int, seed: int, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        report = runner.run(Campaign(seed, inputs, warm_up=inputs // 2).run())
    assert not report.findings, str(report)
    assert report.inputs == inputs
    assert report.witness_answers > 10


def test_garbage_affects_no_other_client() -> None:
    run(250, seed=1, factory=asyncio.new_event_loop)


@pytest.mark.slow
@pytest.mark.parametrize("loop", _LOOPS)
def test_more_garbage_affects_no_other_client(loop: str) -> None:
    run(20_000, seed=2, factory=_LOOPS[loop])


def test_the_same_seed_and_number_make_the_same_input() -> None:
    offered = {ApiKey.METADATA: (0, 12), ApiKey.CREATE_TOPICS: (2, 7)}
    first, second = (Inputs(offered, small_image(), seed=3) for _ in range(2))
    assert [first.make(number) for number in range(200)] == [second.make(number) for number in range(200)]
    other = Inputs(offered, small_image(), seed=4)
    assert [first.make(number) for number in range(200)] != [other.make(number) for number in range(200)]
