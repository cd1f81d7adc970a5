"""DescribeLogDirs (api key 35): the directories of this broker, which hold no partitions.

kafka-reassign-partitions asks for the log directories before it sends a plan.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey


def _handle(
    context: RequestContext, _request: DescribeLogDirsRequest, services: BrokerServices
) -> DescribeLogDirsResponse:
    if not services.access(context).allows_on_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.cluster_authorization_failed)
    broker = services.cache.image.cluster.brokers.get(services.node_id)
    return described_log_dirs(services.log_dirs, broker)


# DESCRIBE on the cluster.
API: Final = Local(ApiKey.DESCRIBE_LOG_DIRS, Authorized.IN_HANDLER, handle=_handle)


def described_log_dirs(
    log_dirs: Mapping[UUID, str], broker: BrokerRegistration | None
) -> DescribeLogDirsResponse:
    """Every directory, whatever was asked for, as in Kafka; the sizes of the volumes are left out (-1).

    `log_dirs` are the absolute paths by directory id; `broker` is this one as the image knows it, or None.
    """
    cordoned = (broker.cordoned_log_dirs if broker is not None else None) or ()
    return DescribeLogDirsResponse(
        results=tuple(
            [
                DescribeLogDirsResult(log_dir=path, is_cordoned=directory_id in cordoned)
                for directory_id, path in log_dirs.items()
            ]
        )
    )
