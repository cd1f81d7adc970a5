"""The pytest plugin of kquorum: a Kafka cluster as a fixture. pytest finds it by its entry point (docs/testing.md)."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from kquorum.testing.cluster import KafkaCluster

_BROKERS = "kafka_brokers"
_CONTROLLERS = "kafka_controllers"


class NewKafkaCluster(Protocol):
    """The fixture `new_kafka_cluster`."""

    def __call__(
        self, *, brokers: int = 1, controllers: int = 1, configs: Mapping[str, Any] | None = None
    ) -> "KafkaCluster": ...


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kquorum", "a Kafka cluster for tests")
    group.addoption("--kafka-brokers", type=int, metavar="N", help="brokers of `kafka_cluster` (1)")
    group.addoption("--kafka-controllers", type=int, metavar="N", help="controllers of `kafka_cluster` (1)")
    parser.addini(_BROKERS, "brokers of `kafka_cluster`", default="1")
    parser.addini(_CONTROLLERS, "controllers of `kafka_cluster`", default="1")


@pytest.fixture(scope="session")
def kafka_cluster(pytestconfig: pytest.Config) -> "Iterator[KafkaCluster]":
    """One cluster for all tests of the run (of each worker of pytest-xdist). Tests use topics of their own, and leave
    its nodes running."""
    from kquorum.testing.cluster import KafkaCluster

    brokers, controllers = (_number(pytestconfig, name) for name in (_BROKERS, _CONTROLLERS))
    with KafkaCluster(brokers=brokers, controllers=controllers) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_cluster: "KafkaCluster") -> str:
    """`host:port`, comma-separated, for any Kafka client."""
    return kafka_cluster.bootstrap_servers


@pytest.fixture
def new_kafka_cluster() -> Iterator[NewKafkaCluster]:
    """Makes clusters that this test alone uses, and may harm."""
    from kquorum.testing.cluster import KafkaCluster

    with ExitStack() as running:

        def new(
            *, brokers: int = 1, controllers: int = 1, configs: Mapping[str, Any] | None = None
        ) -> KafkaCluster:
            return running.enter_context(
                KafkaCluster(brokers=brokers, controllers=controllers, configs=configs)
            )

        yield new


def _number(config: pytest.Config, name: str) -> int:
    """The option, else the ini file's. Raises UsageError."""
    given = config.getoption(name)
    if given is not None:
        return int(given)
    text = config.getini(name)
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"{name} = {text} in the ini file is not a number") from None
