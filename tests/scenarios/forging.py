"""Requests and answers that no replica here would have made, from the words of a script."""

from collections.abc import Callable

from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    ChangeVotersResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    Request,
    Response,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.voters import VersionRange
from kquorum.wire.messages.error_codes import ErrorCode
from tests.scenarios.arguments import Arguments, read_key, read_place, read_records
from tests.scenarios.errors import ScenarioError
from tests.scenarios.host import CLUSTER_ID, endpoint_of
from tests.scenarios.wording import kind_of


def cluster_id(arguments: Arguments) -> str | None:
    """`cluster=none` leaves it out, `cluster=empty` sends the empty string."""
    text = arguments.option("cluster", CLUSTER_ID)
    return {"none": None, "empty": ""}.get(text, text)


def _vote(arguments: Arguments, node_id: int, *, pre_vote: bool = False) -> Request:
    place = read_place(arguments.option("log", "0@0"))
    return VoteRequest(
        cluster_id=cluster_id(arguments),
        replica_epoch=int(arguments.option("epoch", "1")),
        candidate=read_key(arguments.option("from", "9")),
        voter=read_key(arguments.option("voter", str(node_id))),
        last_offset=place.offset,
        last_offset_epoch=place.epoch,
        pre_vote=pre_vote,
    )


def _pre_vote(arguments: Arguments, node_id: int) -> Request:
    return _vote(arguments, node_id, pre_vote=True)


def _begin(arguments: Arguments, node_id: int) -> Request:
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id(arguments),
        leader_id=int(arguments.option("from", "9")),
        leader_epoch=int(arguments.option("epoch", "1")),
        voter=read_key(arguments.option("voter", str(node_id))),
    )


def _end(arguments: Arguments, node_id: int) -> Request:
    preferred = arguments.option("preferred", "-")
    return EndQuorumEpochRequest(
        cluster_id=cluster_id(arguments),
        leader_id=int(arguments.option("from", "9")),
        leader_epoch=int(arguments.option("epoch", "1")),
        preferred_candidates=tuple(read_key(key) for key in preferred.split(",") if key != "-"),
    )


def _fetch(arguments: Arguments, node_id: int) -> Request:
    place = read_place(arguments.option("at", "0@0"))
    known = arguments.maybe("hw")
    return FetchRequest(
        cluster_id=cluster_id(arguments),
        replica=read_key(arguments.option("from", "9")),
        current_leader_epoch=int(arguments.option("epoch", "1")),
        fetch_offset=place.offset,
        last_fetched_epoch=place.epoch,
        max_wait_ms=int(arguments.option("wait", "500")),
        max_bytes=int(arguments.option("bytes", "1000000")),
        high_watermark=None if known is None else int(known),
    )


def _fetch_snapshot(arguments: Arguments, node_id: int) -> Request:
    return FetchSnapshotRequest(
        cluster_id=cluster_id(arguments),
        replica=read_key(arguments.option("from", "9")),
        current_leader_epoch=int(arguments.option("epoch", "1")),
        snapshot_id=read_place(arguments.option("snapshot", "0@0")),
        position=int(arguments.option("position", "0")),
        max_bytes=int(arguments.option("bytes", "1000000")),
    )


def _describe(arguments: Arguments, node_id: int) -> Request:
    return DescribeQuorumRequest()


def _add_voter(arguments: Arguments, node_id: int) -> Request:
    voter = read_key(arguments.option("voter", "9"))
    return AddRaftVoterRequest(
        cluster_id=cluster_id(arguments),
        timeout_ms=int(arguments.option("timeout", "2000")),
        voter=voter,
        endpoints=_endpoints(arguments, f"host{voter.id}"),
        ack_when_committed=arguments.option("wait", "yes") == "yes",
    )


def _remove_voter(arguments: Arguments, node_id: int) -> Request:
    voter = read_key(arguments.option("voter", "9"))
    return RemoveRaftVoterRequest(cluster_id=cluster_id(arguments), voter=voter)


def _update_voter(arguments: Arguments, node_id: int) -> Request:
    voter = read_key(arguments.option("voter", "9"))
    lowest, _, highest = arguments.option("versions", "0-1").partition("-")
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id(arguments),
        current_leader_epoch=int(arguments.option("epoch", "1")),
        voter=voter,
        endpoints=_endpoints(arguments, f"host{voter.id}"),
        kraft_versions=VersionRange(int(lowest), int(highest)),
    )


def _endpoints(arguments: Arguments, default: str) -> tuple:  # type: ignore[type-arg]
    host = arguments.option("endpoint", default)
    return () if host == "none" else (endpoint_of(host),)


