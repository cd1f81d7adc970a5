"""APIs that are for the cluster as a whole: one question, and all or nothing."""

from dataclasses import replace

from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import FAILED, Operation, ResourceType
from kquorum.metadata.authorizer.verdict import Verdict
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_FAILED = FAILED[ResourceType.CLUSTER]


class OnCluster:
    """A rule that asks for one operation on the cluster."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def __call__(self, access: Access, request: ControllerRequest) -> Verdict:
        if access.allows_on_cluster(self._operation):
            return Verdict(request.body)
        reason = f"{request.principal} lacks {self._operation.name} on the cluster."
        return Verdict(request.body, refusal=ApiError(_FAILED, reason))


def judge_describe_cluster(access: Access, request: ControllerRequest) -> Verdict:
    """At a controller, which tells of controllers: that takes ALTER (KIP-919)."""
    body: DescribeClusterRequest = request.body
    verdict = OnCluster(Operation.ALTER)(access, request)
    if verdict.refusal is not None or not body.include_cluster_authorized_operations:
        return verdict
    operations = access.operations_on_cluster()

    def complete(response: DescribeClusterResponse) -> DescribeClusterResponse:
        return replace(response, cluster_authorized_operations=operations)

    return Verdict(body, complete)
