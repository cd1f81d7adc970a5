"""How a broker comes, stays and goes, seen from its controller: registration, heartbeats, controlled shutdown.

Sans-IO. The owner asks `maybe_next_request` whenever something happened or `next_deadline_ms` came, sends what it
gets, and reports the outcome. At most one request is under way, and one moment (`_communicate_at_ms`) says when the
next is due, as in Kafka's BrokerLifecycleManager; the pauses are Kafka's, but for two. A broker that is refused because
the session of its previous process is not over asks again when that session ends, and every half a second until then:
pauses that double would let it wait for up to twice as long. And where the last request had failed, a new active
controller is asked at once.
"""

from uuid import UUID

from kquorum.broker.identity import NO_EPOCH, BrokerIdentity, LifecycleConfig
from kquorum.broker.lifecycle_states import BrokerState, LifecycleEvent, next_state
from kquorum.raft.ports import RandomSource
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kquorum.wire.messages.broker_registration import BrokerRegistrationRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import uuid_to_text

FIRST_BACKOFF_MS = 100
CATCH_UP_INTERVAL_MS = 10
FIRST_SHUTDOWN_INTERVAL_MS = 50
# How often a broker asks whose id is taken. The session may end sooner than was said: by another controller, or because
# an operator unregistered the broker.
SESSION_RETRY_MS = 500
# The controller does not know this registration: the broker was unregistered, or another process took its id.
REGISTRATION_LOST = frozenset({ErrorCode.stale_broker_epoch, ErrorCode.broker_id_not_registered})


