"""The controller of one node: a state machine over the committed log, which decides on requests while this node leads.

Everything happens in one thread, driven from outside: commits, leader changes, requests and time come in; records go
to the raft port, answers to the requesters.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquorum.metadata.controller.brokers.liveness import BrokerLiveness, Contact
from kquorum.metadata.controller.brokers.state_records import fence_record
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.divided_requests import DividedRequest, divided
from kquorum.metadata.controller.log_writer import LogWriter
from kquorum.metadata.controller.mutation_quotas import Buckets, MutationCharges, MutationQuotas
from kquorum.metadata.controller.partitions.batched_update import (
    BatchedPartitionUpdate,
    BrokerRemoval,
    Departure,
)
from kquorum.metadata.controller.partitions.broker_movement import Movement, counted_on
from kquorum.metadata.controller.partitions.change_batch import PartitionChangeBatch, whole_run
from kquorum.metadata.controller.partitions.elect_leaders import (
    CLEAN_ELECTION,
    LEADER_BALANCING,
    UNCLEAN_ELECTION,
)
from kquorum.metadata.controller.periodic import PeriodicTask, Schedule
from kquorum.metadata.controller.quorum.activation import activation_records
from kquorum.metadata.controller.quorum.describe_cluster import describe_cluster
from kquorum.metadata.controller.quorum.features import check_levels
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import (
    ApiError,
    ControllerRequest,
    Reply,
    asks_for_nothing,
    check_deadline,
    not_controller,
    throttled,
)
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.security.delegation_tokens import EXPIRY_SWEEP
from kquorum.metadata.controller.timeline import Publisher, Timeline, plain_records
from kquorum.metadata.controller_apis import HANDLERS, READERS, Handler
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import NO_OP_RECORD
from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.ports import RaftPort, RandomSource
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord


@dataclass(slots=True, init=False)
class Waiting:
    offset: Final[int]
    request: Final[ControllerRequest]
    reply: Final[Reply]
    response: Final[Response]

    def __init__(
        self,
        offset: int,
        request: ControllerRequest,
        reply: Reply,
        response: Response,
    ) -> None:
        self.offset = offset
        self.request = request
        self.reply = reply
        self.response = response


class DeferredReplies:
    """Answers that wait for a commit. They leave in the order of the requests: an answer whose records are committed
    earlier waits for those before it."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        """mypyc does not see that `__len__` says so."""
        return len(self) > 0

    def add(self, waiting: Waiting) -> None:
        if self._waiting and self._waiting[-1].offset > waiting.offset:
            waiting = replace(waiting, offset=self._waiting[-1].offset)
        self._waiting.append(waiting)

    def complete(self, committed_offset: int) -> None:
        """Answer all requests that waited for this offset or a lower one."""
        while self._waiting and self._waiting[0].offset <= committed_offset:
            waiting = self._waiting.popleft()
            waiting.reply(waiting.response)

    def fail(self, error: ApiError) -> None:
        """Fail all requests that still wait; whether their records will be committed is unknown."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.reply(refusal(each.request, error))


NO_ERROR = ApiError(ErrorCode.none)
# Fencing and NoOpRecords are not here: the one has deadlines of its own, the other writes without a decision.
PERIODIC_TASKS: tuple[PeriodicTask, ...] = (EXPIRY_SWEEP, CLEAN_ELECTION, LEADER_BALANCING, UNCLEAN_ELECTION)
NO_LEADER = -1
# What failed, in words, and how.
FaultHandler = Callable[[str, Exception], None]
# Called with a broker when it is decided to fence it because its session ended.
SessionEndObserver = Callable[[BrokerRegistration], None]


@dataclass(slots=True)
class Active:
    """What only the active controller has."""

    leader_epoch: int
    liveness: BrokerLiveness
    no_op_due_ms: int | None
    schedule: Schedule
    batched_updates: deque[BatchedPartitionUpdate] = field(default_factory=deque)
    removals: deque[tuple[BrokerRemoval, ControllerRequest, Reply]] = field(default_factory=deque)
    divided: deque[DividedRequest] = field(default_factory=deque)

    @property
    def has_part_due(self) -> bool:
        return bool(self.divided) and self.divided[0].may_take


