"""Carries a recovery out: records in the best folder that make its node the only voter, and marks in the other folders.

The records are those of a leader's first batches: the change of the leader, then kraft.version and the voters, then a
note of who recovered the quorum and why. They stand in an epoch `EPOCH_JUMP` above every epoch that is known: a voter
that was lost cannot have used it, and one that comes back sees by it that it was left behind (`node.fence`).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from kquorum.cli.commands.log.files import the_log, within_its_end
from kquorum.cli.commands.log.states import Moment, State, state_at
from kquorum.cli.commands.recover.survey import Plan, Survivor
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.metadata.image.metadata_version import DYNAMIC_QUORUM, NO_OP_RECORD
from kquorum.node.fence import EPOCH_JUMP, FILE_NAME, fence
from kquorum.node.formatting import new_uuid
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import (
    SUPPORTED_KRAFT_VERSIONS,
    Endpoint,
    ReplicaKey,
    Voter,
    VoterSet,
    voter_set_of,
    voters_record,
)
from kquorum.storage.folder_lock import FolderLock
from kquorum.storage.meta_properties import open_meta_properties
from kquorum.wire.audit_note import AUDIT_NOTE_TAG, NO_NOTE_HASH, note_hash
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    encode_control_record,
)
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record

_LAST_EPOCH: Final = 2**31 - 1
CLIENT_ID: Final = "kquorum-recover"
WITHOUT_MAJORITY: Final = "recovered without a majority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was done: the records of `epoch` begin at `offset`, and the state before them has `state_hash`."""

    node_id: int
    folder: Path
    epoch: int
    offset: int
    end_offset: int
    state_hash: str
    is_dynamic: bool
    fenced: tuple[Path, ...]


def recover(
    plan: Plan, endpoints: Sequence[Endpoint], reason: str | None, *, how: str = WITHOUT_MAJORITY
) -> Recovered:
    """`how` begins the text of the audit note. Raises CliError before anything is written, FolderLocked while a node
    runs on one of the folders."""
    best = plan.best
    epoch = plan.highest_epoch + EPOCH_JUMP
    if epoch > _LAST_EPOCH - EPOCH_JUMP:
        raise CliError(
            f"epoch {plan.highest_epoch} leaves no room for a recovery: see `The epochs are used up` in the "
            "documentation",
            status=ExitStatus.DAMAGED_INPUT,
        )
    is_dynamic = best.metadata_version >= DYNAMIC_QUORUM
    if is_dynamic and not endpoints:
        raise CliError(
            f"the address of node {best.node_id} goes into the log: give --config FILE with the node, or --listener",
            status=ExitStatus.USAGE,
        )
    locks = [FolderLock(each.folder) for each in plan.survivors]
    try:
        log = within_its_end(the_log(best.folder / FOLDER_NAME), lambda _: None, keeps_newest=True)
        state = state_at(log, Moment(), lambda _: None)
        if (state.offset, state.epoch) != (best.end_offset, best.epoch):
            raise CliError(
                f"{best.folder} has changed since it was read: plan again", status=ExitStatus.FAILED
            )
        fenced = _fence_others(plan, epoch)
        end_offset = _write(
            best, state, epoch, endpoints if is_dynamic else (), _note(plan, state, epoch, reason, how)
        )
    finally:
        for lock in locks:
            lock.release()
    return Recovered(
        node_id=best.node_id,
        folder=best.folder,
        epoch=epoch,
        offset=best.end_offset,
        end_offset=end_offset,
        state_hash=best.state_hash,
        is_dynamic=is_dynamic,
        fenced=fenced,
    )


def _fence_others(plan: Plan, epoch: int) -> tuple[Path, ...]:
    """Before the best folder can lead: the other voters must not begin beside it."""
    others = [each for each in plan.survivors if each is not plan.best and set(each.names) & set(plan.voters)]
    for other in others:
        fence(
            other.folder,
            f"the quorum was recovered from {plan.best.folder} (node {plan.best.node_id}, epoch {epoch}) without it",
        )
    return tuple(each.folder for each in others)


def _write(
    best: Survivor, state: State, epoch: int, endpoints: Sequence[Endpoint], note: bytes | None
) -> int:
    """The log first, and durably; then the election state. A crash in between leaves a log of the new epoch, which the
    node takes for the newest at its start."""
    folder = best.folder / FOLDER_NAME
    now_ms = time.time_ns() // 1_000_000
    log = FileLog(folder)
    try:
        if log.end_offset != state.offset:
            raise CliError(
                f"the log of {best.folder} ends at offset {log.end_offset}, and its state at {state.offset}: "
                "`kquorum log verify` says more",
                status=ExitStatus.DAMAGED_INPUT,
            )
        batches = _batches(best, state, epoch, endpoints, note, now_ms)
        log.append(batches)
        log.flush(durably=True)
        end_offset = log.end_offset
    finally:
        log.close()
    kraft_version = 1 if endpoints else state.quorum.kraft_version
    voter_ids = (best.node_id,)
    QuorumStateFile(folder, voter_ids, kraft_version).write(QuorumState(leader_epoch=epoch))
    return end_offset


