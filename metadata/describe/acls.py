"""DescribeAcls: the access control entries that a filter asks for, whether or not anything enforces them."""

from operator import attrgetter
from typing import Final

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.security.acls import AclFilter, filter_of, pattern_of
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.slices import Elements, Steps, ordered
from kquorum.metadata.image.security import AccessControlEntry
from kquorum.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

# So that no element takes longer to make and encode than a slice may.
ENTRIES_OF_A_RESOURCE: Final = 200


def describe_acls(question: DescribeRequest) -> DescribeAclsResponse | Elements:
    request: DescribeAclsRequest = question.body
    acl_filter = filter_of(request)
    try:
        acl_filter.check()
    except ApiError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    return Elements(DescribeAclsResponse(error_message=None), "resources", _resources(question, acl_filter))


def _resources(question: DescribeRequest, acl_filter: AclFilter) -> Steps[DescribeAclsResource]:
    """One for each pattern, and for a pattern with many entries more than one."""
    found = ordered(
        question.image.security.acls.values(), key=attrgetter("binding"), is_wanted=acl_filter.matches
    )
    some: list[AccessControlEntry] = []
    for acl in found:
        if acl is None:
            yield None
            continue
        if some and (len(some) == ENTRIES_OF_A_RESOURCE or pattern_of(some[0]) != pattern_of(acl)):
            yield _resource(some)
            some = []
        some.append(acl)
    if some:
        yield _resource(some)


def _resource(acls: list[AccessControlEntry]) -> DescribeAclsResource:
    """Entries of one pattern."""
    return DescribeAclsResource(
        resource_type=acls[0].resource_type,
        resource_name=acls[0].resource_name,
        pattern_type=acls[0].pattern_type,
        acls=tuple(
            [
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in acls
            ]
        ),
    )
