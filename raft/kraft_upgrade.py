"""From static voters to dynamic ones: finalising kraft.version 1 (KIP-853; kraft-semantics A11.5)."""

from raft.quorum_records import voters_record
from raft.reconfiguration import append_quorum_records
from raft.replica import Replica
from raft.roles import Leader
from raft.voters import SUPPORTED_KRAFT_VERSIONS, ReplicaKey, Voter, VoterSet
from wire.control_records import KRaftVersionRecord


def upgrade_kraft_version(
    replica: Replica, leader: Leader, now_ms: int, kraft_version: int, *, validate_only: bool
) -> str | None:
    """Finalise a higher kraft.version with the voters as they said they are (A11.5); answers why not, or None."""
    history = replica.voter_history
    if kraft_version == history.kraft_version:
        return None
    if not SUPPORTED_KRAFT_VERSIONS.includes(kraft_version):
        return f"kraft.version {kraft_version} is not supported; 0 and 1 are"
    if kraft_version < history.kraft_version:
        return f"kraft.version is {history.kraft_version} and cannot go back to {kraft_version}"
    is_busy = leader.change is not None or leader.transfer is not None
    if is_busy or replica.high_watermark <= leader.epoch_start_offset:
        return "the leader has not committed anything in its epoch yet, changes the voters or hands over; try again"
    voters = _reported_voters(replica, leader)
    for voter_id in replica.voters.ids:
        if voter_id not in voters:
            return f"node {voter_id} has not told the leader its directory id and listeners; is it running?"
        if not voters[voter_id].kraft_versions.includes(kraft_version):
            return f"node {voter_id} does not support kraft.version {kraft_version}"
    if not validate_only:
        chosen = VoterSet.of(*(voters[voter_id] for voter_id in replica.voters.ids))
        records = (KRaftVersionRecord(k_raft_version=kraft_version), voters_record(chosen))
        rename_progress(leader, chosen)
        append_quorum_records(replica, now_ms, records)
    return None


def _reported_voters(replica: Replica, leader: Leader) -> dict[int, Voter]:
    own = {replica.config.node_id: replica.own_entry} if replica.config.endpoints else {}
    return leader.reported_voters | own


def rename_progress(leader: Leader, voters: VoterSet) -> None:
    """Voters that were known by id alone get their full keys; what the leader knows of them stays."""
    for voter in voters:
        known = leader.progress.pop(ReplicaKey(voter.key.id), None)
        if known is not None:
            leader.progress[voter.key] = known
