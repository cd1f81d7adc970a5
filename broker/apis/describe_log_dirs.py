"""ListGroups (16) and DescribeLogDirs (35) of a broker that keeps no records: there is nothing, which is no failure.

Administration goes through them on the way to something else: Kafka's kafka-reassign-partitions asks for log
directories before it sends a plan, and kafka-configs for the groups before it shows the config of one.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.metadata_cache.answers import Values
from metadata.image.cluster import BrokerRegistration


def handle_list_groups(_request: Any) -> Values:
    return {"error_code": ErrorCode.none, "groups": ()}


def handle_describe_log_dirs(
    _request: Any, log_dirs: Mapping[UUID, str], broker: BrokerRegistration | None
) -> Values:
    """Every directory, whatever was asked for, as in Kafka; the sizes of the volumes are left out (-1).

    `log_dirs` are the absolute paths by directory id; `broker` is this one as the image knows it, or None.
    """
    cordoned = (broker.cordoned_log_dirs if broker is not None else None) or ()
    return {
        "error_code": ErrorCode.none,
        "results": [
            {
                "error_code": ErrorCode.none,
                "log_dir": path,
                "topics": (),
                "total_bytes": -1,
                "usable_bytes": -1,
                "is_cordoned": directory_id in cordoned,
            }
            for directory_id, path in log_dirs.items()
        ],
    }
