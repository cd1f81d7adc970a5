"""A well-behaved client of the same server, which must get the same right answers all along."""

import asyncio
import time
from typing import Any

from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import NetworkError
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of

# A turn of garbage may take a while, and this machine may be busy; a client gives up after 30 s.
SLOWEST_S = 10.0
_PAUSE_S = 0.002

_QUESTIONS: tuple[tuple[ApiKey, dict[str, Any]], ...] = (
    (
        ApiKey.METADATA,
        {"topics": None, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False},
    ),
    (
        ApiKey.DESCRIBE_CLUSTER,
        {"include_cluster_authorized_operations": False, "endpoint_type": 1, "include_fenced_brokers": True},
    ),
)


class Witness:
    """`problems` is empty as long as all is well."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._expected: dict[ApiKey, Any] = {}
        self.answers = 0
        self.slowest_s = 0.0
        self.problems: list[str] = []

    async def watch(self, ended: asyncio.Event) -> None:
        connection = await KafkaConnection.connect(self._host, self._port, "witness", 10_000)
        fresh: KafkaConnection | None = None
        try:
            while not ended.is_set() and len(self.problems) < 10:
                await self._ask(connection)
                if self.answers % 200 == 0:
                    # And one that was not there before the garbage.
                    fresh = await KafkaConnection.connect(self._host, self._port, "witness", 10_000)
                    await self._ask(fresh)
                    fresh.close()
                await asyncio.sleep(_PAUSE_S)
        except NetworkError as error:
            self.problems.append(f"the witness: {error}")
        finally:
            connection.close()
            if fresh is not None:
                fresh.close()

    async def _ask(self, connection: KafkaConnection) -> None:
        api_key, values = _QUESTIONS[self.answers % len(_QUESTIONS)]
        began_s = time.monotonic()
        answer = await connection.call(message_of(api_key, values), 30_000)
        took_s = time.monotonic() - began_s
        self.answers += 1
        self.slowest_s = max(self.slowest_s, took_s)
        if took_s > SLOWEST_S:
            self.problems.append(f"the witness waited {took_s:.1f} s for {api_key.name}")
        if self._expected.setdefault(api_key, answer) != answer:
            self.problems.append(f"the witness got another answer to {api_key.name}")