class BrokerLifecycle:
    """One per process: a restarted broker is another incarnation."""

    def __init__(
        self, identity: BrokerIdentity, config: LifecycleConfig, random_source: RandomSource
    ) -> None:
        self._identity = identity
        self._config = config
        self._random_source = random_source
        self._state = BrokerState.NOT_RUNNING
        self._broker_epoch = NO_EPOCH
        self._is_fenced = True
        self._failures = 0
        self._in_flight = False
        self._wishes_immediate = False
        self._ready_to_unfence = False
        self._answered_shutdown_wish = False
        self._communicate_at_ms: int | None = None
        self._registration_deadline_ms: int | None = None
        self._failure: str | None = None
        self._previous_session_ends_ms: int | None = None
        self._offline_log_dirs: tuple[UUID, ...] = ()
        self._untold_log_dirs: dict[UUID, int] = {}
        """Failed directories that no controller has confirmed, and when the broker gives up for each."""
        self._sent_log_dirs: tuple[UUID, ...] = ()

    @property
    def state(self) -> BrokerState:
        return self._state

    @property
    def broker_epoch(self) -> int:
        """-1 until registered."""
        return self._broker_epoch

    @property
    def is_registered(self) -> bool:
        return self._broker_epoch != NO_EPOCH

    @property
    def is_fenced(self) -> bool:
        """What the last heartbeat reply said; True before any."""
        return self._is_fenced

    @property
    def failure(self) -> str | None:
        """Why the broker gave up by itself; None when it did not."""
        return self._failure

    @property
    def previous_session_ends_ms(self) -> int | None:
        """When the session ends that the broker's previous process has, None while none is waited for. At the latest:
        of a controller that does not say it, only the length of the session is known."""
        return self._previous_session_ends_ms

    def start(self, now_ms: int) -> None:
        self._move(LifecycleEvent.STARTED)
        self._registration_deadline_ms = now_ms + self._config.initial_registration_timeout_ms
        self._communicate_at_ms = now_ms

    def set_ready_to_unfence(self, now_ms: int) -> None:
        """The image is published: the broker may serve clients as soon as the controller agrees."""
        self._ready_to_unfence = True
        self._communicate_now(now_ms)

    def set_offline_log_dirs(self, now_ms: int, log_dirs: tuple[UUID, ...]) -> None:
        """The directories that failed, for every heartbeat from now on: no partition is to be led from one. The broker
        gives up if the controller does not hear of one within `log.dir.failure.timeout.ms` (KIP-858)."""
        give_up_ms = now_ms + self._config.log_dir_failure_timeout_ms
        for each in set(log_dirs) - set(self._offline_log_dirs):
            self._untold_log_dirs[each] = give_up_ms
        self._offline_log_dirs = tuple(sorted(log_dirs))
        self._communicate_now(now_ms)

    def begin_controlled_shutdown(self, now_ms: int) -> None:
        """Ask the controller to move leaders away first; a broker that does not run goes down at once."""
        self._move(LifecycleEvent.CONTROLLED_SHUTDOWN_ASKED)
        self._communicate_now(now_ms)

    def begin_shutdown(self) -> None:
        self._move(LifecycleEvent.SHUTDOWN_ASKED)

    def next_deadline_ms(self) -> int | None:
        """When the owner has to come back; None for never (a reply is awaited, or all is over)."""
        if self._state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            return None
        due = [] if self._in_flight or self._communicate_at_ms is None else [self._communicate_at_ms]
        if self._registration_deadline_ms is not None:
            due.append(self._registration_deadline_ms)
        due.extend(self._untold_log_dirs.values())
        return min(due, default=None)

    def handle_time(self, now_ms: int) -> None:
        if self._state not in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            self._check_told_log_dirs(now_ms)
        deadline_ms = self._registration_deadline_ms
        if deadline_ms is None or now_ms < deadline_ms or self._state is BrokerState.SHUTTING_DOWN:
            return
        self._failure = (
            f"no controller registered broker {self._identity.broker_id} within "
            f"{self._config.initial_registration_timeout_ms} ms (initial.broker.registration.timeout.ms)"
        )
        self._move(LifecycleEvent.SHUTDOWN_ASKED)

    def _check_told_log_dirs(self, now_ms: int) -> None:
        untold = [each for each, give_up_ms in self._untold_log_dirs.items() if now_ms >= give_up_ms]
        if untold:
            self._failure = (
                f"no controller could be told within {self._config.log_dir_failure_timeout_ms} ms "
                f"(log.dir.failure.timeout.ms) that the log directory {uuid_to_text(untold[0])} has failed"
            )
            self._move(LifecycleEvent.SHUTDOWN_ASKED)

    def maybe_next_request(
        self, now_ms: int, applied_offset: int
    ) -> BrokerRegistrationRequest | BrokerHeartbeatRequest | None:
        """The request that is due now, which then counts as under way; `applied_offset` is -1 before any metadata."""
        if self._state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN) or self._in_flight:
            return None
        if self._communicate_at_ms is None or now_ms < self._communicate_at_ms:
            return None
        self._in_flight = True
        self._communicate_at_ms = None
        return self._heartbeat(applied_offset) if self.is_registered else self._registration()

    def handle_new_controller(self, now_ms: int) -> None:
        """Another controller is active. It counts all sessions from its own start, and a request that failed before is
        worth a try now."""
        self._previous_session_ends_ms = None
        if self._failures:
            self._failures = 0
            self._communicate_now(now_ms)

    def handle_registration_reply(
        self, now_ms: int, error: ErrorCode, broker_epoch: int, session_ends_in_ms: int = -1
    ) -> None:
        """`session_ends_in_ms` is what a controller of ours says of the session that a refused broker waits for; -1
        where it does not."""
        self._in_flight = False
        if error is ErrorCode.duplicate_broker_registration:
            self._wait_for_session(now_ms, session_ends_in_ms)
            return
        self._previous_session_ends_ms = None
        if error is not ErrorCode.none:
            self._back_off(now_ms)
            return
        assert broker_epoch >= 0, f"the controller registered us with broker epoch {broker_epoch}"
        self._broker_epoch = broker_epoch
        self._registration_deadline_ms = None
        self._failures = 0
        self._communicate_at_ms = now_ms

    def handle_heartbeat_reply(
        self, now_ms: int, *, error: ErrorCode, is_caught_up: bool, is_fenced: bool, should_shut_down: bool
    ) -> None:
        """One step of the table for each reply, even if the reply would allow two."""
        self._in_flight = False
        if self._state is BrokerState.SHUTTING_DOWN:
            return
        if error in REGISTRATION_LOST:
            self._lose_registration(now_ms)
            return
        if error is not ErrorCode.none:
            self._back_off(now_ms)
            return
        self._failures = 0
        for each in self._sent_log_dirs:
            self._untold_log_dirs.pop(each, None)
        self._is_fenced = is_fenced
        if (event := self._event_of_reply(is_caught_up, is_fenced, should_shut_down)) is not None:
            self._move(event)
        self._schedule(now_ms, self._pause_after_reply_ms())

    def handle_failure(self, now_ms: int) -> None:
        """No reply came: time out, disconnect without another controller, or a refused version."""
        self._in_flight = False
        self._back_off(now_ms)

    def _wait_for_session(self, now_ms: int, ends_in_ms: int) -> None:
        if ends_in_ms >= 0:
            self._previous_session_ends_ms = now_ms + ends_in_ms
            pause_ms = min(ends_in_ms, SESSION_RETRY_MS)
        else:
            if self._previous_session_ends_ms is None:
                self._previous_session_ends_ms = now_ms + self._config.session_timeout_ms
            pause_ms = SESSION_RETRY_MS
        self._wishes_immediate = False
        # It counts as a failure, so that a new controller is asked at once.
        self._failures = 1
        self._communicate_at_ms = now_ms + max(1, pause_ms)

    def _lose_registration(self, now_ms: int) -> None:
        """Kafka's brokers keep sending heartbeats in vain. This one registers again and is fenced until it has caught
        up; while the id belongs to another live process, the controller refuses it. A broker that is leaving does not
        register."""
        if self._state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._move(LifecycleEvent.SHUTDOWN_ASKED)
            return
        self._broker_epoch = NO_EPOCH
        self._is_fenced = True
        self._back_off(now_ms)

    def _event_of_reply(
        self, is_caught_up: bool, is_fenced: bool, should_shut_down: bool
    ) -> LifecycleEvent | None:
        state = self._state
        if state is BrokerState.STARTING and is_caught_up:
            return LifecycleEvent.CAUGHT_UP
        if state is BrokerState.RECOVERY and not is_fenced:
            return LifecycleEvent.UNFENCED
        if state is BrokerState.PENDING_CONTROLLED_SHUTDOWN and should_shut_down:
            return LifecycleEvent.SHUTDOWN_ASKED
        return None

    def _pause_after_reply_ms(self) -> int:
        if self._state is BrokerState.STARTING:
            return CATCH_UP_INTERVAL_MS
        if self._state is BrokerState.PENDING_CONTROLLED_SHUTDOWN and not self._answered_shutdown_wish:
            self._answered_shutdown_wish = True
            return FIRST_SHUTDOWN_INTERVAL_MS
        return self._config.heartbeat_interval_ms

    def _schedule(self, now_ms: int, pause_ms: int) -> None:
        self._communicate_at_ms = now_ms if self._wishes_immediate else now_ms + pause_ms
        self._wishes_immediate = False

    def _communicate_now(self, now_ms: int) -> None:
        if self._in_flight:
            self._wishes_immediate = True
        elif self._communicate_at_ms is not None:
            self._communicate_at_ms = now_ms

    def _back_off(self, now_ms: int) -> None:
        """100 ms doubling up to the session timeout, within 2 % of jitter; a wish to hurry is dropped."""
        base_ms = min(FIRST_BACKOFF_MS << min(self._failures, 20), self._config.session_timeout_ms)
        spread_ms = base_ms * 2 // 100
        self._failures += 1
        self._wishes_immediate = False
        self._communicate_at_ms = now_ms + base_ms + self._random_source.randint(-spread_ms, spread_ms)

    def _move(self, event: LifecycleEvent) -> None:
        self._state = next_state(self._state, event)

    def _registration(self) -> BrokerRegistrationRequest:
        identity = self._identity
        return BrokerRegistrationRequest(
            broker_id=identity.broker_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=identity.listeners,
            features=identity.features,
            rack=identity.rack,
            log_dirs=tuple(sorted(identity.log_dirs)),
            previous_broker_epoch=identity.previous_broker_epoch,
        )

    def _heartbeat(self, applied_offset: int) -> BrokerHeartbeatRequest:
        self._sent_log_dirs = self._offline_log_dirs
        return BrokerHeartbeatRequest(
            broker_id=self._identity.broker_id,
            broker_epoch=self._broker_epoch,
            current_metadata_offset=applied_offset,
            want_fence=not self._ready_to_unfence,
            want_shut_down=self._state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self._offline_log_dirs,
        )
