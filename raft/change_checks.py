"""What may stand against a change of the voters, in Kafka's order (kraft-semantics A11.2)."""

from kio.schema.errors import ErrorCode

from raft.messages import ChangeVotersRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest
from raft.replica import Replica
from raft.roles import Leader
from raft.voters import ZERO_DIRECTORY

# Kafka's error code, and why in words.
Refusal = tuple[ErrorCode, str]


def not_leader(replica: Replica, request: ChangeVotersRequest) -> Refusal | None:
    if isinstance(request, UpdateRaftVoterRequest) and request.current_leader_epoch != replica.epoch:
        is_old = request.current_leader_epoch < replica.epoch
        error = ErrorCode.fenced_leader_epoch if is_old else ErrorCode.unknown_leader_epoch
        return (
            error,
            f"the request is for epoch {request.current_leader_epoch}, this is epoch {replica.epoch}",
        )
    if not isinstance(replica.role, Leader):
        return ErrorCode.not_leader_or_follower, f"node {replica.config.node_id} does not lead the quorum"
    if replica.is_shutting_down:
        return ErrorCode.broker_not_available, f"node {replica.config.node_id} is shutting down"
    return None


def malformed(replica: Replica, request: ChangeVotersRequest) -> Refusal | None:
    key = request.voter
    if key.id < 0 or key.directory_id == ZERO_DIRECTORY:
        return (
            ErrorCode.invalid_request,
            f"voter {key.id} must come with the directory id of its metadata folder",
        )
    if isinstance(request, RemoveRaftVoterRequest):
        return None
    own = replica.config.endpoints
    if own and own[0].listener not in [endpoint.listener for endpoint in request.endpoints]:
        return (
            ErrorCode.invalid_request,
            f"voter {key.id} must name where its listener {own[0].listener} is reached",
        )
    if isinstance(request, UpdateRaftVoterRequest):
        versions = request.kraft_versions
        if versions.lowest < 0 or versions.highest < versions.lowest:
            return (
                ErrorCode.invalid_request,
                f"{versions.lowest} to {versions.highest} is no range of kraft.version",
            )
    return None


def change_in_the_way(replica: Replica, leader: Leader) -> Refusal | None:
    not_now = ErrorCode.request_timed_out
    history = replica.voter_history
    if leader.change is not None:
        return not_now, "another change of the voters is under way; one is made at a time"
    if leader.transfer is not None:
        return not_now, f"leadership is being transferred to node {leader.transfer.target_id}"
    if replica.high_watermark <= leader.epoch_start_offset:
        return not_now, f"the leader has not committed anything in its epoch {replica.epoch} yet"
    if history.kraft_version == 0:
        return (
            ErrorCode.unsupported_version,
            "kraft.version is 0: the voters are the configuration's; upgrade it to 1",
        )
    if history.voters_offset >= replica.high_watermark:
        return not_now, f"the voters at offset {history.voters_offset} are not committed yet"
    return None
