"""A KafkaServer with a broker's handlers over a small image; its controller is away, busy, or talks nonsense."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from kquorum.broker.adapters.forwarding import Forwarder
from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.adapters.topic_creation import AutoTopicCreation
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.metadata.adapters.controller_channel import ControllerUnavailable
from kquorum.metadata.adapters.listener import server_features
from kquorum.metadata.features import SUPPORTED_FEATURES
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.limits import BudgetLimits, ServerLimits
from kquorum.network.server import KafkaServer, SharedLimits
from kquorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.warm_up import warm_up
from tests.fuzz.listener.inputs import MAX_FRAME_BYTES
from tests.support.broker_services import broker_services
from tests.support.images import broker_record, image_of, partition_record, topic_records

HOST = "127.0.0.1"
LIMITS = ServerLimits(
    max_request_bytes=MAX_FRAME_BYTES,
    frame_timeout_ms=1000,
    write_timeout_ms=1000,
    request_timeout_ms=20_000,
    drain_timeout_ms=1000,
    # Nonsense of the controller may throttle a connection for weeks; it ends when it has been idle for too long.
    max_idle_ms=5000,
)
# Small, so that it is reached now and then.
BUDGET = BudgetLimits(max_bytes=3_000_000, max_requests=20)


class AwkwardChannel:
    """In place of the channel to the controller: every way in which that can go wrong."""

    def __init__(self, seed: int) -> None:
        self._random_source = Random(seed)

    async def call(
        self, request: EnvelopeRequest, on_doubt: Callable[[], object], **_more: Any
    ) -> EnvelopeResponse:
        if self._random_source.random() < 0.3:
            on_doubt()
        for _ in range(self._random_source.choice((0, 0, 1, 5))):
            await asyncio.sleep(0)
        match self._random_source.randrange(6):
            case 0:
                return _envelope(ErrorCode.unsupported_version, None)
            case 1:
                return _envelope(ErrorCode.unknown_server_error, None)
            case 2:
                return _envelope(
                    ErrorCode.none, self._random_source.randbytes(self._random_source.randrange(12))
                )
            case 3:
                correlation_id = request.request_data[4:8]
                return _envelope(ErrorCode.none, correlation_id + self._random_source.randbytes(20))
            case _:
                raise ControllerUnavailable(ApiKey.ENVELOPE, 1, "none is known")


def _envelope(error: ErrorCode, data: bytes | None) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error, response_data=data)


def small_image() -> MetadataImage:
    return image_of(
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        *(broker_record(number) for number in (1, 2, 3)),
        *topic_records(1, "t0", partition_record(1, 0, (1, 2, 3)), partition_record(1, 1, (2, 3))),
        *topic_records(2, "t1", partition_record(2, 0, (3,))),
    )


@dataclass(frozen=True)
class Target:
    server: KafkaServer
    shared: SharedLimits
    image: MetadataImage
    offered: dict[ApiKey, tuple[int, int]]


@asynccontextmanager
async def serving(seed: int) -> AsyncIterator[Target]:
    cache, image = MetadataCache(), small_image()
    cache.swap(image)
    forwarder = Forwarder(
        AwkwardChannel(seed),  # type: ignore[arg-type]
        RepeatedRequests(lambda _image, _name: ()),
    )
    creation = AutoTopicCreation(forwarder)
    services = broker_services(cache, forwarder, topic_creation=creation, node_id=1)
    listener = BrokerListener(services)
    warm_up(listener.supported)
    shared = SharedLimits(budget=BUDGET)
    server = KafkaServer(
        host=HOST,
        port=0,
        handler=listener.handle,
        supported=listener.supported,
        listener_name="PLAINTEXT",
        limits=LIMITS,
        features=lambda: server_features(image, SUPPORTED_FEATURES),
        shared=shared,
    )
    await server.start()
    try:
        yield Target(server, shared, image, dict(listener.supported))
    finally:
        await server.stop()
        await listener.stop()
        await creation.stop()
