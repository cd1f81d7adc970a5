"""The broker's lifecycle: Kafka's states, one step for each reply, and the pauses between requests."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.identity import BrokerIdentity, LifecycleConfig
from kquorum.broker.lifecycle import SESSION_RETRY_MS, BrokerLifecycle
from kquorum.broker.lifecycle_states import TRANSITIONS, BrokerState, LifecycleEvent, next_state
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.broker_registration import Feature, Listener
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.random_sources import HighestRandomSource, MiddleRandomSource

CONFIG = LifecycleConfig(
    heartbeat_interval_ms=2000, session_timeout_ms=9000, initial_registration_timeout_ms=60_000
)


def make(config: LifecycleConfig = CONFIG) -> BrokerLifecycle:
    identity = BrokerIdentity(
        broker_id=101,
        cluster_id="cluster",
        incarnation_id=UUID(int=7 << 64),
        listeners=(Listener(name="PLAINTEXT", host="h", port=9092),),
        features=(Feature(name="metadata.version", min_supported_version=4, max_supported_version=25),),
        log_dirs=(UUID(int=(1 << 90) + 2), UUID(int=(1 << 90) + 1)),
    )
    return BrokerLifecycle(identity, config, MiddleRandomSource())


def sent(lifecycle: BrokerLifecycle, now_ms: int, applied_offset: int = -1) -> Any:
    request = lifecycle.maybe_next_request(now_ms, applied_offset)
    assert request is not None
    return request


def heartbeat(
    lifecycle: BrokerLifecycle,
    now_ms: int,
    *,
    caught_up: bool = False,
    fenced: bool = True,
    shut_down: bool = False,
    error: ErrorCode = ErrorCode.none,
) -> Any:
    request = sent(lifecycle, now_ms)
    assert request.api_key == ApiKey.BROKER_HEARTBEAT
    lifecycle.handle_heartbeat_reply(
        now_ms, error=error, is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down
    )
    return request


def registered(now_ms: int = 0) -> BrokerLifecycle:
    lifecycle = make()
    lifecycle.start(now_ms)
    assert sent(lifecycle, now_ms).api_key == ApiKey.BROKER_REGISTRATION
    lifecycle.handle_registration_reply(now_ms, ErrorCode.none, 42)
    return lifecycle


def running() -> BrokerLifecycle:
    """In state RUNNING at time 10, the next heartbeat due at 2010."""
    lifecycle = registered()
    heartbeat(lifecycle, 0, caught_up=True)
    lifecycle.set_ready_to_unfence(10)
    heartbeat(lifecycle, 10, caught_up=True, fenced=False)
    assert lifecycle.state is BrokerState.RUNNING
    return lifecycle


def test_nothing_is_sent_before_the_start() -> None:
    lifecycle = make()
    assert lifecycle.state is BrokerState.NOT_RUNNING
    assert lifecycle.maybe_next_request(0, -1) is None
    assert lifecycle.next_deadline_ms() is None


def test_the_registration_goes_out_at_once_and_fits_every_version_of_the_request() -> None:
    lifecycle = make()
    lifecycle.start(5)
    request = sent(lifecycle, 5)
    assert request.api_key == ApiKey.BROKER_REGISTRATION
    assert request.log_dirs == (UUID(int=(1 << 90) + 1), UUID(int=(1 << 90) + 2)), "sorted"
    first, last = supported_versions(ApiKey.BROKER_REGISTRATION)
    for version in range(first, last + 1):
        assert encode(request, version)


def test_only_one_request_is_under_way() -> None:
    lifecycle = make()
    lifecycle.start(0)
    sent(lifecycle, 0)
    assert lifecycle.maybe_next_request(1_000_000, -1) is None


def test_a_registered_broker_sends_heartbeats_every_10_ms_until_it_has_caught_up() -> None:
    lifecycle = registered()
    assert lifecycle.broker_epoch == 42
    first = heartbeat(lifecycle, 0)
    assert first.want_fence is True
    assert first.current_metadata_offset == -1
    assert lifecycle.next_deadline_ms() == 10
    assert lifecycle.maybe_next_request(9, -1) is None
    heartbeat(lifecycle, 10, caught_up=True)
    assert lifecycle.state is BrokerState.RECOVERY
    assert lifecycle.next_deadline_ms() == 2010


def test_a_reply_moves_one_step_even_if_it_would_allow_two() -> None:
    lifecycle = registered()
    heartbeat(lifecycle, 0, caught_up=True, fenced=False)
    assert lifecycle.state is BrokerState.RECOVERY


def test_being_ready_to_unfence_is_reported_at_once() -> None:
    lifecycle = registered()
    heartbeat(lifecycle, 0, caught_up=True)
    lifecycle.set_ready_to_unfence(5)
    assert heartbeat(lifecycle, 5, fenced=False).want_fence is False
    assert lifecycle.state is BrokerState.RUNNING


def test_a_change_during_a_request_makes_the_next_one_immediate() -> None:
    lifecycle = registered()
    heartbeat(lifecycle, 0, caught_up=True)
    sent(lifecycle, 2010)
    lifecycle.set_ready_to_unfence(2011)
    lifecycle.handle_heartbeat_reply(
        2012, error=ErrorCode.none, is_caught_up=True, is_fenced=True, should_shut_down=False
    )
    assert lifecycle.next_deadline_ms() == 2012


def test_a_running_broker_that_is_fenced_again_goes_on_running() -> None:
    lifecycle = running()
    heartbeat(lifecycle, 2010, caught_up=True, fenced=True)
    assert lifecycle.state is BrokerState.RUNNING
    assert lifecycle.is_fenced


def test_failures_double_the_pause_up_to_the_session_timeout() -> None:
    lifecycle = running()
    now_ms, pauses = 2010, []
    for _ in range(9):
        sent(lifecycle, now_ms)
        lifecycle.handle_failure(now_ms)
        deadline_ms = lifecycle.next_deadline_ms()
        assert deadline_ms is not None
        pauses.append(deadline_ms - now_ms)
        now_ms = deadline_ms
    assert pauses == [100, 200, 400, 800, 1600, 3200, 6400, 9000, 9000]
    heartbeat(lifecycle, now_ms, fenced=False)
    assert lifecycle.next_deadline_ms() == now_ms + 2000, "a success forgets the failures"


def test_the_jitter_is_two_percent() -> None:
    lifecycle = BrokerLifecycle(make()._identity, CONFIG, HighestRandomSource())
    lifecycle.start(0)
    sent(lifecycle, 0)
    lifecycle.handle_failure(0)
    assert lifecycle.next_deadline_ms() == 102


def test_an_error_in_the_registration_is_tried_again_and_one_in_a_heartbeat_keeps_the_epoch() -> None:
    lifecycle = make()
    lifecycle.start(0)
    sent(lifecycle, 0)
    lifecycle.handle_registration_reply(0, ErrorCode.unknown_server_error, -1)
    assert sent(lifecycle, 100).api_key == ApiKey.BROKER_REGISTRATION
    lifecycle.handle_registration_reply(100, ErrorCode.none, 7)
    heartbeat(lifecycle, 100, error=ErrorCode.unknown_server_error)
    assert sent(lifecycle, 200).api_key == ApiKey.BROKER_HEARTBEAT
    assert lifecycle.broker_epoch == 7


class TestTheSessionOfThePreviousProcess:
    """A broker that was killed and is started again is refused until the session of its previous process is over."""

    @pytest.mark.parametrize("session_ms", [6_000, 9_000, 12_799, 30_000])
    def test_it_registers_in_the_moment_in_which_the_session_ends(self, session_ms: int) -> None:
        lifecycle, now_ms = make(), 3
        lifecycle.start(now_ms)
        requests = 0
        while now_ms < session_ms:
            sent(lifecycle, now_ms)
            requests += 1
            left_ms = session_ms - now_ms
            lifecycle.handle_registration_reply(now_ms, ErrorCode.duplicate_broker_registration, -1, left_ms)
            assert lifecycle.previous_session_ends_ms == session_ms
            next_ms = lifecycle.next_deadline_ms()
            assert next_ms is not None
            now_ms = next_ms
        assert now_ms == session_ms
        assert requests <= session_ms // SESSION_RETRY_MS + 1
        sent(lifecycle, now_ms)
        lifecycle.handle_registration_reply(now_ms, ErrorCode.none, 42)
        assert (lifecycle.previous_session_ends_ms, lifecycle.broker_epoch) == (None, 42)

    def test_a_controller_that_does_not_say_when_is_asked_every_half_a_second(self) -> None:
        lifecycle = make()
        lifecycle.start(0)
        for now_ms in range(0, 12_000, SESSION_RETRY_MS):
            sent(lifecycle, now_ms)
            lifecycle.handle_registration_reply(now_ms, ErrorCode.duplicate_broker_registration, -1)
            assert lifecycle.next_deadline_ms() == now_ms + SESSION_RETRY_MS
            assert lifecycle.previous_session_ends_ms == CONFIG.session_timeout_ms, "at the latest"

    def test_the_moment_may_have_come_already_and_the_loop_does_not_spin(self) -> None:
        lifecycle = make()
        lifecycle.start(0)
        sent(lifecycle, 0)
        lifecycle.handle_registration_reply(0, ErrorCode.duplicate_broker_registration, -1, 0)
        assert lifecycle.next_deadline_ms() == 1

    def test_another_refusal_is_no_wait_for_a_session(self) -> None:
        lifecycle = make()
        lifecycle.start(0)
        sent(lifecycle, 0)
        lifecycle.handle_registration_reply(0, ErrorCode.duplicate_broker_registration, -1, 9_000)
        sent(lifecycle, SESSION_RETRY_MS)
        lifecycle.handle_registration_reply(SESSION_RETRY_MS, ErrorCode.invalid_registration, -1)
        assert lifecycle.previous_session_ends_ms is None


class TestANewController:
    def test_it_is_asked_at_once_where_the_last_request_failed(self) -> None:
        """Else a quorum that was down for a minute would be left waiting for as long as a session by its brokers."""
        lifecycle = running()
        now_ms = 2010
        for _ in range(7):
            sent(lifecycle, now_ms)
            lifecycle.handle_failure(now_ms)
            next_ms = lifecycle.next_deadline_ms()
            assert next_ms is not None
            now_ms, failed_at_ms = next_ms, now_ms
        assert now_ms - failed_at_ms == 6_400
        lifecycle.handle_new_controller(failed_at_ms + 5)
        assert lifecycle.next_deadline_ms() == failed_at_ms + 5
        heartbeat(lifecycle, failed_at_ms + 5, fenced=False)
        assert lifecycle.next_deadline_ms() == failed_at_ms + 5 + CONFIG.heartbeat_interval_ms

    def test_it_is_asked_at_once_by_who_waits_for_a_session(self) -> None:
        lifecycle = make()
        lifecycle.start(0)
        sent(lifecycle, 0)
        lifecycle.handle_registration_reply(0, ErrorCode.duplicate_broker_registration, -1, 9_000)
        lifecycle.handle_new_controller(20)
        assert lifecycle.next_deadline_ms() == 20
        sent(lifecycle, 20)
        lifecycle.handle_registration_reply(20, ErrorCode.duplicate_broker_registration, -1)
        assert lifecycle.previous_session_ends_ms == 9_020, "it counts the session from its own start"

    def test_a_broker_that_is_well_keeps_its_interval(self) -> None:
        lifecycle = running()
        lifecycle.handle_new_controller(500)
        assert lifecycle.next_deadline_ms() == 2010

    def test_one_request_at_a_time_stays_under_way(self) -> None:
        lifecycle = make()
        lifecycle.start(0)
        sent(lifecycle, 0)
        lifecycle.handle_new_controller(5)
        assert lifecycle.maybe_next_request(5, -1) is None


@pytest.mark.parametrize("error", [ErrorCode.stale_broker_epoch, ErrorCode.broker_id_not_registered])
def test_a_broker_whose_registration_is_lost_registers_again_and_goes_on_running(error: ErrorCode) -> None:
    lifecycle = running()
    heartbeat(lifecycle, 2010, error=error)
    assert (lifecycle.broker_epoch, lifecycle.is_fenced) == (-1, True)
    assert lifecycle.next_deadline_ms() == 2110, "not at once: another process may have the id"
    assert sent(lifecycle, 2110).api_key == ApiKey.BROKER_REGISTRATION
    lifecycle.handle_registration_reply(2110, ErrorCode.none, 77)
    assert heartbeat(lifecycle, 2110, caught_up=True, fenced=False).broker_epoch == 77
    assert lifecycle.state is BrokerState.RUNNING
    assert not lifecycle.is_fenced


def test_a_registration_that_is_lost_may_be_refused_for_as_long_as_it_takes() -> None:
    lifecycle = running()
    heartbeat(lifecycle, 2010, error=ErrorCode.stale_broker_epoch)
    for _ in range(200):
        now_ms = lifecycle.next_deadline_ms()
        assert now_ms is not None
        lifecycle.handle_time(now_ms)
        assert sent(lifecycle, now_ms).api_key == ApiKey.BROKER_REGISTRATION
        lifecycle.handle_registration_reply(now_ms, ErrorCode.duplicate_broker_registration, -1)
    assert lifecycle.state is BrokerState.RUNNING
    assert now_ms > 60_000, "the time of the first registration has no say in it"


def test_an_unregistered_broker_leaves_at_once() -> None:
    lifecycle = running()
    lifecycle.begin_controlled_shutdown(100)
    heartbeat(lifecycle, 100, error=ErrorCode.stale_broker_epoch)
    assert lifecycle.state is BrokerState.SHUTTING_DOWN


def test_directories_that_failed_are_reported_at_once_and_from_then_on() -> None:
    lifecycle = running()
    failed = (UUID(int=(1 << 90) + 2), UUID(int=(1 << 90) + 1))
    lifecycle.set_offline_log_dirs(20, failed)
    for now_ms in (20, 2020):
        request = heartbeat(lifecycle, now_ms, fenced=False)
        assert request.offline_log_dirs == tuple(sorted(failed))
    with pytest.raises(UnsupportedVersion):
        encode(request, 0)  # a controller that cannot read it must not take the directories for sound
    for version in range(1, supported_versions(ApiKey.BROKER_HEARTBEAT)[1] + 1):
        assert encode(request, version)


def test_a_broker_whose_failed_directory_no_controller_hears_of_gives_up_and_says_why() -> None:
    lifecycle = running()
    lifecycle.set_offline_log_dirs(1_000, (UUID(int=1 << 90),))
    sent(lifecycle, 1_000)
    lifecycle.handle_failure(1_000)
    heartbeat(lifecycle, 20_000, error=ErrorCode.not_controller)
    lifecycle.handle_time(30_999)
    assert lifecycle.state is BrokerState.RUNNING
    lifecycle.handle_time(31_000)
    assert lifecycle.state is BrokerState.SHUTTING_DOWN
    assert lifecycle.failure is not None
    assert "log.dir.failure.timeout.ms" in lifecycle.failure


def test_a_failed_directory_that_the_controller_knows_costs_the_broker_nothing() -> None:
    lifecycle = running()
    first, second = UUID(int=1 << 90), UUID(int=1 << 91)
    lifecycle.set_offline_log_dirs(1_000, (first,))
    request = sent(lifecycle, 1_000)
    # Another one fails while the heartbeat is under way, which does not name it.
    lifecycle.set_offline_log_dirs(1_100, (first, second))
    lifecycle.handle_heartbeat_reply(
        1_200, error=ErrorCode.none, is_caught_up=True, is_fenced=False, should_shut_down=False
    )
    assert request.offline_log_dirs == (first,)
    lifecycle.handle_time(31_000)
    assert lifecycle.state is BrokerState.RUNNING
    lifecycle.handle_time(31_100)
    assert lifecycle.state is BrokerState.SHUTTING_DOWN
    lifecycle = running()
    lifecycle.set_offline_log_dirs(1_000, (first,))
    heartbeat(lifecycle, 1_000, caught_up=True, fenced=False)
    lifecycle.handle_time(10**6)
    assert lifecycle.state is BrokerState.RUNNING


def test_a_broker_that_is_never_registered_gives_up_and_says_why() -> None:
    lifecycle = make()
    lifecycle.start(0)
    sent(lifecycle, 0)
    assert lifecycle.next_deadline_ms() == 60_000
    lifecycle.handle_time(59_999)
    assert lifecycle.state is BrokerState.STARTING
    lifecycle.handle_time(60_000)
    assert lifecycle.state is BrokerState.SHUTTING_DOWN
    assert lifecycle.failure is not None
    assert "initial.broker.registration.timeout.ms" in lifecycle.failure


def test_the_registration_timeout_ends_with_the_first_registration() -> None:
    lifecycle = registered()
    lifecycle.handle_time(1_000_000)
    assert lifecycle.state is BrokerState.STARTING


def test_controlled_shutdown_asks_at_once_then_after_50_ms_then_at_the_interval() -> None:
    lifecycle = running()
    lifecycle.begin_controlled_shutdown(100)
    assert lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    assert heartbeat(lifecycle, 100, fenced=False).want_shut_down is True
    assert lifecycle.next_deadline_ms() == 150
    lifecycle.begin_controlled_shutdown(120)
    heartbeat(lifecycle, 120, fenced=False)
    assert lifecycle.next_deadline_ms() == 2120
    heartbeat(lifecycle, 2120, shut_down=True)
    assert lifecycle.state is BrokerState.SHUTTING_DOWN
    assert lifecycle.maybe_next_request(1_000_000, -1) is None
    assert lifecycle.next_deadline_ms() is None


@pytest.mark.parametrize("steps", [(), ("start",)])
def test_a_broker_that_never_ran_shuts_down_at_once(steps: Sequence[str]) -> None:
    lifecycle = make()
    if steps:
        lifecycle.start(0)
    lifecycle.begin_controlled_shutdown(0)
    assert lifecycle.state is BrokerState.SHUTTING_DOWN


def test_a_reply_after_the_end_changes_nothing() -> None:
    lifecycle = running()
    sent(lifecycle, 2010)
    lifecycle.begin_shutdown()
    lifecycle.handle_heartbeat_reply(
        2011, error=ErrorCode.none, is_caught_up=True, is_fenced=False, should_shut_down=False
    )
    assert lifecycle.state is BrokerState.SHUTTING_DOWN


def test_every_state_can_be_shut_down_and_unlisted_moves_are_bugs() -> None:
    for state in BrokerState:
        assert next_state(state, LifecycleEvent.SHUTDOWN_ASKED) is BrokerState.SHUTTING_DOWN
    assert (BrokerState.RUNNING, LifecycleEvent.STARTED) not in TRANSITIONS
    with pytest.raises(AssertionError, match="running"):
        next_state(BrokerState.RUNNING, LifecycleEvent.STARTED)
