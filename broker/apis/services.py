"""What the handlers of a broker's APIs work with: the request's context, and the parts of the broker.

A new part of the broker, such as a coordinator, becomes a field of `BrokerServices`; its handlers find it there.
Handlers do no I/O of their own: what waits or sends is behind one of the protocols here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from kquorum.broker.client_access import ClientAccess, TopicLists, client_access
from kquorum.broker.data_plane import DataPlane, data_plane_without_logs
from kquorum.broker.groups.coordinator import GroupCoordinator, groups_without_logs
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.metadata_cache.responses import MetadataResponses
from kquorum.broker.quota.client_quotas import ClientQuotas, no_client_quotas
from kquorum.broker.transactions.coordinator import TransactionCoordinator, transactions_without_logs
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.raft.ports import RandomSource
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader


class MemoryCount(Protocol):
    """Of an answer that is long, as `network.request_budget.AnswerInMaking` has it."""

    is_for_follower: bool

    def note_made(self, more_bytes: int) -> None: ...
    def may_go_on(self, go_on: Callable[[], object]) -> bool: ...
    def go_on_anyway(self) -> None: ...
    def give_back(self) -> None: ...
    def end(self) -> None: ...


class RequestContext(Protocol):
    """The part of network.requests.RequestContext that handlers read."""

    @property
    def connection_id(self) -> int: ...
    @property
    def peer_host(self) -> str: ...
    @property
    def listener_name(self) -> str: ...
    @property
    def header(self) -> RequestHeader: ...
    @property
    def principal(self) -> str: ...
    @property
    def is_token_authenticated(self) -> bool: ...
    @property
    def frame(self) -> bytes: ...
    @property
    def is_gone(self) -> Callable[[], bool]: ...
    @property
    def when_gone(self) -> Callable[[Callable[[], object]], Callable[[], None]]: ...
    @property
    def making(self) -> MemoryCount: ...
    @property
    def throttle(self) -> Callable[[int], None]: ...
    @property
    def park(self) -> Callable[[], None]: ...


class RequestForwarder(Protocol):
    async def forward(self, context: RequestContext, request: Any) -> EncodedBody | None:
        """The active controller's answer; None ends the client's connection. Raises DecodeError."""
        ...


class TopicCreation(Protocol):
    """Creates missing topics that a client asked for (Kafka's AutoTopicCreationManager)."""

    def create(self, context: RequestContext, names: Sequence[str], configs: NodeConfigs) -> None:
        """Returns at once; the outcome shows in the image. `configs` are this broker's."""
        ...


class DelayedOperation(Protocol):
    """Lets a handler wait for another part of the broker, which calls `complete` from the event loop's thread."""

    def complete(self) -> None:
        """Ends the wait. Further calls have no effect."""
        ...

    async def wait(self, timeout_ms: int) -> bool:
        """Whether it was completed; False when `timeout_ms` have passed without that."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerServices:
    """One for all listeners of a broker.

    `authorizer` authorizes clients' requests, except forwarded ones, which the controller authorizes. `topic_creation`
    is None if `auto.create.topics.enable` is false; `create_internal_topic` does not depend on it.
    `node_configs` are the keys of this node's config file, `log_dirs`
    the absolute paths of its folders by directory id.
    """

    cache: MetadataCache
    forwarder: RequestForwarder
    cluster_id: str
    random_source: RandomSource
    new_delayed_operation: Callable[[], DelayedOperation]
    topic_creation: TopicCreation | None = None
    create_internal_topic: Callable[[str], None] = lambda _name: None
    node_id: int = -1
    node_configs: Mapping[str, str] = field(default_factory=dict)
    log_dirs: Mapping[UUID, str] = field(default_factory=dict)
    data: DataPlane = field(default_factory=data_plane_without_logs)
    groups: GroupCoordinator = field(default_factory=groups_without_logs)
    transactions: TransactionCoordinator = field(default_factory=transactions_without_logs)
    quotas: ClientQuotas = field(default_factory=no_client_quotas)
    authorizer: RequestAuthorizer = field(default_factory=lambda: RequestAuthorizer(None))
    metadata_responses: MetadataResponses = field(init=False)
    _topic_lists: TopicLists = field(init=False, default_factory=TopicLists)

    def __post_init__(self) -> None:
        responses = MetadataResponses(self.cluster_id, self.random_source)
        object.__setattr__(self, "metadata_responses", responses)

    def configs(self) -> NodeConfigs:
        """This broker's configs, as of the current image."""
        return NodeConfigs.of(self.cache.image, self.node_id, self.node_configs)

    def verifies_transactions(self) -> bool:
        """Whether the coordinator is asked about the partitions that older producers added to their transactions."""
        return self.configs().value("transaction.partition.verification.enable") != "false"

    @property
    def offers_consumer_groups(self) -> bool:
        """Whether the cluster has the feature, and this broker offers the protocol (rule G7.1)."""
        has_feature = self.cache.image.features.finalized.get("group.version", 0) >= 1
        return has_feature and "consumer" in self.groups.settings.protocols

    def access(self, context: RequestContext) -> Access:
        """What the client may do, as of the current image."""
        api_key = ApiKey(context.header.api_key)
        return self.authorizer.access(api_key, self.cache.image, context.principal, context.peer_host)

    def client_access(self, context: RequestContext) -> ClientAccess:
        """What the client may see."""
        return client_access(self.access(context), self._topic_lists)

    def describe_request(self, context: RequestContext, body: Any) -> DescribeRequest:
        return DescribeRequest(
            body=body,
            version=context.header.api_version,
            image=self.cache.image,
            principal=context.principal,
            node_id=self.node_id,
            node_configs=self.node_configs,
            note_made=context.making.note_made,
        )
