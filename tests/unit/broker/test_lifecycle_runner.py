"""The runner carries a broker through its life against a controller that answers as Kafka's would."""

import asyncio
import logging
import time
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from broker.adapters.lifecycle_runner import REPEAT_REFUSAL_MS, LifecycleRunner, Refusals
from broker.lifecycle import BrokerIdentity, BrokerLifecycle, LifecycleConfig
from broker.lifecycle_states import BrokerState
from metadata.adapters.controller_channel import ControllerChannel
from metadata.controller.requests import ControllerRequest, Values
from tests.unit.metadata_adapters.controllers import RunningController, eventually, run
from wire.protocol.api_keys import ApiKey


class MiddleDice:
    def randint(self, low: int, high: int) -> int:
        return (low + high) // 2


class Registrar:
    """Takes any broker, finds it caught up at offset 5, unfences it when it asks, and lets it go."""

    def __init__(self) -> None:
        self.heartbeats: list[Any] = []

    def answer(self, request: ControllerRequest) -> Values:
        if request.api_key is ApiKey.BROKER_REGISTRATION:
            return {"error_code": ErrorCode.none, "broker_epoch": 3}
        body = request.body
        self.heartbeats.append(body)
        caught_up = body.current_metadata_offset >= 5
        return {
            "error_code": ErrorCode.none,
            "is_caught_up": caught_up,
            "is_fenced": body.want_fence or not caught_up,
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
    lifecycle = BrokerLifecycle(identity, config, MiddleDice())
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


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


class TestRefusals:
    """A former run that was not shut down in order is waited for, and the broker says so once."""

    def test_the_former_run(self, heard_lines: pytest.LogCaptureFixture) -> None:
        now = [0]
        refusals = Refusals(lambda: now[0], session_timeout_ms=9_000)
        for now[0] in range(0, 8_000, 500):
            refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration)
        refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.none)
        (told,) = warnings(heard_lines)
        assert "former run of this broker" in told
        assert "9000 ms (broker.session.timeout.ms)" in told
        assert heard_lines.messages[-1] == "registered after 7500 ms of waiting for the former run"

    def test_a_former_run_that_goes_on_is_another_process(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        now = [0]
        refusals = Refusals(lambda: now[0], session_timeout_ms=9_000)
        for now[0] in (0, REPEAT_REFUSAL_MS):
            refusals.note(ApiKey.BROKER_REGISTRATION, ErrorCode.duplicate_broker_registration)
        assert "another process with this node id" in warnings(heard_lines)[1]

    def test_another_refusal_is_told_at_once(self, heard_lines: pytest.LogCaptureFixture) -> None:
        refusals = Refusals(lambda: 0, session_timeout_ms=9_000)
        for error in (
            ErrorCode.unsupported_version,
            ErrorCode.unsupported_version,
            ErrorCode.inconsistent_cluster_id,
        ):
            refusals.note(ApiKey.BROKER_HEARTBEAT, error)
        assert warnings(heard_lines) == [
            "the controller refused BROKER_HEARTBEAT: unsupported_version",
            "the controller refused BROKER_HEARTBEAT: inconsistent_cluster_id",
        ]

    def test_a_broker_that_was_unregistered_is_told_to_be_restarted(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        Refusals(lambda: 0, session_timeout_ms=9_000).note(
            ApiKey.BROKER_HEARTBEAT, ErrorCode.stale_broker_epoch
        )
        (told,) = warnings(heard_lines)
        assert "the broker was unregistered" in told
        assert told.endswith("Restart it to register it again")
