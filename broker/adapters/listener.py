"""The broker's listener for clients: metadata from the cache, administration through the active controller.

An API that is not served is not offered in ApiVersions, so a client finds out at once instead of waiting; those
without which clients lose their way are offered and refused (`broker.handlers.data_refusals`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.adapters.forwarding import Forwarder
from broker.client_access import TopicLists, client_access
from broker.handlers.data_listings import handle_describe_log_dirs, handle_list_groups
from broker.handlers.data_refusals import REFUSALS
from broker.handlers.describe_cluster import handle_describe_cluster
from broker.handlers.describe_topic_partitions import handle_describe_topic_partitions
from broker.handlers.list_offsets import handle_list_offsets
from broker.handlers.metadata import Values
from broker.internal_topics import creatable_topic
from broker.metadata_cache import MetadataCache
from broker.metadata_responses import MetadataResponses, MetadataWork
from metadata.adapters.request_bounds import RequestBounds
from metadata.adapters.requests import controller_request, refused_entity
from metadata.authorizer.access import Access
from metadata.authorizer.codes import Operation
from metadata.authorizer.gate import AuthorizationResult, RequestAuthorizer
from metadata.authorizer.table import TOKEN_APIS
from metadata.config_definitions.resolution import NodeConfigs
from metadata.controller.handlers import HANDLERS, READERS
from metadata.describe.describe_request import DescribeRequest
from metadata.describe.table import DESCRIBERS
from metadata.forwarding import FORWARDABLE_APIS
from network.aside import Aside, is_long
from network.long_replies import reply_in_slices
from network.requests import Reply, RequestContext
from raft.ports import RandomSource
from wire.codec import encode
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
        ApiKey.LIST_OFFSETS,
        ApiKey.DESCRIBE_LOG_DIRS,
    }
)
# Of the quorum's APIs those that Kafka's schemas give to brokers too; a voter updates itself at a controller only.
QUORUM_APIS = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
FORWARDED_APIS = FORWARDABLE_APIS & {*HANDLERS, *READERS, *QUORUM_APIS}
# The controller judges what is forwarded; but only here is it known how good a client's connection is for tokens.
JUDGED_APIS = DESCRIBERS.keys() | TOKEN_APIS
# Version 6 is for transactions of two phases (KIP-939), which are not done yet: clients must not count on it.
_LAST_STABLE = {ApiKey.INIT_PRODUCER_ID: 5}
# What these answer follows from the request and an image, so it may be made in a thread.
PURE_APIS = REFUSALS.keys() | DESCRIBERS.keys() | {ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_TOPIC_PARTITIONS}


def offered_versions(api_key: ApiKey) -> tuple[int, int]:
    """Of what we can read, what Kafka 4.3 takes for stable."""
    lowest, highest = supported_versions(api_key)
    return lowest, min(highest, _LAST_STABLE.get(api_key, highest))


class BrokerListener:
    """`handle` is the handler of a KafkaServer; one for each listener name serves all of them."""

    def __init__(
        self,
        *,
        cache: MetadataCache,
        forwarder: Forwarder,
        cluster_id: str,
        random_source: RandomSource,
        auto_create_topics: bool,
        node_id: int = -1,
        node_configs: Mapping[str, str] | None = None,
        log_dirs: Mapping[UUID, str] | None = None,
        gate: RequestAuthorizer | None = None,
        bounds: RequestBounds | None = None,
    ) -> None:
        """`gate` is what clients' requests pass; what is forwarded passes the controller's. `node_configs` are the keys
        of this node's config file, which DescribeConfigs tells of; `log_dirs` the absolute paths of its folders by
        directory id, of which DescribeLogDirs tells."""
        self._cache = cache
        self._forwarder = forwarder
        self._cluster_id = cluster_id
        self._random_source = random_source
        self._metadata_responses = MetadataResponses(cluster_id, random_source)
        self._auto_create_topics = auto_create_topics
        self._node_id = node_id
        self._node_configs = node_configs or {}
        self._log_dirs = log_dirs or {}
        self._gate = gate or RequestAuthorizer(None)
        self._bounds = bounds or RequestBounds(is_of_broker=True)
        self._topic_lists = TopicLists()
        self._tasks: set[asyncio.Task[None]] = set()
        self._long_answers = Aside("long-answers")
        self._being_created: set[str] = set()
        self.supported = {
            api_key: offered_versions(api_key)
            for api_key in LOCAL_APIS | FORWARDED_APIS | DESCRIBERS.keys() | REFUSALS.keys()
        }

    def handle(self, context: RequestContext, request: Any, reply: Reply) -> None:
        api_key = ApiKey(context.header.api_key)
        if api_key is ApiKey.METADATA:
            self._answer_metadata(context, request, reply)
            return
        version = context.header.api_version
        excess = self._bounds.excess(api_key, context.elements)
        if excess is not None:
            refused = partial(refused_entity, controller_request(context, request), excess)
            self._run(self._answer_aside(refused, reply))
            return
        passage = self._judge(context, request) if api_key in JUDGED_APIS else None
        is_refused = passage is not None and passage.answer is not None
        if api_key in FORWARDED_APIS and not is_refused:
            self._run(self._forward(context, request, reply))
            return

        def make() -> Any:
            values = self._values(context, request, passage)
            return None if values is None else build(response_class(api_key, version), values)

        if is_long(context.frame) and api_key in PURE_APIS:
            self._run(self._answer_aside(make, reply))
        else:
            reply(make())

    def _values(self, context: RequestContext, request: Any, passage: AuthorizationResult | None) -> Any:
        api_key = ApiKey(context.header.api_key)
        if passage is not None and passage.answer is not None:
            return passage.answer
        if passage is not None:
            question = self._question(context, passage.verdict.body)
            return passage.verdict.complete(DESCRIBERS[api_key](question))
        if api_key in REFUSALS:
            return REFUSALS[api_key](request, context.header.api_version)
        return self._answer(api_key, context, request)

    async def _answer_aside(self, make: Callable[[], Any], reply: Reply) -> None:
        def encoded() -> EncodedBody | None:
            entity = make()
            return None if entity is None else EncodedBody(encode(entity))

        answer: EncodedBody | None = None
        try:
            answer = await self._long_answers.make(encoded)
        finally:
            reply(answer)

    async def stop(self) -> None:
        """Give up what is still being forwarded."""
        self._long_answers.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _answer(self, api_key: ApiKey, context: RequestContext, request: Any) -> Values:
        image = self._cache.image
        access = self._access(context)
        match api_key:
            case ApiKey.DESCRIBE_CLUSTER:
                eyes = client_access(access, self._topic_lists)
                return handle_describe_cluster(
                    request, image, self._cluster_id, context.listener_name, self._random_source, eyes
                )
            case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
                eyes = client_access(access, self._topic_lists)
                most = self._configs().number("max.request.partition.size.limit")
                return handle_describe_topic_partitions(request, image, context.listener_name, eyes, most)
            case ApiKey.LIST_OFFSETS:
                return handle_list_offsets(request, image, client_access(access, self._topic_lists))
            case ApiKey.LIST_GROUPS:
                return handle_list_groups(request)
            case ApiKey.DESCRIBE_LOG_DIRS:
                if not access.allows_on_cluster(Operation.DESCRIBE):
                    return {"error_code": ErrorCode.cluster_authorization_failed, "results": ()}
                return handle_describe_log_dirs(
                    request, self._log_dirs, image.cluster.brokers.get(self._node_id)
                )
            case _:
                raise AssertionError(f"{api_key.name} is offered but not served")

    def _configs(self) -> NodeConfigs:
        return NodeConfigs.of(self._cache.image, self._node_id, self._node_configs)

    def _access(self, context: RequestContext) -> Access:
        api_key = ApiKey(context.header.api_key)
        return self._gate.access(api_key, self._cache.image, context.principal, context.peer_host)

    def _judge(self, context: RequestContext, request: Any) -> AuthorizationResult:
        return self._gate.judge(controller_request(context, request), self._cache.image)

    def _question(self, context: RequestContext, request: Any) -> DescribeRequest:
        return DescribeRequest(
            body=request,
            version=context.header.api_version,
            image=self._cache.image,
            principal=context.principal,
            node_id=self._node_id,
            node_configs=self._node_configs,
        )

    def _answer_metadata(self, context: RequestContext, request: Any, reply: Reply) -> None:
        work = self._metadata_responses.begin(
            request,
            context.header.api_version,
            self._cache.image,
            context.listener_name,
            client_access(self._access(context), self._topic_lists),
            creates_topics=self._auto_create_topics,
        )

        def advance() -> EncodedBody | None:
            answer = work.advance()
            if answer is not None:  # only then is it known what is missing
                self._create_missing(context, work)
            return answer

        reply_in_slices(advance, reply)

    def _create_missing(self, context: RequestContext, work: MetadataWork) -> None:
        names = tuple(name for name in work.topics_to_create if name not in self._being_created)
        if names:
            self._run(self._create(context, names))

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
            configs = self._configs()
            await self._forwarder.create_topics(context, [creatable_topic(name, configs) for name in names])
        except DecodeError as error:
            log.error("the controller's answer to the creation of %s: %s", ", ".join(names), error)
        finally:
            self._being_created.difference_update(names)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request could not be answered", exc_info=error)
