"""The runner carries a broker through its life against a controller that answers as Kafka's would."""

import asyncio
import logging
import re
import time
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.adapters.lifecycle_runner import LifecycleRunner
from kquorum.broker.adapters.refusals import Refusals
from kquorum.broker.identity import BrokerIdentity, LifecycleConfig
from kquorum.broker.lifecycle import BrokerLifecycle
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.metadata.adapters.controller_channel import ControllerChannel
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.node_logs import warnings
from tests.support.random_sources import MiddleRandomSource
from tests.support.running_controllers import RunningController, eventually, run


class Registrar:
    """Takes any broker, finds it caught up at offset 5, unfences it when it asks, and lets it go."""

    def __init__(self) -> None:
        self.heartbeats: list[Any] = []
        self.epoch = 3
        self.is_stern = False  # it fences whom it hears

    def answer(self, request: ControllerRequest) -> Values:
        if request.api_key is ApiKey.BROKER_REGISTRATION:
            return {"error_code": ErrorCode.none, "broker_epoch": self.epoch}
        body = request.body
        if body.broker_epoch != self.epoch:
            return {
                "error_code": ErrorCode.stale_broker_epoch,
                "is_caught_up": False,
                "is_fenced": True,
                "should_shut_down": False,
            }
        self.heartbeats.append(body)
        caught_up = body.current_metadata_offset >= 5
        return {
            "error_code": ErrorCode.none,
            "is_caught_up": caught_up,
            "is_fenced": self.is_stern or body.want_fence or not caught_up,
            "should_shut_down": body.want_shut_down,
        }


def now_ms() -> int:
    return int(time.monotonic() * 1000)


def make(
    address: Any, config: LifecycleConfig, applied_offset: Any
) -> tuple[BrokerLifecycle, LifecycleRunner]:
    identity = BrokerIdentity(
        broker_id=1,
        cluster_id="c",
        incarnation_id=UUID(int=9 << 64),
        listeners=(),
        features=(),
        log_dirs=(UUID(int=1 << 90),),
    )
    lifecycle = BrokerLifecycle(identity, config, MiddleRandomSource())
    channel = ControllerChannel(address, client_id="hb", request_timeout_ms=500, retry_timeout_ms=500)
    return lifecycle, LifecycleRunner(lifecycle, channel, now_ms, applied_offset, config.session_timeout_ms)


def test_from_registration_to_controlled_shutdown() -> None:
    async def work() -> None:
        registrar = Registrar()
        async with RunningController(1, registrar.answer) as controller:
            applied = [-1]
            config = LifecycleConfig(heartbeat_interval_ms=20)
            lifecycle, runner = make(lambda: controller.address, config, lambda: applied[0])
            runner.start()
            recovered = runner.wait_for(BrokerState.RECOVERY)
            await eventually(lambda: len(registrar.heartbeats) >= 2)
            assert not recovered.done(), "it has not applied its own registration yet"
            applied[0] = 5
            await recovered
            running = runner.wait_for(BrokerState.RUNNING)
            assert not running.done()
            runner.set_ready_to_unfence()
            assert await running is BrokerState.RUNNING
            assert lifecycle.broker_epoch == 3
            runner.begin_controlled_shutdown()
            await runner.wait_for(BrokerState.SHUTTING_DOWN)
            assert registrar.heartbeats[-1].want_shut_down
            runner.close()

    run(work())


def test_a_broker_that_finds_no_controller_ends_and_says_why() -> None:
    async def work() -> str | None:
        config = LifecycleConfig(initial_registration_timeout_ms=150)
        lifecycle, runner = make(lambda: None, config, lambda: -1)
        runner.start()
        await runner.wait_for(BrokerState.SHUTTING_DOWN)
        runner.close()
        return lifecycle.failure

    failure = run(work())
    assert failure is not None
    assert "150 ms" in failure


def test_closing_ends_every_wait() -> None:
    async def work() -> None:
        _, runner = make(lambda: None, LifecycleConfig(), lambda: -1)
        runner.start()
        waiting = runner.wait_for(BrokerState.RUNNING)
        runner.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(work())