class Controller:
    """Implements raft.ports.StateMachine. `publishers` get each committed image with the delta that led to it."""

    def __init__(
        self,
        config: ControllerConfig,
        raft: RaftPort,
        random_source: RandomSource,
        cluster_id: str,
        image: MetadataImage | None = None,
        on_fault: FaultHandler | None = None,
    ) -> None:
        """`on_fault` gets what failed through a fault of this program, after which another controller is to decide;
        without it such an error is raised."""
        self._config = config
        self._raft = raft
        self._random_source = random_source
        self._cluster_id = cluster_id
        self._timeline = Timeline(image)
        self._timeline.publishers.append(check_levels)
        self._writer = LogWriter(config, raft, self._timeline)
        self._mutation_quotas = MutationQuotas(window_ms=config.controller_quota_window_ms)
        self._token_writes: Buckets[str] = Buckets()
        self._on_fault = on_fault
        self._replies = DeferredReplies()
        self._active: Active | None = None
        self.session_end_observers: list[SessionEndObserver] = []

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
    def state_hash(self) -> int:
        """Of the committed image."""
        return self._timeline.loader.state_hash

    def contact_of(self, broker_id: int) -> Contact | None:
        """The broker's last heartbeat; None on a standby, and for a broker that this controller has no contact with."""
        return None if self._active is None else self._active.liveness.contact_of(broker_id)

    @property
    def publishers(self) -> list[Publisher]:
        return self._timeline.publishers

    @property
    def is_in_transaction(self) -> bool:
        """As the committed records say."""
        return self._timeline.loader.is_in_transaction

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:  # noqa: ARG002 - the port's signature
        self._timeline.commit(batches)
        self._replies.complete(self._timeline.loader.last_applied_offset)

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:  # noqa: ARG002 - the port's signature
        is_done = self._timeline.commit_slice(batches)
        if is_done:
            self._replies.complete(self._timeline.loader.last_applied_offset)
        return is_done

    def handle_snapshot(self, now_ms: int, state: object) -> None:  # noqa: ARG002 - the port's signature
        assert isinstance(state, LoadedSnapshot), state
        assert self._active is None, "the active controller's state is ahead of every snapshot"
        self._timeline.handle_snapshot(state)

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:
        """A new epoch of the same leader starts like any other: requests whose records were proposed in an older epoch
        fail."""
        is_leading = leader_id == self._raft.node_id
        if self._active is not None and not (is_leading and self._active.leader_epoch == leader_epoch):
            self._renounce(leader_id)
        if is_leading and self._active is None:
            self._activate(now_ms, leader_epoch)

    def handle_time(self, now_ms: int) -> None:
        """Does one slice of the due work, so that requests are not held up; if more is due, the next deadline is at
        once."""
        active = self._active
        if active is None:
            return
        try:
            self._do_slice(now_ms, active)
        except Exception as error:  # noqa: BLE001 - as for handlers
            self._fail_over(now_ms, active, "a decision that was due failed", error)

    def _do_slice(self, now_ms: int, active: Active) -> None:
        stale = active.liveness.stale_broker(self.image.cluster.brokers.values(), now_ms)
        if self._timeline.is_far_ahead:
            pass  # the followers have their turn first
        elif stale is not None:
            self._fence_on(now_ms, active, stale)
        elif active.removals:
            self._remove_on(now_ms, active)
        elif active.batched_updates:
            self._batched_update_on(now_ms, active)
        else:
            self._run_due_task(now_ms, active)
        if self._active is active and active.has_part_due and not self._timeline.is_far_ahead:
            self._write_part(now_ms, active)
        if active.no_op_due_ms is not None and active.no_op_due_ms <= now_ms:
            active.no_op_due_ms = now_ms + self._config.metadata_max_idle_interval_ms
            if self._active is active and self.image.metadata_version >= NO_OP_RECORD:
                self._append_own(now_ms, (NoOpRecord(),))

    def _fence_on(self, now_ms: int, active: Active, stale: BrokerRegistration) -> None:
        """The broker leaves its ISRs and leaderships and is fenced, in one decision. If that is too much for one
        decision, it is fenced first, and a batched update removes it from its partitions."""
        context = self._context(now_ms, active)
        active.liveness.end_controlled_shutdown(stale.id)
        for observer in self.session_end_observers:
            observer(stale)
        fence = (fence_record(context, stale),)
        movement = Movement(broker_id=stale.id, is_leaving=True)
        run = whole_run(context, movement)
        if run is None:
            active.batched_updates.append(BatchedPartitionUpdate(context, stale, movement))
        # `_append_run` writes nothing for an empty run, not even the fence behind it.
        if run is not None and len(run) > 0:
            self._append_run(now_ms, active, run, fence)
        else:
            self._append_own(now_ms, fence)

    def _batched_update_on(self, now_ms: int, active: Active) -> None:
        context, update = self._context(now_ms, active), active.batched_updates[0]
        if update.is_done or not update.is_still_due(context):
            active.batched_updates.popleft()
            return
        if self._append_run(now_ms, active, update.next_run(context)) and update.is_leaving:
            active.liveness.move_shutdown_offset(update.broker_id, self._timeline.last_offset)

    def _remove_on(self, now_ms: int, active: Active) -> None:
        """Remove the broker from the partitions of the next slice. When none is left, handle the request that waited
        for the removal."""
        removal, request, reply = active.removals[0]
        if not removal.is_done:
            self._append_run(now_ms, active, removal.next_run(self._context(now_ms, active)))
            return
        active.removals.popleft()
        active.liveness.end_removal(removal.broker_id)
        self._write(now_ms, active, HANDLERS[request.api_key], request, reply)

    def _write_part(self, now_ms: int, active: Active) -> None:
        """Decide the next part of a divided request. This task and the others of `_do_slice` do not wait for each
        other."""
        whole = active.divided[0]
        part, reply = whole.take()
        if whole.is_taken:
            active.divided.popleft()
        self._write(now_ms, active, HANDLERS[part.api_key], part, reply)

    def _run_due_task(self, now_ms: int, active: Active) -> None:
        task = active.schedule.due_task(now_ms)
        if task is not None:
            outcome = task.run(self._context(now_ms, active))
            active.schedule.has_run(task, now_ms, has_more=outcome.has_more)
            self._append_own(now_ms, outcome.records)

    def next_deadline_ms(self) -> int | None:
        if self._active is None:
            return None
        if self._timeline.is_far_ahead:
            return self._active.no_op_due_ms
        if self._active.batched_updates or self._active.removals or self._active.has_part_due:
            return 0
        expiry = self._active.liveness.next_expiry_ms(self.image.cluster.brokers.values())
        deadlines = (expiry, self._active.no_op_due_ms, self._active.schedule.next_deadline_ms())
        return min((due for due in deadlines if due is not None), default=None)

    def handle_request(self, now_ms: int, request: ControllerRequest, reply: Reply) -> None:
        """`reply` is called once: at once, or when the records behind the response are committed, or when leadership is
        lost. Raises KeyError unless the API is a Decision, a Reading or DescribeCluster (metadata.controller_apis)."""
        if request.api_key is ApiKey.DESCRIBE_CLUSTER:
            reply(self._describe(request))
            return
        if request.api_key in READERS:
            reply(READERS[request.api_key](self.committed_image, request))
            return
        handler = HANDLERS[request.api_key]
        if asks_for_nothing(request):
            reply(refusal(request, NO_ERROR))
            return
        active = self._active
        if active is None:
            reply(refusal(request, not_controller(self._raft.leader_id, self._raft.node_id)))
        elif (whole := divided(request, self.image, self._config.max_records_per_batch, reply)) is not None:
            active.divided.append(whole)
        else:
            self._write(now_ms, active, handler, request, reply)

    def note_change(self, now_ms: int, request: ControllerRequest, words: str) -> None:
        """Put an audit note before a NoOpRecord, for a change of the voters that the replica has made. A leader that
        has removed itself is no longer active, so that change has no note."""
        active = self._active
        if active is None or self.image.metadata_version < NO_OP_RECORD:
            return
        result = ControllerResult(response=None, records=(NoOpRecord(),), audit_reason=words)
        try:
            self._writer.write(now_ms, active.leader_epoch, result, request)
        except NotLeaderError as not_leader:
            self._renounce(not_leader.leader_id)
        except Exception as error:  # noqa: BLE001 - as for handlers
            self._fail_over(now_ms, active, "an audit note could not be written", error)

    def _write(
        self, now_ms: int, active: Active, handler: Handler, request: ControllerRequest, reply: Reply
    ) -> None:
        charges = MutationCharges()
        result = None
        try:
            check_deadline(request, now_ms)
            result = handler(self._context(now_ms, active, charges), request)
            if result.removal_first is not None:
                self._writer.write_own(now_ms, active.leader_epoch, plain_records(result.records))
                active.removals.append((result.removal_first, request, reply))
                return
            self._append(now_ms, active, result, request)
            response = result.response
            assert response is not None, f"{request.api_key.name} is decided without an answer"
        except NotLeaderError as not_leader:
            self._renounce(not_leader.leader_id)
            reply(refusal(request, not_controller(not_leader.leader_id, self._raft.node_id)))
            return
        except ApiError as refused:
            result, response = None, refusal(request, refused)
        except Exception as error:  # noqa: BLE001 - the boundary of handlers: the node lives on, another decides
            reason = self._fail_over(now_ms, active, f"{request.api_key.name} could not be decided", error)
            reply(refusal(request, reason))
            return
        if charges.throttle_time_ms:
            response = throttled(response, charges.throttle_time_ms)
        if result is not None and result.waits_for_log_end:
            self._answer_at(self._raft.log_end_offset - 1, request, reply, response)
        else:
            self._answer(request, reply, response)

    def _answer(self, request: ControllerRequest, reply: Reply, response: Response) -> None:
        """A response without records also waits while anything is uncommitted: it may show uncommitted state."""
        if self._timeline.has_uncommitted:
            self._answer_at(self._timeline.last_offset, request, reply, response)
        else:
            reply(response)

    def _answer_at(self, offset: int, request: ControllerRequest, reply: Reply, response: Response) -> None:
        if offset <= self._timeline.loader.last_applied_offset:
            reply(response)
        else:
            self._replies.add(Waiting(offset, request, reply, response))

    def _append(
        self, now_ms: int, active: Active, result: ControllerResult, request: ControllerRequest
    ) -> None:
        self._writer.write(now_ms, active.leader_epoch, result, request)
        if result.batched_update is not None:
            active.batched_updates.append(result.batched_update)
        if result.after_append is not None:
            result.after_append(self._timeline.last_offset)

    def _activate(self, now_ms: int, leader_epoch: int) -> None:
        assert not self._timeline.has_uncommitted, "a standby proposes nothing"
        interval_ms = self._config.metadata_max_idle_interval_ms
        session_timeout_ms = self._config.broker_session_timeout_ms
        self._active = Active(
            leader_epoch=leader_epoch,
            liveness=BrokerLiveness(now_ms, session_timeout_ms, self.image.cluster.brokers),
            no_op_due_ms=now_ms + interval_ms if interval_ms > 0 else None,
            schedule=Schedule(PERIODIC_TASKS, self._config, now_ms),
        )
        # This only queues them: the activation records are in the log before the first slice.
        self._resume_batched_updates(self._context(now_ms, self._active), self._active)
        records = activation_records(self._config, self._timeline.loader)
        if records:
            self._append_own(now_ms, records)

    def _resume_batched_updates(self, context: DecisionContext, active: Active) -> None:
        """The previous controller may have fenced a broker with more partitions than one decision may hold, and failed
        before it had removed the broker from all of them."""
        fenced = {each.id: each for each in context.image.cluster.brokers.values() if each.fenced}
        for broker_id in sorted(counted_on(context.image.topics, fenced)):
            movement = Departure(broker_id=broker_id).movement(context)
            active.batched_updates.append(BatchedPartitionUpdate(context, fenced[broker_id], movement))

    def _describe(self, request: ControllerRequest) -> Response:
        try:
            return describe_cluster(self.committed_image, self._cluster_id, self._raft.leader_id, request)
        except ApiError as error:
            return refusal(request, error)

    def _append_own(self, now_ms: int, records: tuple[MetadataRecord, ...]) -> None:
        """Append records that no request asked for."""
        active = self._active
        assert active is not None, "only the active controller writes"
        try:
            self._writer.write_own(now_ms, active.leader_epoch, records)
        except NotLeaderError as error:
            self._renounce(error.leader_id)

    def _append_run(
        self, now_ms: int, active: Active, run: PartitionChangeBatch, after: tuple[MetadataRecord, ...] = ()
    ) -> bool:
        """Append the run, and `after` behind it in the same batch. Returns False, and appends nothing, for an empty
        run."""
        try:
            if run.values:
                self._writer.write_together(now_ms, active.leader_epoch, (run, *after))
        except NotLeaderError as error:
            self._renounce(error.leader_id)
        return bool(run.values)

    def _fail_over(self, now_ms: int, active: Active, what: str, error: Exception) -> ApiError:
        """An internal error: drop the unfinished decision and resign, so that another controller takes over. Without a
        fault handler the error is raised to the caller. Returns the client's error."""
        # Records of this decision may be in the log already; as this leader resigns, it decides nothing on top of them.
        self._raft.resign(now_ms, active.leader_epoch)
        self._renounce(NO_LEADER)
        if self._on_fault is None:
            raise error
        self._on_fault(what, error)
        return _unexpected(error)

    def _renounce(self, leader_id: int) -> None:
        removals = self._active.removals if self._active is not None else ()
        divided = self._active.divided if self._active is not None else ()
        # State first, replies then: a reply may send the next request at once, which has to find a standby.
        self._active = None
        self._timeline.revert()
        self._replies.fail(not_controller(leader_id, self._raft.node_id))
        for _, request, reply in removals:
            reply(refusal(request, not_controller(leader_id, self._raft.node_id)))
        for each in divided:
            each.refuse(not_controller(leader_id, self._raft.node_id))

    def _context(
        self, now_ms: int, active: Active, charges: MutationCharges | None = None
    ) -> DecisionContext:
        derived = self._timeline.derived
        return DecisionContext(
            now_ms=now_ms,
            node_id=self._raft.node_id,
            cluster_id=self._cluster_id,
            image=self.image,
            next_offset=self._raft.log_end_offset,
            config=self._config,
            random_source=self._random_source,
            liveness=active.liveness,
            registration_offsets=derived.registration_offsets,
            mutation_quotas=self._mutation_quotas,
            mutation_charges=charges or MutationCharges(),
            token_writes=self._token_writes,
            upgrade_kraft_version=lambda level, validate_only: self._raft.upgrade_kraft_version(
                now_ms, active.leader_epoch, level, validate_only=validate_only
            ),
            voter_ids=lambda: self._raft.voters.ids,
            kraft_version=lambda: self._raft.kraft_version,
        )


def _unexpected(error: Exception) -> ApiError:
    """The client gets no internal details; they are in the node's log."""
    reason = f"The controller failed to decide ({type(error).__name__}; its log says more) and hands over."
    return ApiError(ErrorCode.unknown_server_error, reason)
