"""What a controller decides with: its state ahead of the log, what only the active one has, and the ways there."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from metadata.controller.brokers.liveness import BrokerLiveness, Contact
from metadata.controller.config import ControllerConfig
from metadata.controller.context import DecisionContext
from metadata.controller.divided_requests import DividedRequest
from metadata.controller.log_writer import LogWriter
from metadata.controller.mutation_quotas import MutationCharges, MutationQuotas
from metadata.controller.partitions.batched_update import BatchedPartitionUpdate
from metadata.controller.partitions.broker_removal import BrokerRemoval
from metadata.controller.partitions.change_batch import PartitionChangeBatch
from metadata.controller.periodic import Schedule
from metadata.controller.quorum.feature_support import check_levels
from metadata.controller.refusals import refusal
from metadata.controller.replies import DeferredReplies
from metadata.controller.requests import ApiError, ControllerRequest, Reply, not_controller
from metadata.controller.timeline import Publisher, Timeline
from metadata.controller.token_buckets import Buckets
from metadata.image.cluster import BrokerRegistration
from metadata.image.image import MetadataImage
from raft.errors import NotLeaderError
from raft.ports import RaftPort, RandomSource
from wire.schema import MetadataRecord

NO_LEADER = -1
# What failed, in words, and how.
FaultHandler = Callable[[str, Exception], None]
# Told, when it is decided, of a broker that is fenced for its silence.
SilenceObserver = Callable[[BrokerRegistration], None]


@dataclass(slots=True)
class Active:
    """What only the active controller has."""

    leader_epoch: int
    liveness: BrokerLiveness
    no_op_due_ms: int | None
    schedule: Schedule
    sweeps: deque[BatchedPartitionUpdate] = field(default_factory=deque)
    removals: deque[tuple[BrokerRemoval, ControllerRequest, Reply]] = field(default_factory=deque)
    divided: deque[DividedRequest] = field(default_factory=deque)


class ControllerCore:
    def __init__(
        self,
        config: ControllerConfig,
        raft: RaftPort,
        random_source: RandomSource,
        cluster_id: str,
        image: MetadataImage | None = None,
        on_fault: FaultHandler | None = None,
    ) -> None:
        """`on_fault` is told what failed through a fault of our own, after which another controller is to decide;
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
        self.silence_observers: list[SilenceObserver] = []

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
        """What the broker's last heartbeat said; None on a standby, and for a broker that this one has not known."""
        return None if self._active is None else self._active.liveness.contact_of(broker_id)

    @property
    def publishers(self) -> list[Publisher]:
        return self._timeline.publishers

    def _append_own(self, now_ms: int, records: tuple[MetadataRecord, ...]) -> None:
        """Records that nobody asked for."""
        active = self._active
        assert active is not None, "only the active controller writes"
        try:
            self._writer.write_own(now_ms, active.leader_epoch, records)
        except NotLeaderError as error:
            self._renounce(error.leader_id)

    def _append_run(
        self, now_ms: int, active: Active, run: PartitionChangeBatch, after: tuple[MetadataRecord, ...] = ()
    ) -> bool:
        """Whether there was anything to append."""
        try:
            if run.values:
                self._writer.write_together(now_ms, active.leader_epoch, (run, *after))
        except NotLeaderError as error:
            self._renounce(error.leader_id)
        return bool(run.values)

    def _fail_over(self, now_ms: int, active: Active, what: str, error: Exception) -> ApiError:
        """Our own fault. What was half decided is dropped, and another controller takes over: it may fare better.

        Without a fault handler the error goes on to whoever called. Answers what the client is told.
        """
        self._raft.resign(now_ms, active.leader_epoch)
        self._renounce(NO_LEADER)
        if self._on_fault is None:
            raise error
        self._on_fault(what, error)
        return _unexpected(error)

    def _renounce(self, leader_id: int) -> None:
        removals = self._active.removals if self._active is not None else ()
        divided = self._active.divided if self._active is not None else ()
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
    """The client is not shown the insides; the node's log has them."""
    reason = f"The controller failed to decide ({type(error).__name__}; its log says more) and hands over."
    return ApiError(ErrorCode.unknown_server_error, reason)
