"""Producers write on to Apache Kafka's brokers when one of these dies, on our controllers.

Kafka's leader, when it learns of a smaller ISR, waits for the replica that left it as long as that one has caught up
and its broker counts as unfenced, and looks again only when a follower fetches something new. If the fence came in a
later batch, a producer that waits for its requests in flight would wait until the dead broker is back.
"""

import time
from functools import partial
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.interop.broker_death import (
    BROKERS,
    OURS,
    Writer,
    await_acknowledgements,
    await_all_in_sync,
    site_of,
    start,
)
from tests.interop.kafka_process import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# Ten times the session of these brokers.
WAIT_S = 25.0
# Leaders leave it to the controllers which replicas are in sync, and the producer sends nothing again.
SETTINGS: dict[str, object] = {"replica.lag.time.max.ms": 300_000}


def test_all_partitions_are_written_while_a_broker_is_dead(kafka: Kafka, tmp_path: Path) -> None:
    with site_of(kafka, tmp_path, SETTINGS) as site:
        start(site, OURS)
        with Writer(site) as writer:
            for broker_id in BROKERS:
                await_acknowledgements(site, writer)
                site.kill(broker_id)
                # What the dead broker had acknowledged may still come in.
                wanted = time.monotonic() + 0.5
                assert wait_until(partial(writer.all_acknowledged_since, wanted), WAIT_S), site.tails()
                site.start_kafka(broker_id)
                await_all_in_sync(site, broker_id)
        assert writer.errors == []
