"""What one client may do, as of one state of the ACLs."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from kquorum.metadata.authorizer.authorizer import Acls, Authorizer
from kquorum.metadata.authorizer.codes import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from kquorum.metadata.image.topics import TopicsImage


@dataclass(frozen=True, slots=True)
class Denial:
    """That a principal was refused an operation on a resource."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str


@dataclass(slots=True, init=False)
class Access:
    """Without an authorizer everything is allowed. All methods raise NotLoadedError.

    `topics` are those that the node which serves the request knows, committed or not: requests name them by id too.
    `note_denial` gets what a client asked for and may not have, not what a list merely leaves out.
    """

    authorizer: Final[Authorizer | None]
    acls: Final[Acls]
    topics: Final[TopicsImage]
    principal: Final[str]
    host: Final[str]
    note_denial: Final[Callable[[Denial], None]]

    def __init__(
        self,
        *,
        authorizer: Authorizer | None,
        acls: Acls,
        topics: TopicsImage,
        principal: str,
        host: str,
        note_denial: Callable[[Denial], None],
    ) -> None:
        self.authorizer = authorizer
        self.acls = acls
        self.topics = topics
        self.principal = principal
        self.host = host
        self.note_denial = note_denial

    @property
    def is_unlimited(self) -> bool:
        if self.authorizer is None or self.authorizer.is_super_user(self.principal):
            return True
        self.authorizer.check_loaded()
        return False

    def allows(
        self, operation: Operation, resource_type: ResourceType, name: str, *, is_asked: bool = True
    ) -> bool:
        """`is_asked`: the client itself asked for it, so that a denial is worth a note."""
        authorizer = self.authorizer
        if authorizer is None or authorizer.allows(
            self.acls, self.principal, self.host, operation, resource_type, name
        ):
            return True
        if is_asked:
            self.note_denial(Denial(self.principal, self.host, operation, resource_type, name))
        return False

    def allows_on_cluster(self, operation: Operation, *, is_asked: bool = True) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, is_asked=is_asked)

    def allows_on_topic(self, operation: Operation, name: str, *, is_asked: bool = True) -> bool:
        return self.allows(operation, ResourceType.TOPIC, name, is_asked=is_asked)

    def allows_on_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether for any resource of this type; a refusal is no denial worth a note."""
        authorizer = self.authorizer
        return authorizer is None or authorizer.allows_any(
            self.acls, self.principal, self.host, operation, resource_type
        )

    def operations_on(self, resource_type: ResourceType, name: str) -> int:
        """All that are allowed, as the bit field of KIP-430."""
        operations: Collection[int] = OPERATIONS[resource_type]
        if self.authorizer is not None:
            operations = self.authorizer.operations(self.acls, self.principal, self.host, resource_type, name)
        return sum(1 << operation for operation in operations)

    def operations_on_cluster(self) -> int:
        """0 for a client that may not describe the cluster."""
        if not self.allows_on_cluster(Operation.DESCRIBE):
            return 0
        return self.operations_on(ResourceType.CLUSTER, CLUSTER_NAME)
