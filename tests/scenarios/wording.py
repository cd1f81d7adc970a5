"""Messages, batches and keys as the recorded output shows them, each on one line."""

from uuid import UUID

from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    ChangeVotersResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    ReplicaStatus,
    Request,
    Response,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import KRaftVersionAt, ReplicaKey, Voter, VotersAt, VoterSet, quorum_records
from kquorum.wire.control_records import LeaderChangeMessage, decode_control_record_lenient
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from kquorum.wire.messages.error_codes import ErrorCode

KINDS: dict[type[Request], str] = {
    VoteRequest: "Vote",
    BeginQuorumEpochRequest: "BeginQuorumEpoch",
    EndQuorumEpochRequest: "EndQuorumEpoch",
    FetchRequest: "Fetch",
    FetchSnapshotRequest: "FetchSnapshot",
    DescribeQuorumRequest: "DescribeQuorum",
    AddRaftVoterRequest: "AddRaftVoter",
    RemoveRaftVoterRequest: "RemoveRaftVoter",
    UpdateRaftVoterRequest: "UpdateRaftVoter",
    ApiVersionsRequest: "ApiVersions",
    TransferLeadershipRequest: "TransferLeadership",
}


def kind_of(request: Request) -> str:
    if isinstance(request, VoteRequest) and request.pre_vote:
        return "PreVote"
    return KINDS[type(request)]


def key_text(key: ReplicaKey) -> str:
    """The node id; with its directory when that is not the one which this node was first given."""
    usual = key.directory_id in (UUID(int=0), UUID(int=max(0, key.id)))
    return str(key.id) if usual else f"{key.id}/{key.directory_id.int}"


def id_text(node_id: int) -> str:
    return "-" if node_id < 0 else str(node_id)


def at_text(place: OffsetAndEpoch) -> str:
    """An end offset and the epoch of the record before it."""
    return f"{place.offset}@{place.epoch}"


def voters_text(voters: VoterSet) -> str:
    return ",".join(map(_voter_text, voters)) or "-"


def _voter_text(voter: Voter) -> str:
    """Its key, and where it listens when that is not where it listened first."""
    hosts = ",".join(endpoint.host for endpoint in voter.endpoints)
    moved = "" if hosts in ("", f"host{voter.key.id}") else f"({hosts})"
    return f"{key_text(voter.key)}{moved}"


def state_text(state: QuorumState) -> str:
    voted = "-" if state.voted is None else key_text(state.voted)
    return f"epoch={state.leader_epoch} leader={id_text(state.leader_id)} voted={voted}"


def request_text(request: Request) -> str:
    details = _request_details(request)
    return f"{kind_of(request)} {details}".rstrip()


def _request_details(request: Request) -> str:
    match request:
        case VoteRequest():
            return f"epoch={request.replica_epoch} log={request.last_offset}@{request.last_offset_epoch}"
        case BeginQuorumEpochRequest():
            return f"epoch={request.leader_epoch}"
        case EndQuorumEpochRequest():
            preferred = ",".join(key_text(key) for key in request.preferred_candidates) or "-"
            return f"epoch={request.leader_epoch} preferred={preferred}"
        case FetchRequest():
            place = f"{request.fetch_offset}@{request.last_fetched_epoch}"
            known = "" if request.high_watermark is None else f" hw={id_text(request.high_watermark)}"
            return f"epoch={request.current_leader_epoch} at={place}{known}"
        case FetchSnapshotRequest():
            place = at_text(request.snapshot_id)
            return f"epoch={request.current_leader_epoch} snapshot={place} from={request.position}"
        case AddRaftVoterRequest():
            waits = "" if request.ack_when_committed else " without waiting for the commit"
            return f"voter={key_text(request.voter)}{waits}"
        case RemoveRaftVoterRequest():
            return f"voter={key_text(request.voter)}"
        case UpdateRaftVoterRequest():
            hosts = ",".join(endpoint.host for endpoint in request.endpoints)
            return f"epoch={request.current_leader_epoch} voter={key_text(request.voter)} endpoints={hosts}"
        case TransferLeadershipRequest():
            return f"target={request.target_id}"
        case _:
            return ""


