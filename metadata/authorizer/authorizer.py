"""The decisions of Kafka's StandardAuthorizer: super users may do anything, else the ACLs say, denials first."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from immutables import Map

from kquorum.metadata.authorizer.acl_index import AclIndex, Decision
from kquorum.metadata.authorizer.codes import OPERATIONS
from kquorum.metadata.configs.table import default_flag
from kquorum.metadata.image.security import AccessControlEntry

# `authorizer.class.name` of Kafka with KRaft.
CLASS_NAME = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

Acls = Map[UUID, AccessControlEntry]


class NotLoadedError(Exception):
    """This node has not yet read all ACLs, so it cannot say; super users alone need none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerConfig:
    """`super_users` are principals as "Type:name"."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = default_flag("allow.everyone.if.no.acl.found")


class Authorizer:
    def __init__(self, config: AuthorizerConfig, is_loaded: Callable[[], bool] = lambda: True) -> None:
        """`is_loaded` says whether the images hold all that was committed when this node began."""
        self._config = config
        self._is_loaded = is_loaded
        self._has_loaded = False
        self._acls: Acls = Map()
        self._index = AclIndex()
        # What is in the index, by identity: an ACL is the same object in each image that has it.
        self._entries: dict[int, AccessControlEntry] = {}

    def index(self, acls: Acls) -> AclIndex:
        if self._acls is not acls:
            entries = {id(entry): entry for entry in acls.values()}
            for key in self._entries.keys() - entries.keys():
                self._index.remove(self._entries[key])
            for key in entries.keys() - self._entries.keys():
                self._index.add(entries[key])
            self._acls, self._entries = acls, entries
        return self._index

    def is_super_user(self, principal: str) -> bool:
        return principal in self._config.super_users

    def allows(
        self, acls: Acls, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> bool:
        """Raises NotLoadedError."""
        if self.is_super_user(principal):
            return True
        self.check_loaded()
        decision = self.index(acls).decide(principal, host, operation, resource_type, name)
        if decision is Decision.NO_ACLS:
            return self._config.allow_everyone_if_no_acl_found
        return decision is Decision.ALLOWED

    def operations(
        self, acls: Acls, principal: str, host: str, resource_type: int, name: str
    ) -> Collection[int]:
        """All that `allows` allows on a topic or the cluster. Raises NotLoadedError."""
        operations = OPERATIONS[resource_type]
        if self.is_super_user(principal):
            return operations
        self.check_loaded()
        allowed = self.index(acls).allowed_operations(principal, host, resource_type, name, operations)
        if allowed is None:
            return operations if self._config.allow_everyone_if_no_acl_found else ()
        return allowed

    def allows_any(self, acls: Acls, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether for any resource of this type. Raises NotLoadedError.

        As in Kafka a resource of some name that no ACL is likely to name is tried first, for the sake of super users
        and of clusters that allow what no ACL speaks of.
        """
        if self.allows(acls, principal, host, operation, resource_type, _UNLIKELY_NAME):
            return True
        return self.index(acls).allows_any(principal, host, operation, resource_type)

    def check_loaded(self) -> None:
        """Raises NotLoadedError."""
        if not self._has_loaded:
            self._has_loaded = self._is_loaded()
            if not self._has_loaded:
                raise NotLoadedError


_UNLIKELY_NAME = "hardcode"


def parse_principals(text: str) -> frozenset[str]:
    """Of `super.users` and the like, which semicolons separate; names may have commas, as those of certificates do.

    Raises ValueError for what is not Type:name.
    """
    users = [user.strip() for user in text.split(";")]
    for user in filter(None, users):
        principal_type, colon, name = user.partition(":")
        if not (principal_type and colon and name):
            raise ValueError(f"{user!r} is not a principal of the form Type:name, such as User:admin")
    return frozenset(filter(None, users))