def _batches(
    best: Survivor, state: State, epoch: int, endpoints: Sequence[Endpoint], note: bytes | None, now_ms: int
) -> list[LogBatch]:
    offset = state.offset
    voter = LeaderChangeVoter(voter_id=best.node_id)
    first = LeaderChangeMessage(leader_id=best.node_id, voters=(voter,), granting_voters=(voter,))
    batches = [build_batch(offset, epoch, now_ms, [encode_control_record(first)], control=True)]
    if endpoints:
        key = ReplicaKey(best.node_id, _directory_id(best, now_ms))
        controls: list[list[ControlRecord]] = [
            [voters_record(voters)]
            for voters in _voter_sets(state, Voter(key, tuple(endpoints), SUPPORTED_KRAFT_VERSIONS))
        ]
        if state.quorum.kraft_version < 1:
            controls[0].insert(0, KRaftVersionRecord(k_raft_version=1))
        for group in controls:
            records = [encode_control_record(control) for control in group]
            batches.append(build_batch(batches[-1].next_offset, epoch, now_ms, records, control=True))
    if note is not None:
        # A note covers what follows it, by the rules of the chain: here a record that changes nothing.
        noted = (NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)), NoOpRecord())
        batches.append(
            build_batch(
                batches[-1].next_offset, epoch, now_ms, [(None, encode_record(each)) for each in noted]
            )
        )
    return batches


def _voter_sets(state: State, own: Voter) -> list[VoterSet]:
    """From the voters of the log to this one alone. Each set differs from the one before by one voter at most, as
    readers of the log expect it (KIP-853)."""
    known = None if state.quorum.kraft_version < 1 else state.quorum.voters
    others = [] if known is None else [voter for voter in voter_set_of(known) if voter.key != own.key]
    # The folder that the same node had before goes first: a set names each node once.
    others.sort(key=lambda voter: voter.key.id != own.key.id)
    return [VoterSet.of(own, *others[count:]) for count in range(1, len(others) + 1)] or [VoterSet.of(own)]


def _directory_id(best: Survivor, now_ms: int) -> UUID:
    """A folder that was formatted before Kafka 3.7 gets an id now."""
    properties = open_meta_properties(
        best.folder,
        cluster_id=best.cluster_id,
        node_id=best.node_id,
        new_directory_id=new_uuid(),
        now_ms=now_ms,
    )
    assert properties.directory_id is not None, f"{best.folder} was opened without being given a directory id"
    return properties.directory_id


def _note(plan: Plan, state: State, epoch: int, reason: str | None, how: str) -> bytes | None:
    """None where the metadata.version has no record that may carry it, or a transaction is open, in which it would
    stand."""
    if state.image.metadata_version < NO_OP_RECORD or state.transaction_start_offset is not None:
        return None
    last = state.last_audit_note
    note = AuditNote(
        client_id=CLIENT_ID,
        api_key=int(ApiKey.REMOVE_RAFT_VOTER),
        reason=(
            f"{how} from node {plan.best.node_id} (directory {plan.best.directory_id}) at offset "
            f"{plan.best.end_offset}, epoch {plan.best.epoch}, state {plan.best.state_hash}; epoch {epoch} begins "
            f"here; the voters were {', '.join(plan.voters)}; lost: {', '.join(plan.lost_voters) or 'none'}"
        ),
        operator_reason=reason or "",
        previous_note_hash=NO_NOTE_HASH if last is None else note_hash(last),
        covered_records=1,
    )
    return note.SerializeToString(deterministic=True)


def check_can_recover(plan: Plan) -> None:
    """Raises CliError for what `recover run` refuses."""
    if plan.has_majority:
        ids = ", ".join(str(each.node_id) for each in plan.left)
        raise CliError(
            f"a majority of the voters is left ({ids}; {plan.majority} of {len(plan.voters)} are needed): start "
            "these nodes, "
            "and replace the others one by one. A recovery would give up what they may have acknowledged",
            status=ExitStatus.FOLDER_REFUSED,
        )
    fenced = [each for each in plan.survivors if (each.folder / FILE_NAME).exists()]
    if plan.best in fenced:
        raise CliError(
            f"{plan.best.folder} is fenced: its quorum was recovered from another folder. Start that node instead",
            status=ExitStatus.FOLDER_REFUSED,
        )
