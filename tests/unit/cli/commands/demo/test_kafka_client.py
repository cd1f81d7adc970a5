"""The demo's client while the leader dies."""

from collections.abc import Mapping

import pytest

from kquorum.cli.commands.demo import kafka_client
from kquorum.cli.processes import wait_until

kafka_errors = pytest.importorskip("kafka.errors")


class LossyClient:
    """Every second creation is carried out, and its answer is lost: asked again, it exists already."""

    def __init__(self, _bootstrap: str) -> None:
        self.asked = 0

    def create(self, _topics: Mapping[str, int]) -> None:
        self.asked += 1
        if self.asked % 2 == 0:
            raise kafka_errors.TopicAlreadyExistsError
        if self.asked == 9:
            raise kafka_errors.NotControllerError

    def close(self) -> None:
        pass


def test_a_topic_that_a_lost_answer_made_counts_and_another_error_ends_the_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_client, "KafkaClient", LossyClient)
    probe = kafka_client.WriteProbe("127.0.0.1:9", "probe")
    probe.start()
    assert wait_until(lambda: probe.error is not None, 40)
    probe.stop()
    assert isinstance(probe.error, kafka_errors.NotControllerError)
    assert probe.created == [f"probe-{number:04}" for number in range(8)]
