"""The answers to members of share and streams groups (KIP-932, KIP-1071), and to clients that ask for such a group.

There are none here: a broker of Kafka answers the same while the feature is off. To ask for one is answered truly: it
is not there. To join one is refused with UNSUPPORTED_VERSION, which clients take as final.
"""

from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.wire.messages import (
    describe_share_group_offsets,
    share_group_describe,
    streams_group_describe,
)
from kquorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kquorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
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

NO_GROUPS = "kquorum brokers coordinate no share groups and no streams groups"
_REFUSED = ErrorCode.unsupported_version
_ABSENT = ErrorCode.group_id_not_found


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