def response_text(request: Request, response: Response) -> str:
    words = [f"{kind_of(request)}Reply"]
    if response.error is not ErrorCode.none:
        words.append(response.error.name.upper())
    words.extend(_response_details(response))
    if not isinstance(response, ApiVersionsResponse | TransferLeadershipResponse) and not _is_bare(response):
        words.append(f"epoch={id_text(response.leader_epoch)} leader={id_text(response.leader_id)}")
    return " ".join(words)


def _is_bare(response: Response) -> bool:
    """Errors outside the partition say nothing of epoch and leader."""
    return (
        not isinstance(response, ApiVersionsResponse | TransferLeadershipResponse) and response.is_top_level
    )


def _response_details(response: Response) -> list[str]:
    match response:
        case VoteResponse() if response.error is ErrorCode.none:
            return ["granted" if response.vote_granted else "refused"]
        case FetchResponse() if response.error is ErrorCode.none:
            return [*_fetched(response), f"hw={id_text(response.high_watermark)}"]
        case FetchSnapshotResponse() if response.error is ErrorCode.none and isinstance(response.data, bytes):
            return [f"{len(response.data)} bytes of {response.size}"]
        case DescribeQuorumResponse() if response.error is ErrorCode.none:
            voters = " ".join(_status_text(status) for status in response.current_voters)
            observers = " ".join(_status_text(status) for status in response.observers) or "-"
            return [f"hw={id_text(response.high_watermark)} voters: {voters}; observers: {observers};"]
        case ChangeVotersResponse() | TransferLeadershipResponse():
            return ["done"] if response.error is ErrorCode.none else [f"({response.message})"]
        case ApiVersionsResponse():
            versions = response.kraft_versions
            return ["-" if versions is None else f"kraft.version={versions.lowest}-{versions.highest}"]
        case _:
            return []


def _status_text(status: ReplicaStatus) -> str:
    return f"{status.replica_id}=[end {id_text(status.log_end_offset)}]"


def _fetched(response: FetchResponse) -> list[str]:
    if response.diverging is not None:
        return [f"diverging={at_text(response.diverging)}"]
    if response.snapshot_id is not None:
        return [f"snapshot={at_text(response.snapshot_id)}"]
    assert isinstance(response.records, bytes)
    batches = parse_batches(response.records)
    if not response.records:
        return ["nothing"]
    if not batches:
        return [f"garbage ({len(response.records)} bytes)"]
    return [f"records {batches[0].base_offset}-{batches[-1].last_offset}"]


def batch_text(batch: LogBatch) -> str:
    """`offset@epoch content` of every record."""
    texts = _control_texts(batch) if batch.is_control else _data_texts(batch)
    return " | ".join(
        f"{record.offset}@{batch.leader_epoch} {text}"
        for record, text in zip(batch.records, texts, strict=True)
    )


def _data_texts(batch: LogBatch) -> list[str]:
    return [(record.value or b"").decode(errors="replace") for record in batch.records]


def _control_texts(batch: LogBatch) -> list[str]:
    about_quorum = {(type(found), found.offset): found for found in quorum_records(batch)}
    texts = []
    for record in batch.records:
        decoded = decode_control_record_lenient(record.key, record.value).record
        voters = about_quorum.get((VotersAt, record.offset))
        version = about_quorum.get((KRaftVersionAt, record.offset))
        if isinstance(decoded, LeaderChangeMessage):
            granted = ",".join(str(voter.voter_id) for voter in decoded.granting_voters)
            texts.append(f"LeaderChange({decoded.leader_id}, votes of {granted})")
        elif isinstance(voters, VotersAt):
            texts.append(f"Voters({voters_text(voters.voters)})")
        elif isinstance(version, KRaftVersionAt):
            texts.append(f"KRaftVersion({version.kraft_version})")
        else:
            texts.append(type(decoded).__name__)
    return texts