@pytest.fixture
def heard_lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_a_broker_that_runs_says_that_it_is_fenced_and_registers_again_when_it_is_forgotten(
    heard_lines: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        registrar = Registrar()
        async with RunningController(1, registrar.answer) as controller:
            lifecycle, runner = make(
                lambda: controller.address, LifecycleConfig(heartbeat_interval_ms=20), lambda: 5
            )
            runner.start()
            runner.set_ready_to_unfence()
            await runner.wait_for(BrokerState.RUNNING)
            registrar.is_stern = True
            await eventually(lambda: lifecycle.is_fenced)
            registrar.is_stern = False
            await eventually(lambda: not lifecycle.is_fenced)
            registrar.epoch = 9
            await eventually(lambda: lifecycle.broker_epoch == 9 and not lifecycle.is_fenced)
            assert lifecycle.state is BrokerState.RUNNING
            runner.close()

    run(work())
    told = warnings(heard_lines)
    assert told[0].startswith("this broker is fenced: clients are sent elsewhere")
    assert "Registering again" in told[1]


class TestRefusals:
    """The session of a previous process that was not shut down in order is waited for, and the broker says so."""

    def test_the_session_of_the_previous_process_is_named_with_its_end(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        now = [0]
        refusals = Refusals(lambda: now[0], session_timeout_ms=9_000)
        for now[0] in range(0, 7_000, 500):
            refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration, 7_000)
        now[0] = 7_000
        refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.none)
        (told,) = warnings(heard_lines)
        assert re.match(
            r"waiting until \d\d:\d\d:07 \(7 s\) for the end of the session of this broker's prev", told
        )
        assert "9000 ms (broker.session.timeout.ms) after the last heartbeat" in told
        assert (
            heard_lines.messages[-1]
            == "registered after 7000 ms: the session of the previous process is over"
        )

    def test_a_session_that_a_new_controller_counts_again_is_reported_again_without_a_duplicate_warning(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        now = [0]
        refusals = Refusals(lambda: now[0], session_timeout_ms=9_000)
        for now[0] in (0, 8_000, 16_000):
            refusals.handle_new_controller()
            refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration, now[0] + 9_000)
        told = warnings(heard_lines)
        assert [re.findall(r":(\d\d) \(9 s\)", line) for line in told] == [["09"], ["17"], ["25"]]

    def test_a_controller_listed_twice_is_reported_once(self, heard_lines: pytest.LogCaptureFixture) -> None:
        refusals = Refusals(lambda: 0, session_timeout_ms=9_000)
        for ends_ms in (9_000, 9_030):
            refusals.handle_new_controller()
            refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration, ends_ms)
        assert len(warnings(heard_lines)) == 1

    def test_the_next_wait_is_a_new_one(self, heard_lines: pytest.LogCaptureFixture) -> None:
        """A broker that ran for a minute and lost its id to a process that died since reports no duplicate."""
        now = [0]
        refusals = Refusals(lambda: now[0], session_timeout_ms=9_000)
        refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration, 9_000)
        refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.none)
        now[0] = 60_000
        refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration, 69_000)
        assert [line[:13] for line in warnings(heard_lines)] == ["waiting until"] * 2

    @pytest.mark.parametrize("says_when", [True, False], ids=["our controller", "Kafka's controller"])
    def test_a_session_that_does_not_end_is_that_of_another_process(
        self, heard_lines: pytest.LogCaptureFixture, says_when: bool
    ) -> None:
        """A controller that does not say when leaves the first estimate standing."""
        now = [0]
        refusals = Refusals(lambda: now[0], session_timeout_ms=9_000)
        for now[0] in range(0, 15_000, 500):
            ends_ms = now[0] + 9_000 if says_when else 9_000
            refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration, ends_ms)
        waits, accuses = warnings(heard_lines)
        assert waits.startswith("waiting until")
        assert "another process with this node id" in accuses

    def test_another_refusal_is_reported_at_once_and_each_in_its_own_words(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        refusals = Refusals(lambda: 0, session_timeout_ms=9_000)
        for error in (
            ErrorCode.unsupported_version,
            ErrorCode.unsupported_version,
            ErrorCode.stale_broker_epoch,
            ErrorCode.inconsistent_cluster_id,
        ):
            refusals.note(ApiKey.BROKER_HEARTBEAT, error)
        other, lost, foreign = warnings(heard_lines)
        assert other == "the controller refused BROKER_HEARTBEAT: unsupported_version"
        assert lost.endswith("it was unregistered, or another process has its node id. Registering again")
        assert foreign.startswith("the controllers belong to another cluster than this broker's folders")
