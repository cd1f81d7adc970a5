"""Whose request is on its way, and who waits for a turn."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kquorum.metadata.adapters import controller_channel
from kquorum.metadata.adapters.controller_channel import ClientGone, ControllerUnavailable
from kquorum.metadata.adapters.shares import Shares
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import message_of, response_of
from tests.support.metadata.controller_channel import HEARTBEAT, Leadership, channel_to, heartbeat_answer
from tests.support.running_controllers import RunningController, eventually, run


class Table:
    """Takes shares in tasks; `granted` are those that have one, in the order in which they got it."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self.shares = Shares(most, most_of_one)
        self.granted: list[str] = []

    async def ask(self, *names: str) -> list["asyncio.Task[None]"]:
        tasks = [asyncio.create_task(self._take(name)) for name in names]
        await self.settle()
        return tasks

    async def give_back(self, name: str) -> str:
        """The holders of one for it."""
        before = len(self.granted)
        self.shares.give_back(name)
        await self.settle()
        return "".join(self.granted[before:])

    async def settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def _take(self, name: str) -> None:
        await self.shares.take(name)
        self.granted.append(name)


def test_one_name_has_its_share_and_no_more() -> None:
    async def work() -> None:
        table = Table(4, 2)
        await table.ask("a", "a", "a", "a", "b")
        assert table.granted == ["a", "a", "b"]
        assert await table.give_back("b") == "", "room for others, not for more of the same"
        assert await table.give_back("a") == "a"

    run(work())


def test_names_take_turns_whichever_has_more_that_wait() -> None:
    async def work() -> None:
        table = Table(2, 2)
        await table.ask("x", "x", "a", "a", "a", "a", "b", "c")
        assert [await table.give_back(name) for name in ("x", "x", "a", "b", "c")] == [
            "a",
            "b",
            "c",
            "a",
            "a",
        ]
        assert await table.give_back("a") == "a"
        assert table.shares.waiting == 0

    run(work())


def test_a_cancelled_wait_takes_nothing_from_the_others() -> None:
    async def work() -> None:
        table = Table(1, 1)
        _, gone, _ = await table.ask("x", "a", "b")
        gone.cancel()
        await table.settle()
        assert await table.give_back("x") == "b"

    run(work())


def test_a_share_that_was_given_to_one_that_is_cancelled_goes_on_to_the_next() -> None:
    async def work() -> None:
        table = Table(1, 1)
        _, gone, _ = await table.ask("x", "a", "b")
        table.shares.give_back("x")
        gone.cancel()
        await table.settle()
        assert table.granted == ["x", "b"]

    run(work())


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_channel, "SHARE_OF_ONE", 2)
    monkeypatch.setattr(controller_channel, "SHARE_OF_ALL", 3)


class Silent:
    """A controller that answers when the test says so."""

    def __init__(self) -> None:
        self.replies: list[Callable[[], None]] = []

    def handle_request(
        self, _now_ms: int, request: ControllerRequest, reply: Callable[[Response], None]
    ) -> None:
        answer = response_of(request.api_key, request.api_version, heartbeat_answer())
        self.replies.append(lambda: reply(answer))


@pytest.mark.usefixtures("small_shares")
def test_a_channel_has_some_requests_on_their_way_and_the_others_wait_until_they_are_answered() -> None:
    """A broker once forwarded all requests of one user at the same time."""

    async def work() -> None:
        async with RunningController(1, lambda _request: heartbeat_answer()) as controller:
            silent: Any = Silent()
            controller.controller.handle_request = silent.handle_request  # type: ignore[method-assign]
            channel = channel_to(Leadership(controller.address), request_timeout_ms=60_000)
            asked = [
                asyncio.create_task(channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT), share=name))
                for name in ("a", "a", "a", "a", "b")
            ]
            await eventually(lambda: len(silent.replies) == 3)
            assert channel._shares.waiting == 2
            unnamed = asyncio.create_task(channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT)))
            await eventually(lambda: len(silent.replies) == 4)
            for number in range(6):
                await eventually(lambda number=number: len(silent.replies) > number)  # type: ignore[misc]
                silent.replies[number]()
            await asyncio.gather(unnamed, *asked)
            channel.close()

    run(work())


@pytest.mark.usefixtures("small_shares")
def test_a_request_whose_client_is_gone_when_its_turn_comes_is_not_sent() -> None:
    async def work() -> None:
        async with RunningController(1, lambda _request: heartbeat_answer()) as controller:
            channel = channel_to(Leadership(controller.address))
            with pytest.raises(ClientGone):
                await channel.call(
                    message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT), share="a", is_gone=lambda: True
                )
            for _ in range(3):
                await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT), share="a")
            assert len(controller.controller.requests) == 3
            channel.close()

    run(work())


@pytest.mark.usefixtures("small_shares")
def test_a_request_that_waits_too_long_for_its_turn_times_out() -> None:
    async def work() -> None:
        channel = channel_to(Leadership(), retry_timeout_ms=50)
        for _ in range(2):
            await channel._shares.take("a")
        with pytest.raises(ControllerUnavailable, match="requests of a, or of all clients, were before it"):
            await channel.call(message_of(ApiKey.BROKER_HEARTBEAT, HEARTBEAT), share="a")
        assert channel._shares.waiting == 0

    run(work())
