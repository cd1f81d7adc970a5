"""DescribeAcls: the access control entries that a filter asks for, whether or not anything enforces them."""

from itertools import groupby

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.security.acls import filter_of, pattern_of
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.security import AccessControlEntry
from kquorum.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def describe_acls(question: DescribeRequest) -> DescribeAclsResponse:
    request: DescribeAclsRequest = question.body
    acl_filter = filter_of(request)
    try:
        acl_filter.check()
    except ApiError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    found = acl_filter.select(question.image.security.acls.values())
    resources = [_resource(list(acls)) for _, acls in groupby(found, key=pattern_of)]
    return DescribeAclsResponse(error_message=None, resources=tuple(resources))


def _resource(acls: list[AccessControlEntry]) -> DescribeAclsResource:
    """The entries of one pattern."""
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
