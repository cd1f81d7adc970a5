"""A broker's listener on a real socket, with a controller that the test answers for."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kquorum.broker.adapters.forwarding import Forwarder
from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.adapters.topic_creation import AutoTopicCreation
from kquorum.broker.apis.api import BrokerApi
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.metadata.adapters.controller_channel import ControllerAddress, ControllerChannel
from kquorum.metadata.adapters.listener import server_features
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.features import SUPPORTED_FEATURES
from kquorum.network.connection import KafkaConnection
from kquorum.network.server import KafkaServer
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values, message_of
from tests.support.broker_services import broker_services
from tests.support.images import broker_record, image_of, partition_record, topic_records
from tests.support.running_controllers import RunningController, run

IMAGE = image_of(
    FeatureLevelRecord(name="metadata.version", feature_level=25),
    broker_record(101),
    *topic_records(1, "orders", partition_record(1, 0, (101,))),
)


TOPIC = {"name": "new", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}


CREATE = {"topics": [TOPIC], "timeout_ms": 1000, "validate_only": False}


def created(request: ControllerRequest, error: ErrorCode = ErrorCode.none) -> Values:
    """What a controller answers to CreateTopics."""
    entries = [
        {
            "name": topic.name,
            "topic_id": None,
            "error_code": error,
            "error_message": None,
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": (),
        }
        for topic in request.body.topics
    ]
    return {"topics": entries}


@dataclass
class Broker:
    cache: MetadataCache
    services: BrokerServices
    listener: BrokerListener
    client: KafkaConnection
    repeated: RepeatedRequests
    port: int

    async def ask(self, api_key: ApiKey, values: dict[str, Any]) -> Any:
        return await self.client.call(message_of(api_key, values), 60_000)


@asynccontextmanager
async def broker(
    controller: Callable[[], ControllerAddress | None],
    *,
    auto_create: bool = False,
    node_configs: dict[str, str] | None = None,
    retry_timeout_ms: int = 5_000,
    apis: Mapping[ApiKey, BrokerApi] = BROKER_APIS,
) -> AsyncIterator[Broker]:
    channel = ControllerChannel(
        controller, client_id="forwarding", request_timeout_ms=5_000, retry_timeout_ms=retry_timeout_ms
    )
    cache = MetadataCache()
    cache.swap(IMAGE)
    repeated = RepeatedRequests(lambda _image, _name: ())
    forwarder = Forwarder(channel, repeated)
    creation = AutoTopicCreation(forwarder)
    services = broker_services(
        cache,
        forwarder,
        topic_creation=creation if auto_create else None,
        node_configs=node_configs or {},
    )
    listener = BrokerListener(services, apis=apis)
    server = KafkaServer(
        host="127.0.0.1",
        port=0,
        handler=listener.handle,
        supported=listener.supported,
        listener_name="PLAINTEXT",
        features=lambda: server_features(cache.image, SUPPORTED_FEATURES),
    )
    await server.start()
    client = await KafkaConnection.connect("127.0.0.1", server.bound_port, "the-client", 5_000)
    try:
        yield Broker(cache, services, listener, client, repeated, server.bound_port)
    finally:
        client.close()
        await listener.stop()
        await creation.stop()
        await server.stop()
        channel.close()


def with_broker(
    test: Callable[[Broker, RunningController], Awaitable[None]],
    answer: Callable[[ControllerRequest], Values | None] = created,
    **options: Any,
) -> None:
    async def work() -> None:
        async with (
            RunningController(1, answer) as controller,
            broker(lambda: controller.address, **options) as node,
        ):
            await test(node, controller)

    run(work())


def metadata(*names: str, allow_creation: bool = False) -> dict[str, Any]:
    return {
        "topics": [{"name": name, "topic_id": None} for name in names] or None,
        "allow_auto_topic_creation": allow_creation,
        "include_topic_authorized_operations": False,
    }
