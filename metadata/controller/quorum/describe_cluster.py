"""DescribeCluster, answered from what is committed, on standbys too (KIP-700, KIP-919)."""

from kio.schema.errors import ErrorCode

from kquorum.metadata.controller.requests import ApiError, ControllerRequest, Values
from kquorum.metadata.image.image import MetadataImage

BROKER_ENDPOINT = 1
CONTROLLER_ENDPOINT = 2
NO_AUTHORIZED_OPERATIONS = -(2**31)


def describe_cluster(
    image: MetadataImage, cluster_id: str, leader_id: int, request: ControllerRequest
) -> Values:
    """Lists controllers; raises MISMATCHED_ENDPOINT_TYPE for a request for brokers, which a broker answers."""
    endpoint_type = getattr(request.body, "endpoint_type", BROKER_ENDPOINT)
    if endpoint_type == BROKER_ENDPOINT:
        reason = "This is a controller's listener; ask a broker's for brokers."
        raise ApiError(ErrorCode.mismatched_endpoint_type, reason)
    if endpoint_type != CONTROLLER_ENDPOINT:
        raise ApiError(ErrorCode.unsupported_endpoint_type, f"There is no endpoint type {endpoint_type}.")
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.none,
        "error_message": None,
        "endpoint_type": CONTROLLER_ENDPOINT,
        "cluster_id": cluster_id,
        "controller_id": leader_id,
        "brokers": [
            {
                "broker_id": controller.id,
                "host": controller.end_points[0].host,
                "port": controller.end_points[0].port,
                "rack": None,
                "is_fenced": False,
            }
            for _, controller in sorted(image.cluster.controllers.items())
            if controller.end_points
        ],
        "cluster_authorized_operations": NO_AUTHORIZED_OPERATIONS,
    }
