"""The channel finds the active controller, and goes on looking while its time lasts."""

import asyncio
import socket
from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.adapters.controller_channel import (
    ControllerAddress,
    ControllerUnavailable,
)
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.network.errors import NoCommonVersion
from kquorum.network.server import KafkaServer
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values, message_of
from tests.support.metadata.controller_channel import HEARTBEAT, Leadership, channel_to, heartbeat_answer
from tests.support.running_controllers import RunningController, eventually, run


def accept(_request: ControllerRequest) -> Values:
    return heartbeat_answer()


def refuse(_request: ControllerRequest) -> Values:
    return heartbeat_answer(ErrorCode.not_controller)


def test_a_request_is_answered_by_the_leader_and_the_connection_is_kept() -> None:
    async def work() -> int:
        async with RunningController(1, accept) as controller:
            channel = channel_to(Leadership(controller.address))
            for _ in range(3):
                response: Any = await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT))
                assert response.is_caught_up
            channel.close()
            assert [request.body.broker_epoch for request in controller.controller.requests] == [5, 5, 5]
            return controller.server.counters.accepted_connections

    assert run(work()) == 1


def test_without_a_known_leader_it_waits_until_one_is_known() -> None:
    async def work() -> None:
        async with RunningController(1, accept) as controller:
            leadership = Leadership()
            channel = channel_to(leadership)
            waiting = asyncio.create_task(channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT)))
            await eventually(lambda: leadership.asked >= 2)
            leadership.address = controller.address
            channel.handle_leader_change(1, 1)
            assert (await waiting).is_caught_up
            channel.close()

    run(work())


def test_a_controller_that_lost_leadership_is_left_for_the_new_one() -> None:
    async def work() -> None:
        leadership = Leadership()
        async with RunningController(2, accept) as new:

            def step_down(request: ControllerRequest) -> Values:
                leadership.address = new.address
                return refuse(request)

            async with RunningController(1, step_down) as old:
                leadership.address = old.address
                channel = channel_to(leadership)
                assert (await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT))).is_caught_up
                channel.close()
            assert len(new.controller.requests) == 1

    run(work())


def test_a_lost_connection_is_followed_by_another_attempt() -> None:
    async def work() -> None:
        async with RunningController(1, accept) as controller:
            dropped: list[int] = []

            def drop_once(request: ControllerRequest) -> Values | None:
                if not dropped:
                    dropped.append(1)
                    raise AssertionError("the server closes a connection whose request fails")
                return accept(request)

            controller.controller.answer = drop_once
            channel = channel_to(Leadership(controller.address))
            assert (await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT))).is_caught_up
            channel.close()

    run(work())


def test_a_request_at_a_leader_that_hangs_moves_to_the_new_leader_at_once() -> None:
    async def work() -> None:
        async with RunningController(1, lambda _: None) as hanging, RunningController(2, accept) as new:
            leadership = Leadership(hanging.address)
            channel = channel_to(leadership, retry_timeout_ms=25_000, request_timeout_ms=25_000)
            waiting = asyncio.create_task(channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT)))
            await eventually(lambda: hanging.controller.requests)
            leadership.address = new.address
            channel.handle_leader_change(2, 2)
            async with asyncio.timeout(60):
                assert (await waiting).is_caught_up
            channel.close()

    run(work())


def test_the_reason_is_given_when_the_time_is_up() -> None:
    async def work(leadership: Leadership) -> None:
        await channel_to(leadership, retry_timeout_ms=200).call(
            message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT)
        )

    with pytest.raises(
        ControllerUnavailable, match=r"BROKER_HEARTBEAT within 200 ms: no active controller is known"
    ):
        run(work(Leadership()))

    async def refused() -> None:
        async with RunningController(1, refuse) as controller:
            await work(Leadership(controller.address))

    with pytest.raises(ControllerUnavailable, match="node 1 is no longer the active controller"):
        run(refused())


def test_a_last_attempt_cut_short_does_not_hide_the_reason() -> None:
    """The reason is what the attempts with their full time met, not that the last one had a millisecond left."""

    async def work() -> None:
        with socket.socket() as hangs:
            hangs.bind(("127.0.0.1", 0))
            hangs.listen()
            leadership = Leadership(ControllerAddress(1, *hangs.getsockname()))
            channel = channel_to(leadership, request_timeout_ms=60, retry_timeout_ms=250)
            await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT))

    with pytest.raises(ControllerUnavailable, match=r"did not answer BrokerHeartbeat within 60 ms$"):
        run(work())


def test_an_error_other_than_not_controller_is_for_the_caller() -> None:
    async def work() -> Any:
        def stale(_request: ControllerRequest) -> Values:
            return heartbeat_answer(ErrorCode.stale_broker_epoch)

        async with RunningController(1, stale) as controller:
            channel = channel_to(Leadership(controller.address))
            response = await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT))
            channel.close()
            return response.error_code

    assert run(work()) is ErrorCode.stale_broker_epoch


def test_a_controller_without_the_api_is_reported() -> None:
    async def work() -> None:
        server = KafkaServer(
            host="127.0.0.1", port=0, handler=lambda *_: None, supported={}, listener_name="CONTROLLER"
        )
        await server.start()
        try:
            channel = channel_to(Leadership(ControllerAddress(1, "127.0.0.1", server.bound_port)))
            await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT))
        finally:
            await server.stop()

    with pytest.raises(NoCommonVersion):
        run(work())


def test_a_controller_that_is_too_old_for_a_field_gets_no_request_and_keeps_its_connection() -> None:
    """It is the caller's to leave the field out; to send the request again would be in vain."""

    async def work() -> None:
        def no_answer(*_: object) -> None:
            raise AssertionError("a request without the field was sent")

        server = KafkaServer(
            host="127.0.0.1",
            port=0,
            handler=no_answer,
            supported={ApiKey.BROKER_HEARTBEAT: (0, 0)},
            listener_name="CONTROLLER",
        )
        await server.start()
        doubts: list[str] = []
        channel = channel_to(Leadership(ControllerAddress(1, "127.0.0.1", server.bound_port)))
        request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=5, offline_log_dirs=(UUID(int=9),))
        told = r"BrokerHeartbeat cannot be sent to 127.0.0.1:\d+: .*version 0 has no field offline_log_dirs"
        try:
            for _ in range(2):
                with pytest.raises(NoCommonVersion, match=told):
                    await channel.call(request, lambda: doubts.append("doubt"))
            assert (doubts, server.counters.accepted_connections) == ([], 1)
        finally:
            channel.close()
            await server.stop()

    run(work())
