"""DescribeAcls: the access control entries that a filter asks for, whether or not anything enforces them."""

from itertools import groupby

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError, Values
from metadata.controller.security.acls import entry_values, filter_of, pattern_values
from metadata.describe.describe_request import DescribeRequest


def describe_acls(question: DescribeRequest) -> Values:
    acl_filter = filter_of(question.body)
    try:
        acl_filter.check()
    except ApiError as error:
        return _answer(error.code, error.message, [])
    found = acl_filter.select(question.image.security.acls.values())
    by_pattern = groupby(found, key=pattern_values)
    return _answer(
        ErrorCode.none,
        None,
        [{**pattern, "acls": [entry_values(acl) for acl in acls]} for pattern, acls in by_pattern],
    )


def _answer(code: ErrorCode, message: str | None, resources: list[Values]) -> Values:
    return {"throttle_time": 0, "error_code": code, "error_message": message, "resources": resources}
