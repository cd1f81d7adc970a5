"""The coordinator of consumer groups beside a plain model, over random streams of requests and faults."""

import pytest

from tests.support.broker.consumer_stream import ConsumerStream

STREAMS = 60
FEW = 6
STEPS = 120


@pytest.mark.parametrize("seed", range(FEW))
def test_the_coordinator_does_what_the_model_does(seed: int) -> None:
    ConsumerStream(seed).run(STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, STREAMS))
def test_the_coordinator_does_what_the_model_does_in_many_streams(seed: int) -> None:
    ConsumerStream(seed).run(STEPS)
