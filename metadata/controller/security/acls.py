"""CreateAcls and DeleteAcls, and which entries a filter matches (KIP-140, KIP-290; rule C18).

The codes are those of the protocol. ACLs are kept whether or not an authorizer enforces them: they can be written
before one is switched on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol
from uuid import UUID

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.security import AccessControlEntry, Binding
from kquorum.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kquorum.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.security import AccessControlEntryRecord, RemoveAccessControlEntryRecord

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
        """The matching ACLs, in a readable order."""
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
        # MATCH finds the ACLs that apply to a resource of this name: the literal one, the wildcard, and its prefixes
        # (KIP-290).
        if acl.pattern_type == PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, WILDCARD)


class AskedAcls(Protocol):
    """An entry of DeleteAcls, or the body of DescribeAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(asked: AskedAcls) -> AclFilter:
    return AclFilter(
        resource_type=asked.resource_type_filter,
        resource_name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )


def pattern_of(acl: AccessControlEntry) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def matched(acls: Iterable[AccessControlEntry]) -> DeleteAclsFilterResult:
    """The answer to a filter of DeleteAcls that matches these."""
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=tuple(
            [
                DeleteAclsMatchingAcl(
                    error_message=None,
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in acls
            ]
        ),
    )


def code_name(names: Mapping[int, str], code: int) -> str:
    """As Kafka writes a code in its messages: a client's newer code is UNKNOWN to this node."""
    return names.get(code, "UNKNOWN")


CLUSTER_NAME = "kafka-cluster"
MAX_ACLS_PER_REQUEST = 10_000


def create_acls(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Entry by entry; one that exists already is a success without a record."""
    body: CreateAclsRequest = request.body
    bindings = [_binding(creation) for creation in body.creations]
    # One pass over all ACLs for the whole request, not one for each entry.
    present = _existing(context, {binding.resource_name for binding in bindings})
    results: list[AclCreationResult] = []
    records: list[AccessControlEntryRecord] = []
    for binding in bindings:
        try:
            check_binding(binding)
        except ApiError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.message))
            continue
        results.append(AclCreationResult(error_message=None))
        if binding not in present:
            # The image does not have it before the commit, and the request may name it twice.
            present.add(binding)
            records.append(_creation(_new_id(context), binding))
    _check_size(len(records))
    return ControllerResult(
        records=tuple(records),
        response=CreateAclsResponse(results=tuple(results)),
        audit_reason=f"create {len(records)} ACLs" if records else None,
    )


def check_binding(binding: Binding) -> None:
    """Raises INVALID_REQUEST for an invalid ACL, in the order of Kafka's checks."""
    if binding.resource_type == CLUSTER and binding.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.resource_name:
        raise _invalid("Invalid empty resource name")
    if binding.resource_type not in RESOURCE_TYPES:
        raise _invalid(f"Invalid resourceType {code_name({ANY: 'ANY'}, binding.resource_type)}")
    if binding.pattern_type not in PATTERN_TYPES:
        names = {ANY: "ANY", MATCH: "MATCH"}
        raise _invalid(f"Invalid patternType {code_name(names, binding.pattern_type)}")
    if binding.operation not in OPERATIONS:
        raise _invalid(f"Invalid operation {code_name({ANY: 'ANY'}, binding.operation)}")
    if binding.permission_type not in PERMISSION_TYPES:
        raise _invalid(f"Invalid permissionType {code_name({ANY: 'ANY'}, binding.permission_type)}")
    principal_type, colon, _ = binding.principal.partition(":")
    if not (principal_type and colon):
        raise _invalid(
            f'The principal "{binding.principal}" is not of the form type:name, such as User:alice'
        )


def delete_acls(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Filter by filter; an ACL that several match is listed for each and removed once."""
    doomed: dict[UUID, AccessControlEntry] = {}
    body: DeleteAclsRequest = request.body
    results = [_deletion(context, asked, doomed) for asked in body.filters]
    return ControllerResult(
        records=tuple(RemoveAccessControlEntryRecord(id=acl_id) for acl_id in doomed),
        response=DeleteAclsResponse(filter_results=tuple(results)),
        audit_reason=f"delete {len(doomed)} ACLs" if doomed else None,
    )


def _deletion(
    context: DecisionContext, asked: DeleteAclsFilter, doomed: dict[UUID, AccessControlEntry]
) -> DeleteAclsFilterResult:
    acl_filter = filter_of(asked)
    try:
        acl_filter.check()
    except ApiError as error:
        return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
    found = acl_filter.select(context.image.security.acls.values())
    doomed.update((acl.id, acl) for acl in found)
    _check_size(len(doomed))
    return matched(found)


def _check_size(count: int) -> None:
    if count > MAX_ACLS_PER_REQUEST:
        reason = f"The request changes more than {MAX_ACLS_PER_REQUEST} ACLs. Ask for less at a time."
        raise ApiError(ErrorCode.policy_violation, reason)


def _existing(context: DecisionContext, resource_names: set[str]) -> set[Binding]:
    return {
        acl.binding for acl in context.image.security.acls.values() if acl.resource_name in resource_names
    }


def _binding(creation: AclCreation) -> Binding:
    return Binding(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _creation(acl_id: UUID, binding: Binding) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=acl_id, **binding._asdict())


def _new_id(context: DecisionContext) -> UUID:
    while (drawn := context.random_uuid()) in context.image.security.acls:
        pass
    return drawn


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, reason)
