"""ACLs for tests, and the plain statement of what they decide: a loop over all of them."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from immutables import Map

from kquorum.metadata.authorizer.authorizer import Acls, Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.image.security import AccessControlEntry
from tests.support.controller_world import topic

DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4
ALICE, BOB, ADMIN = "User:alice", "User:bob", "User:admin"
HERE, THERE = "10.0.0.1", "10.0.0.2"


def acl(
    operation: int,
    name: str = "kafka-cluster",
    resource_type: int = ResourceType.TOPIC,
    *,
    principal: str = ALICE,
    pattern_type: int = LITERAL,
    host: str = "*",
    permission_type: int = ALLOW,
) -> AccessControlEntry:
    if name == "kafka-cluster":
        resource_type = ResourceType.CLUSTER
    return AccessControlEntry(
        id=UUID(int=0),
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )


def creations(entries: Iterable[AccessControlEntry]) -> list[dict[str, Any]]:
    """Of CreateAcls."""
    return [
        {
            "resource_type": entry.resource_type,
            "resource_name": entry.resource_name,
            "resource_pattern_type": entry.pattern_type,
            "principal": entry.principal,
            "host": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission_type,
        }
        for entry in entries
    ]


def acls_of(entries: Iterable[AccessControlEntry]) -> Acls:
    return Map({UUID(int=number): entry for number, entry in enumerate(entries)})


def authorizer(*, allow_everyone: bool = False) -> Authorizer:
    return Authorizer(
        AuthorizerConfig(super_users=frozenset({ADMIN}), allow_everyone_if_no_acl_found=allow_everyone)
    )


def plain_decision(
    acls: Sequence[AccessControlEntry],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: int,
    name: str,
    *,
    allow_everyone: bool,
) -> bool:
    """What Kafka's documentation says, as one would write it down."""
    if principal == ADMIN:
        return True
    concerned = [each for each in acls if each.resource_type == resource_type and _applies(each, name)]
    mine = [
        each for each in concerned if each.principal in (principal, "User:*") and each.host in (host, "*")
    ]
    if any(each.permission_type == DENY and each.operation in (operation, 2) for each in mine):
        return False
    allowed = {each.operation for each in mine if each.permission_type == ALLOW}
    if allowed & {operation, 2}:
        return True
    if operation is Operation.DESCRIBE and allowed & {3, 4, 6, 7}:
        return True
    if operation is Operation.DESCRIBE_CONFIGS and 11 in allowed:
        return True
    return allow_everyone and not concerned


def _applies(entry: AccessControlEntry, name: str) -> bool:
    if entry.pattern_type == PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name in (name, "*")


def creation(*names: str) -> dict[str, Any]:
    return {"topics": [topic(name) for name in names], "timeout": 1000}
