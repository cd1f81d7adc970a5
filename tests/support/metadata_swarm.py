"""Very many clients of many brokers in one process: each asks for all topics, over and over, on its own connection."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import FrameDecoder, encode_frame
from tests.support.api_calls import request_of
from tests.support.kio.frames import decode_response, encode_request
from tests.support.metadata_history import Answer, State, state_of_response

HOST = "127.0.0.1"
VERSION = 12
CONNECT_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 60.0
_MOST_BYTES = 16 * 1024 * 1024
_CONTROLLER_ID_BYTES = 4


class MetadataSwarm:
    """`shown_offset` answers how far a broker was last shown to be."""

    def __init__(self, cluster_id: str, shown_offset: Callable[[int], int], period_s: float) -> None:
        """Each connection asks again so long after its last answer."""
        self.answers: list[Answer] = []
        self.period_s = period_s
        self.shown_offset = shown_offset
        self.is_stopping = False
        self._cluster_id = cluster_id.encode()
        self._members: list[_Member] = []
        # One whole frame for each distinct account of the topics, and that account once.
        self._frames: dict[bytes, bytes] = {}
        self._accounts: dict[bytes, bytes] = {}

    async def connect(self, ports: Mapping[int, int], count: int) -> None:
        """So many connections, spread evenly over the brokers; all ask from now on, not all at the same time."""
        loop = asyncio.get_running_loop()
        broker_ids = list(ports)
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            for number in range(count):
                broker_id = broker_ids[number % len(broker_ids)]
                member = _Member(self, broker_id)
                await loop.create_connection(lambda member=member: member, HOST, ports[broker_id])
                self._members.append(member)
        for number, member in enumerate(self._members):
            loop.call_later(self.period_s * number / count, member.ask)

    async def stop(self) -> None:
        """Once every question is answered. Raises what went wrong at any connection."""
        self.is_stopping = True
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await asyncio.gather(*(member.ended for member in self._members))

    def close(self) -> None:
        for member in self._members:
            member.close()

    def states(self) -> dict[bytes, State]:
        """What the answers' `topics` say."""
        return {
            account: state_of_response(decode_response(ApiKey.METADATA, VERSION, frame)[1])
            for account, frame in self._frames.items()
        }

    def take(self, broker_id: int, sent_ns: int, shown_offset: int, frame: bytes) -> None:
        """What comes before the topics differs from answer to answer: a controller is drawn by lot."""
        before, cluster_id, rest = frame.partition(self._cluster_id)
        assert before, "an answer has brokers"
        assert cluster_id, "an answer names the cluster"
        account = rest[_CONTROLLER_ID_BYTES:]
        account = self._accounts.setdefault(account, account)
        self._frames.setdefault(account, frame)
        self.answers.append(Answer(broker_id, sent_ns, time.monotonic_ns(), account, shown_offset))


class _Member(asyncio.Protocol):
    def __init__(self, swarm: MetadataSwarm, broker_id: int) -> None:
        self._swarm = swarm
        self._broker_id = broker_id
        self._decoder = FrameDecoder(_MOST_BYTES)
        self._sent_ns = self._shown_offset = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ask(self) -> None:
        if self._swarm.is_stopping:
            self._end(None)
            return
        self._shown_offset = self._swarm.shown_offset(self._broker_id)
        self._sent_ns = time.monotonic_ns()
        self._transport.write(_REQUEST)

    def close(self) -> None:
        self._end(None)
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            self._swarm.take(self._broker_id, self._sent_ns, self._shown_offset, frame)
            asyncio.get_running_loop().call_later(self._swarm.period_s, self.ask)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionError(f"broker {self._broker_id} hung up"))

    def _end(self, error: Exception | None) -> None:
        if not self.ended.done():
            if error is None:
                self.ended.set_result(None)
            else:
                self.ended.set_exception(error)


def _request_frame(topics: Sequence[object] | None) -> bytes:
    values: dict[str, object] = {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    entity = request_of(ApiKey.METADATA, VERSION, values)
    return encode_frame(encode_request(ApiKey.METADATA, VERSION, 1, "swarm", entity))


_REQUEST = _request_frame(None)
