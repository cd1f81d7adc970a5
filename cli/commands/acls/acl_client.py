"""Access control entries as a client of a broker sees and changes them (KIP-140, KIP-290)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_error
from kquorum.cli.failures import check_refusals
from kquorum.metadata.authorizer.codes import CLUSTER_NAME, Operation, ResourceType
from kquorum.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kquorum.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kquorum.wire.messages.describe_acls import DescribeAclsRequest
from kquorum.wire.messages.error_codes import ErrorCode

# AclOperation, ResourceType, PatternType and AclPermissionType of the protocol, by Kafka's names.
ANY: Final = 1
OPERATION_CODES: Final[Mapping[str, int]] = {each.name: each.value for each in Operation}
RESOURCE_CODES: Final[Mapping[str, int]] = {each.name: each.value for each in ResourceType}
PATTERN_CODES: Final[Mapping[str, int]] = {"ANY": ANY, "MATCH": 2, "LITERAL": 3, "PREFIXED": 4}
PERMISSION_CODES: Final[Mapping[str, int]] = {"DENY": 2, "ALLOW": 3}
_AT_ONCE: Final = 1000
_DOUBT: Final = "the ACLs may have been altered all the same: look with `kquorum acls list`"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """One entry, in Kafka's names; in the order of the columns."""

    resource: str
    name: str
    pattern: str
    permission: str
    principal: str
    host: str
    operation: str


COLUMNS: Final = tuple(each.name for each in fields(Acl))


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """None matches all; pattern MATCH finds what applies to a resource of that name."""

    resource: str | None = None
    name: str | None = None
    pattern: str = "ANY"
    permission: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: str | None = None


def name_of(codes: Mapping[str, int], code: int) -> str:
    return next((name for name, each in codes.items() if each == code), f"UNKNOWN({code})")


async def find_acls(client: ClusterClient, filters: Iterable[AclFilter]) -> tuple[Acl, ...]:
    """What any of the filters matches, each once, in order. Raises CliError for a refusal."""
    found = set[Acl]()
    for each in filters:
        answer = await client.ask(
            DescribeAclsRequest(
                resource_type_filter=ANY if each.resource is None else RESOURCE_CODES[each.resource],
                resource_name_filter=each.name,
                pattern_type_filter=PATTERN_CODES[each.pattern],
                principal_filter=each.principal,
                host_filter=each.host,
                operation=ANY if each.operation is None else OPERATION_CODES[each.operation],
                permission_type=ANY if each.permission is None else PERMISSION_CODES[each.permission],
            )
        )
        check_error(int(answer.error_code), answer.error_message, "the ACLs cannot be listed")
        found.update(
            _acl(resource.resource_type, resource.resource_name, resource.pattern_type, acl)
            for resource in answer.resources
            for acl in resource.acls
        )
    return tuple(sorted(found))


def _acl(resource_type: int, name: str, pattern: int, entry: object) -> Acl:
    """`entry` has principal, host, operation and permission."""
    return Acl(
        resource=name_of(RESOURCE_CODES, resource_type),
        name=name,
        pattern=name_of(PATTERN_CODES, pattern),
        permission=name_of(PERMISSION_CODES, entry.permission_type),  # type: ignore[attr-defined]
        principal=entry.principal,  # type: ignore[attr-defined]
        host=entry.host,  # type: ignore[attr-defined]
        operation=name_of(OPERATION_CODES, entry.operation),  # type: ignore[attr-defined]
    )


def around(acls: Iterable[Acl]) -> list[AclFilter]:
    """Filters that together match all entries of the resources of these."""
    patterns = dict.fromkeys((acl.resource, acl.name, acl.pattern) for acl in acls)
    return [AclFilter(resource=resource, name=name, pattern=pattern) for resource, name, pattern in patterns]


async def add_acls(client: ClusterClient, acls: Sequence[Acl]) -> None:
    """Raises CliError, which names each refused entry; the others have been added."""
    refused: list[str] = []
    for some in _portions(acls):
        request = CreateAclsRequest(creations=tuple(map(_creation, some)))
        answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
        refused += [
            f"{acl.permission} {acl.principal} {acl.operation} on {acl.resource} {acl.name}: "
            + _words(result.error_code, result.error_message)
            for acl, result in zip(some, answer.results, strict=True)
            if result.error_code is not ErrorCode.none
        ]
    check_refusals(refused, "ACLs were not added")


def _creation(acl: Acl) -> AclCreation:
    return AclCreation(
        resource_type=RESOURCE_CODES[acl.resource],
        resource_name=acl.name,
        resource_pattern_type=PATTERN_CODES[acl.pattern],
        principal=acl.principal,
        host=acl.host,
        operation=OPERATION_CODES[acl.operation],
        permission_type=PERMISSION_CODES[acl.permission],
    )


async def remove_acls(client: ClusterClient, acls: Sequence[Acl]) -> tuple[Acl, ...]:
    """Those that were removed: one that is gone meanwhile is not among them. Raises CliError for refusals."""
    refused: list[str] = []
    removed: list[Acl] = []
    for some in _portions(acls):
        request = DeleteAclsRequest(filters=tuple(map(_filter_of, some)))
        answer = await client.ask(PendingRequest(request=request, doubt=_DOUBT))
        for result in answer.filter_results:
            if result.error_code is not ErrorCode.none:
                refused.append(_words(result.error_code, result.error_message))
            for each in result.matching_acls:
                if each.error_code is not ErrorCode.none:
                    refused.append(_words(each.error_code, each.error_message))
                else:
                    removed.append(_acl(each.resource_type, each.resource_name, each.pattern_type, each))
    check_refusals(refused, "ACLs were not removed")
    return tuple(removed)


def _filter_of(acl: Acl) -> DeleteAclsFilter:
    """It matches this entry alone."""
    return DeleteAclsFilter(
        resource_type_filter=RESOURCE_CODES[acl.resource],
        resource_name_filter=acl.name,
        pattern_type_filter=PATTERN_CODES[acl.pattern],
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=OPERATION_CODES[acl.operation],
        permission_type=PERMISSION_CODES[acl.permission],
    )


def _portions(acls: Sequence[Acl]) -> Iterator[Sequence[Acl]]:
    """A request may have 2,000 entries (`kquorum.request.max.entries`)."""
    return (acls[start : start + _AT_ONCE] for start in range(0, len(acls), _AT_ONCE))


def _words(code: ErrorCode, message: str | None) -> str:
    name = code.name.upper()
    return f"{message} ({name})" if message else name


def resource_of(resource: str, name: str, *, pattern: str) -> tuple[str, str, str]:
    """Resource, name and pattern; the cluster has one name only."""
    return (resource, CLUSTER_NAME, "LITERAL") if resource == "CLUSTER" else (resource, name, pattern)
