"""The broker's listener for clients: metadata from the cache, administration through the active controller.

An API that is not served is not offered in ApiVersions, so a client finds out at once instead of waiting; those
without which clients lose their way are offered and refused (`broker.handlers.data_refusals`).
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any
from uuid import UUID

from broker.adapters.forwarding import Forwarder
from broker.handlers.data_listings import handle_describe_log_dirs, handle_list_groups
from broker.handlers.data_refusals import REFUSALS
from broker.handlers.describe_cluster import handle_describe_cluster
from broker.handlers.describe_topic_partitions import handle_describe_topic_partitions
from broker.handlers.metadata import Values
from broker.metadata_cache import MetadataCache
from broker.metadata_responses import MetadataResponses
from metadata.controller.handlers import HANDLERS, READERS
from metadata.describe.config_slices import describe_configs_in_slices
from metadata.describe.question import Question
from metadata.describe.table import DESCRIBERS
from metadata.forwarding import FORWARDABLE_APIS
from network.long_replies import reply_in_slices
from network.requests import Reply, RequestContext
from raft.ports import Dice
from wire.errors import DecodeError
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import response_class, supported_versions
from wire.protocol.entities import build
from wire.protocol.headers import EncodedBody

log = logging.getLogger("broker.listener")

LOCAL_APIS = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_LOG_DIRS,
    }
)
# Of the quorum's APIs those that Kafka's schemas give to brokers too; a voter updates itself at a controller only.
QUORUM_APIS = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
FORWARDED_APIS = FORWARDABLE_APIS & {*HANDLERS, *READERS, *QUORUM_APIS}


class BrokerListener:
    """`handle` is the handler of a KafkaServer; one for each listener name serves all of them."""

    def __init__(
        self,
        *,
        cache: MetadataCache,
        forwarder: Forwarder,
        cluster_id: str,
        dice: Dice,
        auto_create_topics: bool,
        node_id: int = -1,
        node_configs: Mapping[str, str] | None = None,
        log_dirs: Mapping[UUID, str] | None = None,
    ) -> None:
        """`node_configs` are the keys of this node's config file, which DescribeConfigs tells of; `log_dirs` the
        absolute paths of its folders by directory id, of which DescribeLogDirs tells."""
        self._cache = cache
        self._forwarder = forwarder
        self._cluster_id = cluster_id
        self._dice = dice
        self._metadata_responses = MetadataResponses(cluster_id, dice)
        self._auto_create_topics = auto_create_topics
        self._node_id = node_id
        self._node_configs = node_configs or {}
        self._log_dirs = log_dirs or {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._being_created: set[str] = set()
        self.supported = {
            api_key: supported_versions(api_key)
            for api_key in LOCAL_APIS | FORWARDED_APIS | DESCRIBERS.keys() | REFUSALS.keys()
        }

    def handle(self, context: RequestContext, request: Any, reply: Reply) -> None:
        api_key = ApiKey(context.header.api_key)
        if api_key in FORWARDED_APIS:
            self._run(self._forward(context, request, reply))
            return
        if api_key is ApiKey.METADATA:
            self._answer_metadata(context, request, reply)
            return
        if api_key is ApiKey.DESCRIBE_CONFIGS:
            slices = describe_configs_in_slices(self._question(context, request))
            reply_in_slices(slices.__next__, reply)
            return
        version = context.header.api_version
        if api_key in REFUSALS:
            values = REFUSALS[api_key](request, version)
        elif api_key in DESCRIBERS:
            values = DESCRIBERS[api_key](self._question(context, request))
        else:
            values = self._answer(api_key, context, request)
        reply(None if values is None else build(response_class(api_key, version), values))

    async def stop(self) -> None:
        """Give up what is still being forwarded."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _answer(self, api_key: ApiKey, context: RequestContext, request: Any) -> Values:
        image = self._cache.image
        match api_key:
            case ApiKey.DESCRIBE_CLUSTER:
                return handle_describe_cluster(
                    request, image, self._cluster_id, context.listener_name, self._dice
                )
            case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
                return handle_describe_topic_partitions(request, image, context.listener_name)
            case ApiKey.LIST_GROUPS:
                return handle_list_groups(request)
            case ApiKey.DESCRIBE_LOG_DIRS:
                return handle_describe_log_dirs(
                    request, self._log_dirs, image.cluster.brokers.get(self._node_id)
                )
            case _:
                raise AssertionError(f"{api_key.name} is offered but not served")

    def _question(self, context: RequestContext, request: Any) -> Question:
        return Question(
            body=request,
            version=context.header.api_version,
            image=self._cache.image,
            principal=context.principal,
            node_id=self._node_id,
            node_configs=self._node_configs,
        )

    def _answer_metadata(self, context: RequestContext, request: Any, reply: Reply) -> None:
        work = self._metadata_responses.begin(
            request, context.header.api_version, self._cache.image, context.listener_name
        )
        names = tuple(name for name in work.topics_to_create if name not in self._being_created)
        if self._auto_create_topics and names:
            self._run(self._create(context, names))
        reply_in_slices(work.advance, reply)

    async def _forward(self, context: RequestContext, request: Any, reply: Reply) -> None:
        answer: EncodedBody | None = None
        try:
            answer = await self._forwarder.forward(context, request)
        except DecodeError as error:
            log.error("the controller's answer to %s: %s", ApiKey(context.header.api_key).name, error)
        finally:
            # Whatever happened, a client is never left waiting: without an answer its connection ends.
            reply(answer)

    async def _create(self, context: RequestContext, names: tuple[str, ...]) -> None:
        """Once for all clients that ask while it is under way; they ask again until the topic shows."""
        self._being_created.update(names)
        try:
            await self._forwarder.create_topics(context, names)
        finally:
            self._being_created.difference_update(names)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a forwarded request failed", exc_info=error)
