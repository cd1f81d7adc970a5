"""What one client may see of the cluster: the eyes with which a broker's own answers are made (Kafka's KafkaApis).

Topics that a client may not describe are left out where it asks for all, and refused by name whether or not they exist.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.authorizer import Acls
from kquorum.metadata.authorizer.codes import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Operation, ResourceType
from kquorum.metadata.image.topics import TopicsImage

ALL_TOPIC_OPERATIONS: Final = sum(1 << operation for operation in TOPIC_OPERATIONS)
ALL_CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in CLUSTER_OPERATIONS)
# Principals, each at one address, of whom it is kept which topics they may see.
MOST_CLIENTS: Final = 16


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
    """Lists of the topics that clients may describe, for as long as the topics stay as they are; and what was decided
    of each name, for as long as the ACLs do."""

    def __init__(self) -> None:
        self._topics: TopicsImage | None = None
        self._acls: Acls | None = None
        self._lists: dict[tuple[str, str], Sequence[str]] = {}
        self._decided: dict[tuple[str, str], dict[str, bool]] = {}

    def of(self, access: Access, topics: TopicsImage) -> Sequence[str]:
        if self._acls is not access.acls:
            self._acls, self._topics = access.acls, None
            self._decided.clear()
        if self._topics is not topics:
            self._topics = topics
            self._lists.clear()
        client = (access.principal, access.host)
        found = self._lists.get(client)
        if found is None:
            found = self._lists[client] = self._list(client, access, sorted(topics.by_name))
        return found

    def _list(self, client: tuple[str, str], access: Access, names: Sequence[str]) -> Sequence[str]:
        before = self._decided.pop(client, {})
        decided = {
            name: before[name]
            if name in before
            else access.allows_on_topic(Operation.DESCRIBE, name, is_asked=False)
            for name in names
        }
        self._decided[client] = decided
        if len(self._decided) > MOST_CLIENTS:
            oldest = next(iter(self._decided))
            del self._decided[oldest]
            self._lists.pop(oldest, None)
        return [name for name in names if decided[name]]


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
