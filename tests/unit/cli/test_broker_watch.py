"""What the active controller's operator hears of brokers."""

import logging

import pytest

from cli.nodes.broker_watch import BrokerWatch
from tests.unit.metadata.controller_world import SESSION_MS, World


def test_registered_serving_silent_and_gone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cli.broker_watch")
    world = World().lead()
    is_active = True
    watch = BrokerWatch(lambda: is_active)
    world.controller.publishers.append(lambda _image, delta: watch.handle_delta(delta))

    def told() -> list[tuple[str, str]]:
        world.commit()
        found = [(record.levelname, record.getMessage()) for record in caplog.records]
        caplog.clear()
        return found

    world.register(1)
    epoch = world.controller.image.cluster.brokers[1].epoch
    assert told() == [("INFO", f"broker 1 was registered, with epoch {epoch}")]
    world.heartbeat(1)
    assert told() == [("INFO", "broker 1 serves")]
    world.advance(SESSION_MS + 1)
    silent = "broker 1 was fenced: it sent no heartbeat within broker.session.timeout.ms"
    assert told() == [("WARNING", silent)]
    world.heartbeat(1)
    told()
    is_active = False
    world.advance(SESSION_MS + 1)
    assert told() == [("INFO", "broker 1 was fenced")]
