"""DescribeCluster (api key 60) as a broker answers it: the brokers, never the controllers (KIP-919)."""

from typing import Final

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.answers import asked_cluster_operations
from kquorum.broker.metadata_cache.cache import NO_NODE, alive_brokers, controller_id_for_clients
from kquorum.metadata.image.image import MetadataImage
from kquorum.raft.ports import RandomSource
from kquorum.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2


def _handle(
    context: RequestContext, request: DescribeClusterRequest, services: BrokerServices
) -> DescribeClusterResponse:
    return handle_describe_cluster(
        request,
        services.cache.image,
        services.cluster_id,
        context.listener_name,
        services.random_source,
        services.client_access(context),
    )


# Every client may ask; the operations that it asks for are those that its ACLs allow.
API: Final = Local(ApiKey.DESCRIBE_CLUSTER, Authorized.IN_HANDLER, handle=_handle)


def handle_describe_cluster(
    request: DescribeClusterRequest,
    image: MetadataImage,
    cluster_id: str,
    listener_name: str,
    random_source: RandomSource,
    access: ClientAccess = UNLIMITED,
) -> DescribeClusterResponse:
    """Fenced brokers are listed when version 2 asks for them."""
    if request.endpoint_type != BROKER_ENDPOINTS:
        return _refusal(request.endpoint_type)
    brokers = alive_brokers(image, listener_name, with_fenced=request.include_fenced_brokers)
    controller_id = controller_id_for_clients(image, random_source)
    return DescribeClusterResponse(
        endpoint_type=BROKER_ENDPOINTS,
        cluster_id=cluster_id,
        # Only a broker of the list above: a client could not reach one without this listener (as in Kafka).
        controller_id=controller_id if any(each.id == controller_id for each in brokers) else NO_NODE,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=broker.id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
            for broker in brokers
        ),
        cluster_authorized_operations=asked_cluster_operations(request, access),
    )


def _refusal(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLER_ENDPOINTS:
        error = ErrorCode.mismatched_endpoint_type
        message = "this is a broker; ask a controller (its listener) for the controllers"
    else:
        error, message = ErrorCode.unsupported_endpoint_type, f"endpoint type {endpoint_type} is not known"
    return DescribeClusterResponse(
        error_code=error, error_message=message, endpoint_type=BROKER_ENDPOINTS, controller_id=NO_NODE
    )
