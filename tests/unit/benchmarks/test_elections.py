"""The arithmetic of the elections benchmark, and its client against controllers that are played."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import _quorum_writer, elections
from benchmarks._quorum_writer import (
    AcknowledgedWriteLostError,
    NoWriteAcknowledgedError,
    Writer,
    WriteRefusedError,
)
from tests.jepsen.errors import not_sent
from wire.protocol.apis import ApiKey
from wire.protocol.entities import ErrorCode

PATIENCE_S = 10.0


class Controllers:
    """Two controllers of which one leads, or none (`leader_id` -1)."""

    def __init__(self, leader_id: int = 1) -> None:
        self.leader_id = leader_id
        self.error = ErrorCode.none
        self.next_producer_id = 0
        self.step = 1000

    def client(self, host: str, port: int, timeout_s: float) -> "PlayedClient":
        return PlayedClient(self, port)


class PlayedClient:
    def __init__(self, controllers: Controllers, node_id: int) -> None:
        self._controllers = controllers
        self._node_id = node_id

    def request(self, api_key: ApiKey, values: Mapping[str, object]) -> Any:
        controllers = self._controllers
        if controllers.leader_id < 0:
            raise not_sent("nobody is there")
        if self._node_id != controllers.leader_id:
            return SimpleNamespace(error_code=ErrorCode.not_controller)
        if api_key is ApiKey.BROKER_REGISTRATION:
            return SimpleNamespace(error_code=controllers.error, broker_epoch=5)
        assert values["broker_epoch"] == 5
        controllers.next_producer_id += controllers.step
        return SimpleNamespace(error_code=controllers.error, producer_id_start=controllers.next_producer_id)

    def close(self) -> None:
        pass


@pytest.fixture
def controllers(monkeypatch: pytest.MonkeyPatch) -> Controllers:
    played = Controllers()
    monkeypatch.setattr(_quorum_writer, "RawClient", played.client)
    return played


def writer() -> Writer:
    return Writer({1: ("played", 1), 2: ("played", 2)}, "cluster")


def test_the_writer_finds_whoever_leads_and_says_when(controllers: Controllers) -> None:
    with writer() as writing:
        first = writing.first(lambda write: write.node_id == 1, 0.0, PATIENCE_S)
        controllers.leader_id = 2
        second = writing.first(lambda write: write.node_id == 2, first.at_s, PATIENCE_S)
        last = writing.last_by(1, 0.0)
    assert last is not None
    assert first.at_s <= last.at_s <= second.sent_at_s <= second.at_s
    assert len(writing.latencies_s(0.0, second.at_s)) >= 2


def test_the_writer_names_what_the_controllers_said_when_none_takes_a_write(controllers: Controllers) -> None:
    controllers.leader_id = -1
    with writer() as writing, pytest.raises(NoWriteAcknowledgedError, match="nobody is there"):
        writing.first(lambda _: True, 0.0, 0.1)


def test_the_writer_does_not_go_on_after_a_refusal_that_time_does_not_mend(controllers: Controllers) -> None:
    controllers.error = ErrorCode.stale_broker_epoch
    with writer() as writing, pytest.raises(WriteRefusedError, match="STALE_BROKER_EPOCH"):
        writing.first(lambda _: True, 0.0, PATIENCE_S)


def test_the_writer_sees_that_an_acknowledged_write_was_lost(controllers: Controllers) -> None:
    with writer() as writing:
        seen = writing.first(lambda _: True, 0.0, PATIENCE_S)
        controllers.step = 0
        with pytest.raises(AcknowledgedWriteLostError):
            writing.first(lambda _: False, seen.at_s, PATIENCE_S)


def test_a_row_states_the_times_against_timeout_and_write() -> None:
    losses = [
        elections.Loss(to_commit_s=number / 10, without_writes_s=0.4, epochs=epochs, write_s=(0.005, 0.004))
        for number, epochs in ((6, 1), (5, 1), (9, 2))
    ]
    row = elections.row_of(elections.TIMEOUTS["tight"], "kill", losses)
    assert (row["p50_ms"], row["p99_ms"], row["max_ms"]) == pytest.approx((600, 900, 900))
    assert row["fetch_timeouts"] == pytest.approx(1.2)
    assert row["writes"] == pytest.approx(150)
    assert row["epochs_max"] == 2
    assert row["times"] == 3


def test_fast_means_few_leaders_and_short_timeouts() -> None:
    options = elections.options_of(["--fast", "--times", "50"])
    assert (options.times, options.timeouts) == (elections.FAST_TIMES, ["tight"])
    assert elections.options_of(["--times", "50"]).times == 50


def test_no_times_at_all_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        elections.options_of(["--times", "0"])
    assert "--times is 0" in capsys.readouterr().err
