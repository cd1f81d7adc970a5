"""What one client may see of the cluster: the eyes with which a broker's own answers are made (Kafka's KafkaApis).

Topics that a client may not describe are left out where it asks for all, and refused by name whether or not they exist.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from metadata.authorizer.access import Access
from metadata.authorizer.acl_index import AclIndex
from metadata.authorizer.codes import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Operation, ResourceType
from metadata.image.topics import TopicsImage

ALL_TOPIC_OPERATIONS: Final = sum(1 << operation for operation in TOPIC_OPERATIONS)
ALL_CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in CLUSTER_OPERATIONS)
# Clients whose lists of topics are kept for when they ask again.
MOST_CLIENTS: Final = 64


class ClientAccess(Protocol):
    """The operations are bit fields (KIP-430). All methods raise metadata.authorizer.NotLoadedError."""

    @property
    def is_unlimited(self) -> bool: ...

    def may_describe(self, topic_name: str) -> bool: ...

    def may_create(self, topic_name: str) -> bool: ...

    def describable(self, topics: TopicsImage) -> Sequence[str]:
        """The names of all topics that may be told, in order."""
        ...

    def topic_operations(self, topic_name: str) -> int: ...

    def cluster_operations(self) -> int: ...


class Unlimited:
    """For everybody, where there is no authorizer; for super users, where there is."""

    is_unlimited = True

    def may_describe(self, topic_name: str) -> bool:  # noqa: ARG002 - the protocol's signature
        return True

    def may_create(self, topic_name: str) -> bool:  # noqa: ARG002 - the protocol's signature
        return True

    def describable(self, topics: TopicsImage) -> Sequence[str]:
        return sorted(topics.by_name)

    def topic_operations(self, topic_name: str) -> int:  # noqa: ARG002 - the protocol's signature
        return ALL_TOPIC_OPERATIONS

    def cluster_operations(self) -> int:
        return ALL_CLUSTER_OPERATIONS


UNLIMITED: Final = Unlimited()


class TopicLists:
    """Lists of the topics that clients may describe, for as long as topics and ACLs stay as they are."""

    def __init__(self) -> None:
        self._topics: TopicsImage | None = None
        self._index: AclIndex | None = None
        self._lists: dict[tuple[str, str], Sequence[str]] = {}

    def of(self, access: Access, topics: TopicsImage) -> Sequence[str]:
        if self._topics is not topics or self._index is not access.index:
            self._topics, self._index = topics, access.index
            self._lists.clear()
        client = (access.principal, access.host)
        found = self._lists.get(client)
        if found is None:
            found = self._lists[client] = _describable(access, topics.by_name)
            if len(self._lists) > MOST_CLIENTS:
                del self._lists[next(iter(self._lists))]
        return found


def _describable(access: Access, names: Iterable[str]) -> Sequence[str]:
    return [
        name for name in sorted(names) if access.allows_on_topic(Operation.DESCRIBE, name, is_asked=False)
    ]


class Limited:
    """As the ACLs have it."""

    is_unlimited = False

    def __init__(self, access: Access, lists: TopicLists) -> None:
        self._access = access
        self._lists = lists

    def may_describe(self, topic_name: str) -> bool:
        return self._access.allows_on_topic(Operation.DESCRIBE, topic_name)

    def may_create(self, topic_name: str) -> bool:
        return self._access.allows_on_cluster(
            Operation.CREATE, is_asked=False
        ) or self._access.allows_on_topic(Operation.CREATE, topic_name)

    def describable(self, topics: TopicsImage) -> Sequence[str]:
        return self._lists.of(self._access, topics)

    def topic_operations(self, topic_name: str) -> int:
        return self._access.operations_on(ResourceType.TOPIC, topic_name)

    def cluster_operations(self) -> int:
        return self._access.operations_on_cluster()


def client_access(access: Access, lists: TopicLists) -> ClientAccess:
    return UNLIMITED if access.is_unlimited else Limited(access, lists)
