"""The answers to members of groups, of every kind (classic, consumer, share, streams), and to those who ask for groups.

There are none here. To ask for one is answered truly: it is not there. To join one, or to keep offsets in it, is
refused with the lack of authorization, which no client retries (`broker.apis.data_refusals` says why).
"""

from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.wire.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    describe_share_group_offsets,
    offset_commit,
    offset_fetch,
    share_group_describe,
    streams_group_describe,
)
from kquorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kquorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kquorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kquorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kquorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kquorum.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kquorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kquorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kquorum.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kquorum.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kquorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NO_GROUPS = "kquorum brokers do not coordinate groups yet"
_REFUSED = ErrorCode.group_authorization_failed
_ABSENT = ErrorCode.group_id_not_found
# From these versions on the name means what is said here.
_FIRST_JOIN_WITH_NULL_PROTOCOL = 7
_FIRST_DESCRIPTION_WITH_ABSENCE = 6
_ONLY_FETCH_WITH_ERRORS_IN_PARTITIONS = 1


def refuse_offset_commit(
    request: offset_commit.OffsetCommitRequest, _version: int
) -> offset_commit.OffsetCommitResponse:
    return offset_commit.OffsetCommitResponse(topics=tuple([_uncommitted(topic) for topic in request.topics]))


def _uncommitted(topic: offset_commit.OffsetCommitRequestTopic) -> offset_commit.OffsetCommitResponseTopic:
    return offset_commit.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            [
                offset_commit.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=_REFUSED
                )
                for partition in topic.partitions
            ]
        ),
    )


def refuse_offset_fetch(
    request: offset_fetch.OffsetFetchRequest, version: int
) -> offset_fetch.OffsetFetchResponse:
    """Version 1 has room for an error in its partitions only, version 8 and later in each group."""
    has_no_other_room = version == _ONLY_FETCH_WITH_ERRORS_IN_PARTITIONS
    return offset_fetch.OffsetFetchResponse(
        topics=tuple([_unfetched(topic) for topic in request.topics or ()]) if has_no_other_room else (),
        error_code=_REFUSED,
        groups=tuple(
            [
                offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=_REFUSED)
                for group in request.groups
            ]
        ),
    )


def _unfetched(topic: offset_fetch.OffsetFetchRequestTopic) -> offset_fetch.OffsetFetchResponseTopic:
    return offset_fetch.OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            [
                offset_fetch.OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, error_code=_REFUSED
                )
                for index in topic.partition_indexes
            ]
        ),
    )


def refuse_join_group(request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=_REFUSED,
        protocol_name=None if version >= _FIRST_JOIN_WITH_NULL_PROTOCOL else "",
        member_id=request.member_id,
    )


def refuse_sync_group(_request: SyncGroupRequest, _version: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=_REFUSED)


def refuse_heartbeat(_request: HeartbeatRequest, _version: int) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=_REFUSED)


def refuse_leave_group(_request: LeaveGroupRequest, _version: int) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=_REFUSED)


def refuse_consumer_heartbeat(
    _request: ConsumerGroupHeartbeatRequest, _version: int
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=_REFUSED, error_message=NO_GROUPS)


def refuse_share_heartbeat(
    _request: ShareGroupHeartbeatRequest, _version: int
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=_REFUSED, error_message=NO_GROUPS)


def refuse_streams_heartbeat(
    request: StreamsGroupHeartbeatRequest, _version: int
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        error_code=_REFUSED,
        error_message=NO_GROUPS,
        member_id=request.member_id,
        status=None,
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        partitions_by_user_endpoint=None,
    )


def refuse_share_fetch(_request: ShareFetchRequest, _version: int) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=_REFUSED, error_message=NO_GROUPS)


def refuse_share_acknowledge(_request: ShareAcknowledgeRequest, _version: int) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=_REFUSED, error_message=NO_GROUPS)


def describe_absent_groups(
    request: describe_groups.DescribeGroupsRequest, version: int
) -> describe_groups.DescribeGroupsResponse:
    """Before version 6 a group that is not there is one in the state Dead, without an error, as in Kafka."""
    says_absence = version >= _FIRST_DESCRIPTION_WITH_ABSENCE
    messages = messages_of_entries(NO_GROUPS if says_absence else None)
    return describe_groups.DescribeGroupsResponse(
        groups=tuple(
            [
                describe_groups.DescribedGroup(
                    error_code=_ABSENT if says_absence else ErrorCode.none,
                    error_message=next(messages),
                    group_id=group_id,
                    group_state="Dead",
                )
                for group_id in request.groups
            ]
        )
    )


def describe_absent_consumers(
    request: consumer_group_describe.ConsumerGroupDescribeRequest, _version: int
) -> consumer_group_describe.ConsumerGroupDescribeResponse:
    messages = messages_of_entries(NO_GROUPS)
    return consumer_group_describe.ConsumerGroupDescribeResponse(
        groups=tuple(
            [
                consumer_group_describe.DescribedGroup(
                    error_code=_ABSENT, error_message=next(messages), group_id=group_id
                )
                for group_id in request.group_ids
            ]
        )
    )


def describe_absent_shares(
    request: share_group_describe.ShareGroupDescribeRequest, _version: int
) -> share_group_describe.ShareGroupDescribeResponse:
    messages = messages_of_entries(NO_GROUPS)
    return share_group_describe.ShareGroupDescribeResponse(
        groups=tuple(
            [
                share_group_describe.DescribedGroup(
                    error_code=_ABSENT, error_message=next(messages), group_id=group_id
                )
                for group_id in request.group_ids
            ]
        )
    )


def describe_absent_streams(
    request: streams_group_describe.StreamsGroupDescribeRequest, _version: int
) -> streams_group_describe.StreamsGroupDescribeResponse:
    messages = messages_of_entries(NO_GROUPS)
    return streams_group_describe.StreamsGroupDescribeResponse(
        groups=tuple(
            [
                streams_group_describe.DescribedGroup(
                    error_code=_ABSENT, error_message=next(messages), group_id=group_id
                )
                for group_id in request.group_ids
            ]
        )
    )


def delete_absent_groups(
    request: delete_groups.DeleteGroupsRequest, _version: int
) -> delete_groups.DeleteGroupsResponse:
    return delete_groups.DeleteGroupsResponse(
        results=tuple(
            [
                delete_groups.DeletableGroupResult(group_id=group_id, error_code=_ABSENT)
                for group_id in request.groups_names
            ]
        )
    )


def delete_absent_offsets(_request: OffsetDeleteRequest, _version: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=_ABSENT)


def describe_absent_share_offsets(
    request: describe_share_group_offsets.DescribeShareGroupOffsetsRequest, _version: int
) -> describe_share_group_offsets.DescribeShareGroupOffsetsResponse:
    messages = messages_of_entries(NO_GROUPS)
    return describe_share_group_offsets.DescribeShareGroupOffsetsResponse(
        groups=tuple(
            [
                describe_share_group_offsets.DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, error_code=_ABSENT, error_message=next(messages)
                )
                for group in request.groups
            ]
        )
    )


def alter_absent_share_offsets(
    _request: AlterShareGroupOffsetsRequest, _version: int
) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=_ABSENT, error_message=NO_GROUPS)


def delete_absent_share_offsets(
    _request: DeleteShareGroupOffsetsRequest, _version: int
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=_ABSENT, error_message=NO_GROUPS)
