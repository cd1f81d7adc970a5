"""Which access control entries a filter asks for (KIP-140, KIP-290); the codes are those of the protocol."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError, Values
from metadata.image.security import AccessControlEntry

# In every enumeration 1 stands for "any", and what is not listed is unknown.
ANY = 1
TOPIC, CLUSTER, USER = 2, 4, 7
MATCH, LITERAL, PREFIXED = 2, 3, 4
DENY, ALLOW = 2, 3
RESOURCE_TYPES = range(TOPIC, USER + 1)
PATTERN_TYPES = (LITERAL, PREFIXED)
OPERATIONS = range(2, 15)
PERMISSION_TYPES = (DENY, ALLOW)
WILDCARD = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """None and ANY match everything; pattern type MATCH asks for whatever would apply to the resource of that name."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def check(self) -> None:
        """Raises INVALID_REQUEST for codes that are not known."""
        if self.resource_type not in (ANY, *RESOURCE_TYPES) or self.pattern_type not in (
            ANY,
            MATCH,
            *PATTERN_TYPES,
        ):
            raise ApiError(ErrorCode.invalid_request, "Unknown patternFilter.")
        if self.operation not in (ANY, *OPERATIONS) or self.permission_type not in (ANY, *PERMISSION_TYPES):
            raise ApiError(ErrorCode.invalid_request, "Unknown entryFilter.")

    def select(self, acls: Iterable[AccessControlEntry]) -> list[AccessControlEntry]:
        """What matches, in an order that people can read."""
        return sorted(filter(self.matches, acls), key=attrgetter("binding"))

    def matches(self, acl: AccessControlEntry) -> bool:
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AccessControlEntry) -> bool:
        if self.pattern_type not in (ANY, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type == PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, WILDCARD)


def filter_of(asked: Any) -> AclFilter:
    """From an entry of DeleteAcls or the body of DescribeAcls: both have these fields."""
    return AclFilter(
        resource_type=asked.resource_type_filter,
        resource_name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )


def pattern_values(acl: AccessControlEntry) -> Values:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
    }


def entry_values(acl: AccessControlEntry) -> Values:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }


def code_name(names: Mapping[int, str], code: int) -> str:
    """As Kafka writes a code in its messages: a client's newer code is UNKNOWN to this node."""
    return names.get(code, "UNKNOWN")
