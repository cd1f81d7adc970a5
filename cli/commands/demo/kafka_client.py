"""A client that knows nothing of this project: kafka-python, as any application would use it."""

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kquorum.cli.failures import CliError, ExitStatus

REQUEST_TIMEOUT_MS = 30_000


class KafkaClient:
    """The admin client of kafka-python at one broker."""

    def __init__(self, bootstrap: str) -> None:
        try:
            from kafka import KafkaAdminClient
            from kafka.errors import KafkaError
        except ImportError:
            raise CliError(
                "the demo talks to the brokers with kafka-python: install it with `pip install 'kquorum[dev]'`",
                status=ExitStatus.MISSING_REQUIREMENT,
            ) from None
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self.bootstrap = bootstrap
        self.errors: type[Exception] = KafkaError
        self._admin = KafkaAdminClient(bootstrap_servers=[bootstrap], request_timeout_ms=REQUEST_TIMEOUT_MS)

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics, by name with their number of partitions, each with three replicas."""
        wanted = {name: {"num_partitions": count, "replication_factor": 3} for name, count in topics.items()}
        self._admin.create_topics(wanted, timeout_ms=REQUEST_TIMEOUT_MS)

    def topics(self) -> list[str]:
        return sorted(self._admin.list_topics())

    def describe(self, topics: list[str]) -> list[dict[str, Any]]:
        described: list[dict[str, Any]] = self._admin.describe_topics(topics)
        return described

    def close(self) -> None:
        self._admin.close()


class WriteProbe:
    """Creates topics one after the other, and knows the longest time between two that succeeded."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._client = KafkaClient(bootstrap)
        self._prefix = prefix
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._last_success_s = time.monotonic()
        self.created: list[str] = []
        self.longest_gap_s = 0.0
        self.error: Exception | None = None

    def start(self) -> None:
        self._last_success_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(REQUEST_TIMEOUT_MS / 1000)
        self._client.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            name = f"{self._prefix}-{len(self.created):04}"
            try:
                self._create(name)
            except Exception as error:  # noqa: BLE001 - shown by the step that reads it
                self.error = error
                return
            now_s = time.monotonic()
            self.longest_gap_s = max(self.longest_gap_s, now_s - self._last_success_s)
            self._last_success_s = now_s
            self.created.append(name)
            self._stop.wait(0.01)

    def _create(self, name: str) -> None:
        """A topic that exists already was made by an attempt whose answer was lost with the old leader: the broker, or
        the client, asked again, as both do."""
        from kafka.errors import TopicAlreadyExistsError

        with suppress(TopicAlreadyExistsError):
            self._client.create({name: 1})
