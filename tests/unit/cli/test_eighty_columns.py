"""The tables of the commands keep to the 80 columns of a terminal, with numbers as large as they come."""

import pytest

from cli.broker_rows import SPARE_COLUMNS, BrokerRow, table_of
from cli.commands.configs import _print_table
from cli.config_client import ConfigView
from cli.leaderless import ControllerAnswer, controllers_table
from cli.output import print_table, show_table
from cli.quorum_states import ReplicaState
from cli.quorum_status import QuorumStatus, ReplicaLag
from cli.quorum_tables import history_table, quorum_table
from raft.elections_history import Cause, Election
from tests.unit.cli.test_output import SENTENCE, on_a_terminal, widest

NOW_MS = 1_700_000_000_000
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def broker(says: str | None) -> BrokerRow:
    return BrokerRow(
        broker_id=101,
        host="127.0.0.1",
        port=29092,
        rack="rack-a",
        fenced=False,
        state="active",
        epoch=12_345,
        applied_offset=1_234_567,
        lag=12_345,
        silent_ms=999,
        directories=("a", "b"),
        says=says,
    )


def replica(replica_id: int, directory_id: str | None) -> ReplicaLag:
    return ReplicaLag(
        replica_id=replica_id,
        directory_id=directory_id,
        log_end_offset=1_234_567,
        lag=0,
        last_fetch_timestamp_ms=NOW_MS - 100,
        last_caught_up_timestamp_ms=NOW_MS - 100,
        alive=True,
        state=ReplicaState(offset=1_234_566, hash="f17915cb12345678", differs_at=None),
    )


@pytest.mark.parametrize("says", [None, SENTENCE])
def test_brokers(monkeypatch: pytest.MonkeyPatch, says: str | None) -> None:
    terminal = on_a_terminal(monkeypatch)
    print_table("cluster a3F1b3J1bS1leGFtcGxlMQ", *table_of([broker(says)]), spare=SPARE_COLUMNS)
    assert widest(terminal.getvalue()) <= 80
    assert "12,345" in terminal.getvalue(), "how far it lags is never left out"


@pytest.mark.parametrize("ids", [(1, 2, 3), (1, 2, 2)], ids=["as usual", "with a replaced disk"])
def test_quorum_status(monkeypatch: pytest.MonkeyPatch, ids: tuple[int, ...]) -> None:
    terminal = on_a_terminal(monkeypatch)
    voters = tuple(replica(each, DIRECTORY) for each in ids)
    found = QuorumStatus(
        leader_id=1, leader_epoch=12, high_watermark=1_234_567, voters=voters, observers=(replica(11, None),)
    )
    show_table(quorum_table(found, NOW_MS))
    assert widest(terminal.getvalue()) <= 80
    assert ("f17915cb" in terminal.getvalue()) == (len(set(ids)) == len(ids)), "the ids come first"


def test_quorum_history(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    election = Election(
        epoch=1234,
        began_ms=NOW_MS,
        cause=Cause.NO_WINNER,
        detail=SENTENCE,
        stood=(1, 2, 3),
        voted_for_winner=(2, 3),
        won_ms=NOW_MS,
        offset=1_234_567,
        winner=2,
        leaderless_ms=12_345,
    )
    show_table(history_table([election], [f"127.0.0.1:{port}" for port in range(29191, 29199)]))
    assert widest(terminal.getvalue()) <= 80


def test_a_quorum_without_a_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    silent = ControllerAnswer(node_id=1, address="127.0.0.1:29191", answers=False, reason=SENTENCE)
    known = ControllerAnswer(
        node_id=3000, address="127.0.0.1:29192", answers=True, leader_id=3000, leader_epoch=12_345
    )
    show_table(controllers_table([silent, known]))
    assert widest(terminal.getvalue()) <= 80


def test_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    names = ("transaction.remove.expired.transaction.cleanup.interval.ms", "listener.security.protocol.map")
    configs = [
        ConfigView(
            name=name,
            value="CONTROLLER:SSL," * 5,
            source="config file",
            type="boolean",
            is_sensitive=False,
            read_only=True,
            documentation=None,
            synonyms=(),
        )
        for name in names
    ]
    _print_table("broker 11", configs)
    assert widest(terminal.getvalue()) <= 80