REQUESTS: dict[str, Callable[[Arguments, int], Request]] = {
    "vote": _vote,
    "prevote": _pre_vote,
    "begin": _begin,
    "end": _end,
    "fetch": _fetch,
    "fetchsnapshot": _fetch_snapshot,
    "describe": _describe,
    "add-voter": _add_voter,
    "remove-voter": _remove_voter,
    "update-voter": _update_voter,
}


def forge_request(kind: str, arguments: Arguments, node_id: int) -> Request:
    """A request to `node_id`; its cluster id and voter key are right unless the script says otherwise."""
    if kind not in REQUESTS:
        raise ScenarioError(f"unknown request '{kind}'; known: {', '.join(REQUESTS)}")
    return REQUESTS[kind](arguments, node_id)


# Answers


def forge_response(request: Request, target: int, arguments: Arguments) -> Response:
    """An answer to `request` as from node `target`, which by default leads the epoch that the request is in."""
    error = _error(arguments.option("error", "none"))
    if isinstance(request, ApiVersionsRequest):
        return _api_versions(error, arguments)
    is_top_level = arguments.option("top-level", "no") == "yes"
    leader_id = int(arguments.option("leader", str(target)))
    leader_epoch = int(arguments.option("epoch", str(_epoch_of(request))))
    match request:
        case VoteRequest():
            granted = arguments.option("granted", "no") == "yes"
            return VoteResponse(
                error=error,
                is_top_level=is_top_level,
                leader_id=leader_id,
                leader_epoch=leader_epoch,
                vote_granted=granted,
            )
        case BeginQuorumEpochRequest():
            return BeginQuorumEpochResponse(
                error=error, is_top_level=is_top_level, leader_id=leader_id, leader_epoch=leader_epoch
            )
        case EndQuorumEpochRequest():
            return EndQuorumEpochResponse(
                error=error, is_top_level=is_top_level, leader_id=leader_id, leader_epoch=leader_epoch
            )
        case FetchRequest():
            return _fetched(error, is_top_level, leader_id, leader_epoch, arguments)
        case FetchSnapshotRequest():
            return _fetched_snapshot(request, error, is_top_level, leader_id, leader_epoch, arguments)
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() | UpdateRaftVoterRequest():
            return ChangeVotersResponse(
                error=error, is_top_level=is_top_level, leader_id=leader_id, leader_epoch=leader_epoch
            )
        case _:
            raise ScenarioError(f"answers to {kind_of(request)} cannot be forged")


def _fetched(
    error: ErrorCode, is_top_level: bool, leader_id: int, leader_epoch: int, arguments: Arguments
) -> FetchResponse:
    diverging, snapshot = arguments.maybe("diverging"), arguments.maybe("snapshot")
    records = arguments.maybe("records")
    return FetchResponse(
        error=error,
        is_top_level=is_top_level,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        high_watermark=int(arguments.option("hw", "-1")),
        log_start_offset=0,
        diverging=None if diverging is None else read_place(diverging),
        snapshot_id=None if snapshot is None else read_place(snapshot),
        records=b"" if records is None else read_records(records),
    )


def _fetched_snapshot(
    request: FetchSnapshotRequest,
    error: ErrorCode,
    is_top_level: bool,
    leader_id: int,
    leader_epoch: int,
    arguments: Arguments,
) -> FetchSnapshotResponse:
    """A piece of what was asked for, unless the script says of what, from where, or how much."""
    asked = f"{request.snapshot_id.offset}@{request.snapshot_id.epoch}"
    data = arguments.option("data", "").encode()
    return FetchSnapshotResponse(
        error=error,
        is_top_level=is_top_level,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        snapshot_id=read_place(arguments.option("snapshot", asked)),
        size=int(arguments.option("size", str(request.position + len(data)))),
        position=int(arguments.option("position", str(request.position))),
        data=data,
    )


def _api_versions(error: ErrorCode, arguments: Arguments) -> ApiVersionsResponse:
    lowest, dash, highest = arguments.option("versions", "0-1").partition("-")
    versions = VersionRange(int(lowest), int(highest)) if dash and lowest else None
    return ApiVersionsResponse(error=error, kraft_versions=versions)


def _epoch_of(request: Request) -> int:
    match request:
        case VoteRequest():
            return request.replica_epoch
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return request.leader_epoch
        case FetchRequest() | FetchSnapshotRequest() | UpdateRaftVoterRequest():
            return request.current_leader_epoch
        case _:
            return -1


def _error(name: str) -> ErrorCode:
    try:
        return ErrorCode[name.lower()]
    except KeyError as error:
        raise ScenarioError(f"unknown error '{name}'") from error
