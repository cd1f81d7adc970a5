"""How a broker that gets a stop signal leaves the cluster."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kquorum.broker.lifecycle_states import BrokerState
from kquorum.node.broker import BrokerRole


class Runner:
    """Writes down what was begun; the controller lets the broker go where `is_granted`."""

    def __init__(self, *, is_granted: bool) -> None:
        self._is_granted = is_granted
        self.begun: list[str] = []

    def begin_controlled_shutdown(self) -> None:
        self.begun.append("controlled")

    def begin_shutdown(self) -> None:
        self.begun.append("at once")

    async def wait_for(self, *states: BrokerState) -> None:
        assert states == (BrokerState.SHUTTING_DOWN,)
        if not self._is_granted:
            await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("state", "is_enabled", "is_granted", "begun"),
    [
        (BrokerState.RUNNING, True, True, ["controlled"]),
        (BrokerState.RUNNING, True, False, ["controlled", "at once"]),
        (BrokerState.RUNNING, False, True, ["at once"]),
        (BrokerState.RECOVERY, True, True, ["at once"]),
    ],
)
def test_leaders_move_away_first_where_there_are_any_and_not_for_ever(
    state: BrokerState, is_enabled: bool, is_granted: bool, begun: list[str]
) -> None:
    role: Any = SimpleNamespace(
        _config=SimpleNamespace(controlled_shutdown_enable=is_enabled, broker_session_timeout_ms=20),
        lifecycle=SimpleNamespace(state=state),
        _data=SimpleNamespace(begin_controlled_shutdown=lambda: None),
    )
    runner: Any = Runner(is_granted=is_granted)
    asyncio.run(asyncio.wait_for(BrokerRole._leave(role, runner), 20))
    assert runner.begun == begun


def test_answers_that_wait_are_given_up_before_the_servers_wait_for_answers() -> None:
    begun: list[str] = []

    def part(name: str) -> Any:
        async def stop(*_: object) -> None:
            begun.append(f"{name} stops")

        return SimpleNamespace(stop=stop, end_waits=lambda: begun.append(f"{name} ends waits"))

    role: Any = SimpleNamespace(
        _runner=None,
        servers=[part("server")],
        _listener=part("listener"),
        _topic_creation=part("creation"),
        _data=part("data"),
        lifecycle=SimpleNamespace(broker_epoch=7),
        _log_dirs=SimpleNamespace(close=lambda: None),
        _managers=(),
    )
    asyncio.run(BrokerRole.stop(role))
    assert begun == ["listener ends waits", "server stops", "listener stops", "creation stops", "data stops"]
