"""The tables of the commands keep to the 80 columns of a terminal, with numbers as large as they come."""

import pytest

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag, ReplicaState
from kquorum.cli.commands.brokers.rows import SPARE_COLUMNS, BrokerRow, table_of
from kquorum.cli.commands.configs.command import _print_table
from kquorum.cli.commands.configs.config_client import ConfigView
from kquorum.cli.commands.features.command import _show as show_features
from kquorum.cli.commands.features.features_client import FeaturesView, NodeFeatures
from kquorum.cli.commands.log.files import MetadataLogFiles
from kquorum.cli.commands.quorum.history import history_table
from kquorum.cli.commands.quorum.status import ControllerAnswer, controllers_table, quorum_table
from kquorum.cli.commands.snapshot.list import ListedSnapshot
from kquorum.cli.commands.snapshot.list import _show as show_snapshots
from kquorum.cli.commands.topics.command import _show as show_topic
from kquorum.cli.commands.topics.topic_client import PartitionView, TopicView
from kquorum.cli.output import print_table, show_table
from kquorum.raft.elections_history import Cause, Election
from tests.support.terminals import SENTENCE, Terminal, on_a_terminal, widest, without_colours

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


class TestSixtyColumns:
    """A blank at the end of a line counts: behind the last column, it makes an empty line of the terminal's."""

    def shown(self, terminal: Terminal) -> str:
        found = without_colours(terminal.getvalue())
        assert max(map(len, found.splitlines())) <= 60
        return found

    def test_features(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_a_terminal(monkeypatch, 60)
        names = {"eligible.leader.replicas.version": 1, "metadata.version": 25}
        node = NodeFeatures("127.0.0.1:9092", dict.fromkeys(names, (4, 33)), names, 103)
        show_features(FeaturesView((node,)))
        shown = self.shown(terminal)
        assert "eligible.leader.replicas.version" in shown
        assert "25 (4.0-IV3)" in shown
        assert "4 to 33" in shown

    def test_snapshots(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_a_terminal(monkeypatch, 60)
        listed = ListedSnapshot(
            source="node-1",
            file="00000000000012345678-0000000002.checkpoint",
            end_offset=12_345_678,
            epoch=2,
            size_in_bytes=1_234_567,
            records=23_456,
            last_contained_log_timestamp_ms=NOW_MS,
            kraft_version=0,
            voters=None,
            state="whole",
            fault=None,
        )
        show_snapshots(MetadataLogFiles("node-1", None), [listed])
        shown = self.shown(terminal)
        assert "12,345,678" in shown
        assert "whole" in shown

    def test_a_topic(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_a_terminal(monkeypatch, 60)
        replicas = (101, 102, 103, 104)
        partition = PartitionView(
            partition_id=1234,
            leader=101,
            leader_epoch=12_345,
            replicas=replicas,
            isr=replicas,
            offline_replicas=(),
        )
        show_topic(TopicView(name="orders", topic_id=DIRECTORY, partitions=(partition,)))
        assert self.shown(terminal).count("101 102 103 104") == 2
