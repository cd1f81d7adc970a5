"""The controller of one node: a state machine over the committed log, and the one who decides while this node leads.

Everything happens in one thread, driven from outside: commits, leader changes, requests and time come in; records go
to the raft port, answers to the requesters.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from metadata.controller.activation import activation_records
from metadata.controller.audit import audit_record
from metadata.controller.config import ControllerConfig
from metadata.controller.context import DecisionContext
from metadata.controller.describe import describe_cluster
from metadata.controller.handlers import HANDLERS, Handler
from metadata.controller.liveness import BrokerLiveness
from metadata.controller.periodic import PERIODIC_TASKS, Schedule
from metadata.controller.refusals import refusal
from metadata.controller.replies import DeferredReplies, Waiting
from metadata.controller.requests import (
    ApiError,
    ControllerRequest,
    ControllerResult,
    Reply,
    Values,
    not_controller,
)
from metadata.controller.sweep import PartitionSweep
from metadata.controller.timeline import Publisher, Timeline
from metadata.controller.transitions import fence_records
from metadata.image.cluster import BrokerRegistration
from metadata.image.image import MetadataImage
from metadata.image.metadata_version import NO_OP_RECORD, record_version
from metadata.snapshot_loading import LoadedSnapshot
from raft.batches import LogBatch
from raft.errors import NotLeaderError, RecordBatchTooLargeError
from raft.ports import Dice, RaftPort
from wire.metadata_records.features import NoOpRecord
from wire.protocol.api_keys import ApiKey
from wire.record_frame import encode_record
from wire.schema import MetadataRecord


@dataclass(slots=True)
class _Active:
    """What only the active controller has."""

    leader_epoch: int
    liveness: BrokerLiveness
    no_op_due_ms: int | None
    schedule: Schedule
    fencing: PartitionSweep | None = None
    sweeps: deque[PartitionSweep] = field(default_factory=deque)


class Controller:
    """Implements raft.ports.StateMachine. `publishers` get each committed image with the delta that led to it."""

    def __init__(
        self,
        config: ControllerConfig,
        raft: RaftPort,
        dice: Dice,
        cluster_id: str,
        image: MetadataImage | None = None,
    ) -> None:
        self._config = config
        self._raft = raft
        self._dice = dice
        self._cluster_id = cluster_id
        self._timeline = Timeline(image)
        self._replies = DeferredReplies()
        self._active: _Active | None = None

    @property
    def is_active(self) -> bool:
        return self._active is not None

    @property
    def image(self) -> MetadataImage:
        """The newest, including what is not committed yet; on a standby the committed one."""
        return self._timeline.image

    @property
    def committed_image(self) -> MetadataImage:
        """What readers see."""
        return self._timeline.committed_image

    @property
    def publishers(self) -> list[Publisher]:
        return self._timeline.publishers

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:  # noqa: ARG002 - the port's signature
        self._timeline.commit(batches)
        self._replies.complete(self._timeline.loader.last_applied_offset)

    def handle_snapshot(self, now_ms: int, state: object) -> None:  # noqa: ARG002 - the port's signature
        assert isinstance(state, LoadedSnapshot), state
        assert self._active is None, "the active controller's state is ahead of every snapshot"
        self._timeline.handle_snapshot(state)

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:
        """Leading a new epoch begins like any other: what was proposed in an older one is not ours to answer for."""
        is_leading = leader_id == self._raft.node_id
        if self._active is not None and not (is_leading and self._active.leader_epoch == leader_epoch):
            self._renounce(leader_id)
        if is_leading and self._active is None:
            self._activate(now_ms, leader_epoch)

    def handle_time(self, now_ms: int) -> None:
        """Does one slice of what is to be done, so that nothing else is held up; the next deadline is then at once."""
        active = self._active
        if active is None:
            return
        stale = active.liveness.stale_broker(self.image.cluster.brokers.values(), now_ms)
        if stale is not None:
            self._fence_on(now_ms, active, stale)
        elif active.sweeps:
            self._sweep_on(now_ms, active)
        else:
            self._run_due_task(now_ms, active)
        if active.no_op_due_ms is not None and active.no_op_due_ms <= now_ms:
            active.no_op_due_ms = now_ms + self._config.metadata_max_idle_interval_ms
            if self._active is active and self.image.metadata_version >= NO_OP_RECORD:
                self._append_own(now_ms, (NoOpRecord(),))

    def _fence_on(self, now_ms: int, active: _Active, stale: BrokerRegistration) -> None:
        """A slice of what the broker leads and is in sync with, or at last the fence."""
        context = self._context(now_ms, active)
        if active.fencing is None or not active.fencing.concerns(stale):
            active.fencing = PartitionSweep(context, stale, is_leaving=True)
        if active.fencing.is_done:
            active.fencing = None
            active.liveness.end_controlled_shutdown(stale.id)
            self._append_own(now_ms, tuple(fence_records(context, stale)))
        else:
            self._append_own(now_ms, tuple(active.fencing.next_records(context)))

    def _sweep_on(self, now_ms: int, active: _Active) -> None:
        context, sweep = self._context(now_ms, active), active.sweeps[0]
        if sweep.is_done or not sweep.is_still_due(context):
            active.sweeps.popleft()
            return
        self._append_own(now_ms, tuple(sweep.next_records(context)))
        if sweep.is_leaving:
            active.liveness.move_shutdown_offset(sweep.broker_id, self._timeline.last_offset)

    def _run_due_task(self, now_ms: int, active: _Active) -> None:
        task = active.schedule.due_task(now_ms)
        if task is not None:
            outcome = task.run(self._context(now_ms, active))
            active.schedule.has_run(task, now_ms, has_more=outcome.has_more)
            self._append_own(now_ms, outcome.records)

    def next_deadline_ms(self) -> int | None:
        if self._active is None:
            return None
        if self._active.sweeps:
            return 0
        expiry = self._active.liveness.next_expiry_ms(self.image.cluster.brokers.values())
        deadlines = (expiry, self._active.no_op_due_ms, self._active.schedule.next_deadline_ms())
        return min((due for due in deadlines if due is not None), default=None)

    def handle_request(self, now_ms: int, request: ControllerRequest, reply: Reply) -> None:
        """`reply` is called once: at once, or when what it tells of is committed, or when leadership is lost.

        KeyError for an API that is not in SERVED_APIS: the listener is not to pass it on.
        """
        if request.api_key is ApiKey.DESCRIBE_CLUSTER:
            reply(self._describe(request))
            return
        handler = HANDLERS[request.api_key]
        active = self._active
        if active is None:
            reply(refusal(request, not_controller(self._raft.leader_id)))
        else:
            self._write(now_ms, active, handler, request, reply)

    def _write(
        self, now_ms: int, active: _Active, handler: Handler, request: ControllerRequest, reply: Reply
    ) -> None:
        try:
            result = handler(self._context(now_ms, active), request)
            self._append(now_ms, active, result, request)
            values = result.response
            if result.waits_for_log_end:
                self._answer_at(self._raft.log_end_offset - 1, request, reply, values)
                return
        except NotLeaderError as error:
            self._renounce(error.leader_id)
            reply(refusal(request, not_controller(error.leader_id)))
            return
        except ApiError as error:
            values = refusal(request, error)
        self._answer(request, reply, values)

    def _answer(self, request: ControllerRequest, reply: Reply, values: Values) -> None:
        """An answer without records waits too while anything is uncommitted: it may tell of that."""
        if self._timeline.has_uncommitted:
            self._answer_at(self._timeline.last_offset, request, reply, values)
        else:
            reply(values)

    def _answer_at(self, offset: int, request: ControllerRequest, reply: Reply, values: Values) -> None:
        if offset <= self._timeline.loader.last_applied_offset:
            reply(values)
        else:
            self._replies.add(Waiting(offset, request, reply, values))

    def _append(
        self, now_ms: int, active: _Active, result: ControllerResult, request: ControllerRequest
    ) -> None:
        room = self._config.max_records_per_batch - (result.audit_reason is not None)
        if result.is_atomic and len(result.records) > room:
            reason = f"The request makes {len(result.records)} records; {room} fit one batch. Ask for less at a time."
            raise ApiError(ErrorCode.policy_violation, reason)
        for start in range(0, len(result.records), room):
            chunk = self._with_note(result.records[start : start + room], result.audit_reason, request)
            self._append_batch(now_ms, active, chunk)
        if result.sweep is not None:
            active.sweeps.append(result.sweep)
        if result.after_append is not None:
            result.after_append(self._timeline.last_offset)

    def _with_note(
        self, records: tuple[MetadataRecord, ...], reason: str | None, request: ControllerRequest
    ) -> tuple[MetadataRecord, ...]:
        if reason is None or self.image.metadata_version < NO_OP_RECORD:
            return records
        note = audit_record(
            request,
            reason=reason,
            previous_note_hash=self._timeline.derived.last_note_hash,
            covered_records=len(records),
        )
        return (note, *records)

    def _append_batch(self, now_ms: int, active: _Active, records: tuple[MetadataRecord, ...]) -> None:
        """Replayed first: what cannot be replayed must never get into the log."""
        proposed = self._timeline.decide(records, self._raft.log_end_offset)
        metadata_version = max(self.image.metadata_version, proposed.image.metadata_version)
        values = [encode_record(record, record_version(record, metadata_version)) for record in records]
        try:
            last_offset = self._raft.propose(now_ms, active.leader_epoch, values)
        except RecordBatchTooLargeError as error:
            raise ApiError(ErrorCode.policy_violation, str(error)) from None
        assert last_offset == proposed.end_offset, (
            f"records stand at {last_offset}, not {proposed.end_offset}"
        )
        self._timeline.propose(proposed)

    def _append_own(self, now_ms: int, records: tuple[MetadataRecord, ...]) -> None:
        """Records that nobody asked for."""
        active = self._active
        assert active is not None, "only the active controller writes"
        try:
            for start in range(0, len(records), self._config.max_records_per_batch):
                chunk = records[start : start + self._config.max_records_per_batch]
                self._append_batch(now_ms, active, chunk)
        except NotLeaderError as error:
            self._renounce(error.leader_id)

    def _activate(self, now_ms: int, leader_epoch: int) -> None:
        assert not self._timeline.has_uncommitted, "a standby proposes nothing"
        interval_ms = self._config.metadata_max_idle_interval_ms
        session_timeout_ms = self._config.broker_session_timeout_ms
        self._active = _Active(
            leader_epoch=leader_epoch,
            liveness=BrokerLiveness(now_ms, session_timeout_ms, self.image.cluster.brokers),
            no_op_due_ms=now_ms + interval_ms if interval_ms > 0 else None,
            schedule=Schedule(PERIODIC_TASKS, self._config, now_ms),
        )
        records = activation_records(self._config, self._timeline.loader)
        if records:
            self._append_own(now_ms, records)

    def _renounce(self, leader_id: int) -> None:
        self._active = None
        self._timeline.revert()
        self._replies.fail(not_controller(leader_id))

    def _describe(self, request: ControllerRequest) -> Values:
        try:
            return describe_cluster(self.committed_image, self._cluster_id, self._raft.leader_id, request)
        except ApiError as error:
            return refusal(request, error)

    def _context(self, now_ms: int, active: _Active) -> DecisionContext:
        derived = self._timeline.derived
        return DecisionContext(
            now_ms=now_ms,
            node_id=self._raft.node_id,
            cluster_id=self._cluster_id,
            image=self.image,
            next_offset=self._raft.log_end_offset,
            config=self._config,
            dice=self._dice,
            liveness=active.liveness,
            registration_offsets=derived.registration_offsets,
            upgrade_kraft_version=lambda level, validate_only: self._raft.upgrade_kraft_version(
                now_ms, active.leader_epoch, level, validate_only=validate_only
            ),
        )
