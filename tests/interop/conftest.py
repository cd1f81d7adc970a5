"""The newest release of Apache Kafka, for tests that run its programs."""

from pathlib import Path

import pytest

from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import KafkaRelease, Unavailable, find_release


@pytest.fixture(scope="session")
def kafka_release() -> KafkaRelease:
    """Skips where there is no Java 17, no Maven, or no way to Maven Central."""
    try:
        return find_release()
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def kafka(kafka_release: KafkaRelease, tmp_path: Path) -> Kafka:
    return Kafka(kafka_release, tmp_path)
