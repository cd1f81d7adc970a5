"""After which attempts a sender must doubt that nothing was carried out, and when it sends no more."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kquorum.metadata.adapters.controller_channel import (
    LEADERS_MAX,
    LOSSES_IN_COMPANY,
    LOSSES_MAX,
    AlreadyDone,
    ControllerAddress,
    ControllerChannel,
    ControllerUnavailable,
    LostConnections,
)
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values, message_of
from tests.support.running_controllers import RunningController, eventually, run


def channel_to(address: ControllerAddress, retry_timeout_ms: int = 5_000) -> ControllerChannel:
    return ControllerChannel(
        lambda: address, client_id="test", request_timeout_ms=1_000, retry_timeout_ms=retry_timeout_ms
    )


def test_a_controller_that_answers_not_controller_may_have_carried_it_out() -> None:
    errors = [ErrorCode.not_controller, ErrorCode.not_controller, ErrorCode.none]
    doubts: list[int] = []

    def answer(_request: ControllerRequest) -> Values:
        return {"error_code": errors.pop(0), "error_message": None}

    async def work() -> None:
        async with RunningController(1, answer) as controller:
            channel = channel_to(controller.address)
            response = await channel.call(
                message_of(ApiKey.UNREGISTER_BROKER, {"broker_id": 1}), lambda: doubts.append(1)
            )
            assert response.error_code is ErrorCode.none
            channel.close()

    run(work())
    assert len(doubts) == 2


def test_a_node_that_was_never_reached_has_carried_nothing_out() -> None:
    doubts: list[int] = []

    async def work() -> None:
        async with RunningController(1, lambda _request: None) as controller:
            closed = controller.address
        channel = channel_to(closed, retry_timeout_ms=150)
        with pytest.raises(ControllerUnavailable):
            await channel.call(
                message_of(ApiKey.UNREGISTER_BROKER, {"broker_id": 1}), lambda: doubts.append(1)
            )
        channel.close()

    run(work())
    assert doubts == []


def test_what_was_done_is_not_sent_again() -> None:
    doubts: list[int] = []

    def answer(_request: ControllerRequest) -> Values:
        raise RuntimeError("the plug is pulled")

    async def work() -> None:
        async with RunningController(1, answer) as controller:
            channel = channel_to(controller.address)
            with pytest.raises(AlreadyDone):
                await channel.call(
                    message_of(ApiKey.UNREGISTER_BROKER, {"broker_id": 1}),
                    lambda: doubts.append(1),
                    is_done=lambda: bool(doubts),
                )
            channel.close()
            assert len(controller.controller.requests) == len(doubts) == 1

    run(work())


POISON = 666


def poisoned(request: ControllerRequest) -> Values | None:
    """One request loses its connection each time, as one does that is larger than the controller's limit; broker 0
    has to wait."""
    if request.body.broker_id == POISON:
        raise RuntimeError("too large for me")
    return None if request.body.broker_id == 0 else {"error_code": ErrorCode.none, "error_message": None}


def test_a_request_that_loses_each_connection_affects_others_twice_and_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LostConnections, "pause_ms", 1)
    doubts: list[int] = []

    async def work() -> None:
        async with RunningController(1, poisoned) as controller:
            channel = channel_to(controller.address)
            asked = controller.controller.requests

            def ask(broker_id: int) -> "asyncio.Task[Any]":
                body = {"broker_id": broker_id}
                on_doubt = (lambda: doubts.append(1)) if broker_id == 0 else (lambda: None)
                return asyncio.create_task(channel.call(message_of(ApiKey.UNREGISTER_BROKER, body), on_doubt))

            other = ask(0)
            await eventually(lambda: asked)
            with pytest.raises(ControllerUnavailable, match="closed by the peer"):
                await ask(POISON)
            assert len([1 for each in asked if each.body.broker_id == POISON]) == LOSSES_MAX
            assert 1 <= len(doubts) <= LOSSES_IN_COMPANY
            assert (await ask(1)).error_code is ErrorCode.none
            other.cancel()
            channel.close()

    run(work())


def test_pauses_grow_and_another_controller_is_asked_at_once() -> None:
    losses, address = LostConnections(), ("a", 1)
    pauses = []
    while not losses.are_too_many:
        losses.add(address)
        pauses.append(losses.pause_ms)
    assert pauses == [50, 100, 200, 400, 800, 1000, 1000, 1000]
    assert losses.demand_solitude(address)
    assert not losses.demand_solitude(("b", 1))
    losses.add(("b", 1))
    assert losses.pause_ms == 50
    assert not losses.are_too_many


def test_a_request_alone_at_a_controller_that_hangs_moves_to_the_new_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LostConnections, "demand_solitude", lambda *_: True)

    async def work() -> None:
        async with RunningController(1, lambda _: None) as hanging, RunningController(2, poisoned) as new:
            leader = [hanging.address]
            channel = ControllerChannel(
                lambda: leader[0], client_id="test", request_timeout_ms=25_000, retry_timeout_ms=25_000
            )
            waiting = asyncio.create_task(
                channel.call(message_of(ApiKey.UNREGISTER_BROKER, {"broker_id": 1}))
            )
            await eventually(lambda: hanging.controller.requests)
            leader[0] = new.address
            channel.handle_leader_change(2, 2)
            async with asyncio.timeout(60):
                assert (await waiting).error_code is ErrorCode.none
            channel.close()

    run(work())


@pytest.mark.parametrize(("is_long", "reached"), [(True, 1), (False, LEADERS_MAX)])
def test_a_request_over_which_controllers_may_lose_their_leadership_does_not_go_from_one_to_the_next(
    is_long: bool, reached: int
) -> None:
    """A request that had deposed one leader was once sent again to each leader that followed."""

    def answer(_request: ControllerRequest) -> Values:
        raise RuntimeError("the loop stood still for so long that another one leads")

    async def work() -> None:
        async with AsyncExitStack() as stack:
            controllers = [
                await stack.enter_async_context(RunningController(number, answer)) for number in range(5)
            ]
            leader = 0

            def lost() -> None:
                nonlocal leader
                leader += 1

            channel = ControllerChannel(
                lambda: controllers[leader].address,
                client_id="test",
                request_timeout_ms=1_000,
                retry_timeout_ms=5_000,
            )
            body = {"broker_id": 1}
            with pytest.raises(ControllerUnavailable, match="may have lost the leadership over it"):
                await channel.call(message_of(ApiKey.UNREGISTER_BROKER, body), lost, is_long=is_long)
            channel.close()
            got = [len(each.controller.requests) for each in controllers]
            assert got == [1] * reached + [0] * (5 - reached)

    run(work())
