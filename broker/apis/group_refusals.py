"""The answers to members of groups, of every kind (classic, consumer, share, streams), and to those who ask for groups.

There are none here. To ask for one is answered truly: it is not there. To join one, or to keep offsets in it, is
refused with the lack of authorization, which no client retries (`broker.apis.data_refusals` says why).
"""

from collections.abc import Iterable
from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.metadata.controller.requests import Values

NO_GROUPS = "this kquorum broker serves metadata only and coordinates no groups"
_REFUSED = ErrorCode.group_authorization_failed
_ABSENT = ErrorCode.group_id_not_found
# From these versions on the name means what is said here.
_FIRST_JOIN_WITH_NULL_PROTOCOL = 7
_FIRST_DESCRIPTION_WITH_ABSENCE = 6
_OF_GROUP: Values = {"error_code": _REFUSED, "error_message": NO_GROUPS}
_ABSENT_GROUP: Values = {"error_code": _ABSENT, "error_message": NO_GROUPS}


def topics_refused(topics: Iterable[Any], error: ErrorCode) -> list[Values]:
    """Each partition of each topic with the error, by name or by id as the version has it."""
    return [
        {
            **({"topic_id": topic.topic_id} if hasattr(topic, "topic_id") else {"name": topic.name}),
            "partitions": [
                {"partition_index": partition.partition_index, "error_code": error}
                for partition in topic.partitions
            ],
        }
        for topic in topics
    ]


def refuse_offset_commit(request: Any, _version: int) -> Values:
    return {"topics": topics_refused(request.topics, _REFUSED)}


def refuse_offset_fetch(request: Any, version: int) -> Values:
    """Version 1 has room for an error in its partitions only, version 8 and later in each group."""
    if version >= 8:
        refused = [
            {"group_id": group.group_id, "topics": (), "error_code": _REFUSED} for group in request.groups
        ]
        return {"groups": refused}
    nothing = {"committed_offset": -1, "metadata": "", "error_code": _REFUSED}
    topics = [
        {
            "name": topic.name,
            "partitions": [{"partition_index": index, **nothing} for index in topic.partition_indexes],
        }
        for topic in request.topics or ()
    ]
    return {"topics": topics if version == 1 else (), "error_code": _REFUSED}


def refuse_join_group(request: Any, version: int) -> Values:
    return {
        "error_code": _REFUSED,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if version >= _FIRST_JOIN_WITH_NULL_PROTOCOL else "",
        "leader": "",
        "member_id": request.member_id,
        "members": (),
    }


def refuse_sync_group(_request: Any, _version: int) -> Values:
    return {"error_code": _REFUSED, "protocol_type": None, "protocol_name": None, "assignment": b""}


def refuse_heartbeat(_request: Any, _version: int) -> Values:
    return {"error_code": _REFUSED}


def refuse_leave_group(_request: Any, _version: int) -> Values:
    return {"error_code": _REFUSED, "members": ()}


def refuse_member_heartbeat(_request: Any, _version: int) -> Values:
    """Of a consumer group (KIP-848) or a share group (KIP-932)."""
    return {**_OF_GROUP, "member_id": None, "member_epoch": 0, "heartbeat_interval": 0, "assignment": None}


def refuse_streams_heartbeat(request: Any, _version: int) -> Values:
    return {
        **_OF_GROUP,
        "member_id": request.member_id,
        "member_epoch": 0,
        "heartbeat_interval": 0,
        "acceptable_recovery_lag": 0,
        "task_offset_interval": 0,
        "status": None,
        "active_tasks": None,
        "standby_tasks": None,
        "warmup_tasks": None,
        "endpoint_information_epoch": 0,
        "partitions_by_user_endpoint": None,
    }


def refuse_share_records(_request: Any, _version: int) -> Values:
    """ShareFetch and ShareAcknowledge."""
    return {**_OF_GROUP, "acquisition_lock_timeout": 0, "responses": (), "node_endpoints": ()}


def describe_absent_groups(request: Any, version: int) -> Values:
    """Before version 6 a group that is not there is one in the state Dead, without an error, as in Kafka."""
    says_absence = version >= _FIRST_DESCRIPTION_WITH_ABSENCE
    return {
        "groups": [
            {
                "error_code": _ABSENT if says_absence else ErrorCode.none,
                "error_message": NO_GROUPS if says_absence else None,
                "group_id": group_id,
                "group_state": "Dead",
                "protocol_type": "",
                "protocol_data": "",
                "members": (),
            }
            for group_id in request.groups
        ]
    }


def describe_absent_members(request: Any, _version: int) -> Values:
    """Consumer and share groups."""
    nothing = {
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": (),
    }
    return {"groups": [{**_ABSENT_GROUP, "group_id": group_id, **nothing} for group_id in request.group_ids]}


def describe_absent_streams(request: Any, _version: int) -> Values:
    nothing = {"group_state": "", "group_epoch": 0, "assignment_epoch": 0, "topology": None, "members": ()}
    return {"groups": [{**_ABSENT_GROUP, "group_id": group_id, **nothing} for group_id in request.group_ids]}


def delete_absent_groups(request: Any, _version: int) -> Values:
    return {
        "results": [{"group_id": group_id, "error_code": _ABSENT} for group_id in request.groups_names],
    }


def delete_absent_offsets(_request: Any, _version: int) -> Values:
    return {"error_code": _ABSENT, "topics": ()}


def describe_absent_share_offsets(request: Any, _version: int) -> Values:
    return {
        "groups": [{"group_id": group.group_id, "topics": (), **_ABSENT_GROUP} for group in request.groups]
    }


def change_absent_share_offsets(_request: Any, _version: int) -> Values:
    return {**_ABSENT_GROUP, "responses": ()}
