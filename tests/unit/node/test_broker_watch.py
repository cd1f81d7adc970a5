"""What the active controller's operator hears of brokers."""

import logging
from collections.abc import Callable

import pytest

from kquorum.node.broker_watch import BrokerWatch
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_frame import encode_record
from tests.support.controller_world import SESSION_MS, World

SILENT = "broker 1 was fenced: it sent no heartbeat within broker.session.timeout.ms"


def watched(
    caplog: pytest.LogCaptureFixture, is_active: Callable[[], bool] = lambda: True
) -> tuple[World, Callable[[], list[tuple[str, str]]]]:
    """And what it logged since the last call."""
    caplog.set_level(logging.INFO, logger="node.broker_watch")
    world, watch = World().lead(), BrokerWatch(is_active)
    world.controller.publishers.append(lambda _image, delta: watch.handle_delta(delta))
    world.controller.session_end_observers.append(watch.handle_silence)

    def told() -> list[tuple[str, str]]:
        world.commit()
        found = [(record.levelname, record.getMessage()) for record in caplog.records]
        caplog.clear()
        return found

    return world, told


def test_registered_serving_silent_and_gone(caplog: pytest.LogCaptureFixture) -> None:
    is_active = True
    world, told = watched(caplog, lambda: is_active)
    world.register(1)
    epoch = world.controller.image.cluster.brokers[1].epoch
    assert told() == [("INFO", f"broker 1 was registered, with epoch {epoch}")]
    world.heartbeat(1)
    assert told() == [("INFO", "broker 1 serves")]
    world.advance(SESSION_MS + 1)
    assert told() == [("WARNING", SILENT)]
    world.heartbeat(1)
    told()
    is_active = False
    world.advance(SESSION_MS + 1)
    assert told() == [("INFO", "broker 1 was fenced")]


def test_a_node_that_leaves_in_order_is_not_called_silent(caplog: pytest.LogCaptureFixture) -> None:
    """A broker without leaderships goes at once, with no controlled shutdown in between."""
    world, told = watched(caplog)
    world.register(1)
    world.heartbeat(1)
    told()
    assert world.heartbeat(1, want_shut_down=True).should_shut_down
    assert told() == [("INFO", "broker 1 was fenced")]


def test_what_was_decided_before_leadership_was_lost_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    is_active = True
    world, told = watched(caplog, lambda: is_active)
    world.register(1)
    world.heartbeat(1)
    told()
    world.advance(SESSION_MS + 1)
    world.raft.truncate_uncommitted()
    is_active = False
    world.follow(leader_id=3001, epoch=2)
    world.raft.append(world.now_ms, [(None, encode_record(NoOpRecord()))])
    world.lead(epoch=3)
    is_active = True
    world.heartbeat(1, want_shut_down=True)
    assert told() == [("INFO", "broker 1 was fenced")]
