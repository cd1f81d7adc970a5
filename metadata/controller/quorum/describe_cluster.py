"""DescribeCluster, answered from what is committed, on standbys too (KIP-700, KIP-919)."""

from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode

BROKER_ENDPOINT = 1
CONTROLLER_ENDPOINT = 2


def describe_cluster(
    image: MetadataImage, cluster_id: str, leader_id: int, request: ControllerRequest
) -> DescribeClusterResponse:
    """Lists controllers; raises MISMATCHED_ENDPOINT_TYPE for a request for brokers, which a broker answers."""
    body: DescribeClusterRequest = request.body
    if body.endpoint_type == BROKER_ENDPOINT:
        reason = "This is a controller's listener; ask a broker's for brokers."
        raise ApiError(ErrorCode.mismatched_endpoint_type, reason)
    if body.endpoint_type != CONTROLLER_ENDPOINT:
        raise ApiError(
            ErrorCode.unsupported_endpoint_type, f"There is no endpoint type {body.endpoint_type}."
        )
    controllers = [
        DescribeClusterBroker(
            broker_id=controller.id, host=controller.end_points[0].host, port=controller.end_points[0].port
        )
        for _, controller in sorted(image.cluster.controllers.items())
        if controller.end_points
    ]
    return DescribeClusterResponse(
        endpoint_type=CONTROLLER_ENDPOINT,
        cluster_id=cluster_id,
        controller_id=leader_id,
        brokers=tuple(controllers),
    )
