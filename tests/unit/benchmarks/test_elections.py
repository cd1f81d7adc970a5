"""The arithmetic of the elections benchmark, and its clients against controllers that are played."""

import json
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest
from rich.progress import Progress

from benchmarks import _quorum_writer, elections
from benchmarks._failover_cluster import replayed_to
from benchmarks._failover_losses import Loss, LossFile, open_losses, read_losses
from benchmarks._failover_ways import WAYS, WayUnavailableError
from benchmarks._failover_writer import SearchingWriter
from benchmarks._quorum_writer import (
    AcknowledgedWriteLostError,
    NoWriteAcknowledgedError,
    Writer,
    WriteRefusedError,
)
from kquorum.cli.clients.quorum_client import ReplicaLag, ReplicaState
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.errors import not_sent

PATIENCE_S = 10.0


class Controllers:
    """Two controllers; one leads, or none (`leader_id` -1). The mute one leaves a request open, until it has to
    answer; it is not mute then any more."""

    def __init__(self, leader_id: int = 1) -> None:
        self.leader_id = leader_id
        self.error = ErrorCode.none
        self.next_producer_id = 0
        self.step = 1000
        self.mute_id = -1
        self.mute_answers = threading.Event()
        self.next_of_mute = 0

    def client(self, host: str, port: int, timeout_s: float) -> "PlayedClient":
        return PlayedClient(self, port)


class PlayedClient:
    def __init__(self, controllers: Controllers, node_id: int) -> None:
        self._controllers = controllers
        self._node_id = node_id

    def request(self, api_key: ApiKey, values: Mapping[str, object]) -> Any:
        controllers = self._controllers
        if controllers.leader_id < 0:
            raise not_sent("no node is there")
        if self._node_id == controllers.mute_id:
            assert controllers.mute_answers.wait(PATIENCE_S)
            controllers.mute_id = -1
            return SimpleNamespace(error_code=ErrorCode.none, producer_id_start=controllers.next_of_mute)
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


def test_the_writer_finds_the_leader_and_records_when(controllers: Controllers) -> None:
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
    with writer() as writing, pytest.raises(NoWriteAcknowledgedError, match="no node is there"):
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


def searching_writer() -> SearchingWriter:
    return SearchingWriter({1: ("played", 1), 2: ("played", 2)}, "cluster")


def mute_the_leader(controllers: Controllers, next_of_mute: int) -> None:
    """The other leads from now on, and takes note of nothing that the mute one gives out."""
    controllers.next_of_mute = next_of_mute
    controllers.mute_id, controllers.leader_id = 1, 2


def test_a_leader_that_leaves_a_request_open_does_not_hide_its_successor(controllers: Controllers) -> None:
    with searching_writer() as writing:
        first = writing.first(lambda write: write.node_id == 1, 0.0, PATIENCE_S)
        mute_the_leader(controllers, -5)
        second = writing.first(lambda write: write.node_id == 2, first.at_s, PATIENCE_S)
        last = writing.last_before(second.at_s)
        controllers.mute_answers.set()
    assert last is not None
    assert last.node_id == 1
    assert writing.last_before(0.0) is None


def test_a_late_acknowledgement_of_the_lost_leader_counts_if_its_block_was_given_out_once(
    controllers: Controllers,
) -> None:
    with searching_writer() as writing:
        first = writing.first(lambda write: write.node_id == 1, 0.0, PATIENCE_S)
        mute_the_leader(controllers, 0)
        second = writing.first(lambda write: write.node_id == 2, first.at_s, PATIENCE_S)
        controllers.next_of_mute = second.first_producer_id - controllers.step // 2
        controllers.mute_answers.set()
        late = writing.first(lambda write: write.node_id == 1, second.at_s, PATIENCE_S)
        assert writing.count_by(1, second.at_s) == 1
    assert late.sent_at_s < second.at_s < late.at_s


def test_a_late_acknowledgement_of_a_block_that_another_gave_out_is_a_lost_write(
    controllers: Controllers,
) -> None:
    with searching_writer() as writing:
        first = writing.first(lambda write: write.node_id == 1, 0.0, PATIENCE_S)
        mute_the_leader(controllers, 0)
        second = writing.first(lambda write: write.node_id == 2, first.at_s, PATIENCE_S)
        controllers.next_of_mute = second.first_producer_id
        controllers.mute_answers.set()
        with pytest.raises(AcknowledgedWriteLostError, match="node 1"):
            writing.first(lambda write: write.node_id == 1, second.at_s, PATIENCE_S)


def test_a_block_below_one_that_was_acknowledged_before_it_was_asked_for_is_a_lost_write(
    controllers: Controllers,
) -> None:
    with searching_writer() as writing:
        seen = writing.first(lambda _: True, 0.0, PATIENCE_S)
        controllers.step = -1
        with pytest.raises(AcknowledgedWriteLostError):
            writing.first(lambda _: False, seen.at_s, PATIENCE_S)


@pytest.mark.parametrize(
    ("log_end_offset", "state_offset", "end"), [(9, 4, 5), (9, 8, 9), (9, 9, 9), (9, None, -1), (None, 8, -1)]
)
def test_a_controller_is_level_when_its_image_is_as_well(
    log_end_offset: int | None, state_offset: int | None, end: int
) -> None:
    voter = ReplicaLag(
        replica_id=1,
        directory_id=None,
        log_end_offset=log_end_offset,
        lag=0,
        last_fetch_timestamp_ms=None,
        last_caught_up_timestamp_ms=None,
        state=None if state_offset is None else ReplicaState(offset=state_offset, hash=""),
    )
    assert replayed_to(voter) == end


def a_loss(way: str = "kill", to_commit_ms: float = 600.0, epochs: int = 1) -> Loss:
    return Loss(
        way=way,
        controllers=3,
        election_ms=250,
        fetch_ms=500,
        to_commit_ms=to_commit_ms,
        without_writes_ms=to_commit_ms + 3,
        epochs=epochs,
        later_epochs=0,
        late_writes=0,
        write_ms=4.0,
        leader_id=1,
        next_leader_id=2,
        load=0.5,
        at_ms=1_795_000_000_000,
    )


def test_a_row_states_the_times_against_timeout_and_write() -> None:
    row = elections.row_of(
        [a_loss(to_commit_ms=600), a_loss(to_commit_ms=500), a_loss("kill", 900, epochs=2)]
    )
    assert (row["p50_ms"], row["p99_ms"], row["max_ms"]) == pytest.approx((600, 900, 900))
    assert row["no_writes_ms"] == pytest.approx(603)
    assert row["fetch_timeouts"] == pytest.approx(1.2)
    assert row["writes"] == pytest.approx(150)
    assert row["epochs_max"] == 2
    assert (row["times"], row["timeouts"]) == (3, "250/500")


class PlayedBench:
    """Loses its leader at once, and notes how."""

    lost: ClassVar[list[tuple[bool, str]]] = []
    unavailable: ClassVar[set[str]] = set()

    def __init__(
        self, folder: Path, controllers: int, timeouts: elections.Timeouts, *, links_can_be_cut: bool
    ) -> None:
        self.timeouts = timeouts
        self._links_can_be_cut = links_can_be_cut

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def lose_leader(self, way: str) -> Loss:
        if way in self.unavailable:
            raise WayUnavailableError("no such thing")
        self.lost.append((self._links_can_be_cut, way))
        return a_loss(way)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> type[PlayedBench]:
    monkeypatch.setattr(elections, "Bench", PlayedBench)
    monkeypatch.setattr(PlayedBench, "lost", [])
    monkeypatch.setattr(PlayedBench, "unavailable", set())
    return PlayedBench


def measured(ways: list[str], times: int, losses: LossFile) -> list[dict[str, object]]:
    plan = elections.Plan(timeouts=[elections.TIMEOUTS["tight"]], ways=ways, times=times, controllers=3)
    with Progress(disable=True) as progress:
        return elections.measure(Path("unused"), plan, losses, progress)


def test_what_an_earlier_run_measured_is_not_measured_again(bench: type[PlayedBench], tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    with open_losses(path) as losses:
        measured(["kill", "stop"], 1, losses)
        measured(["kill"], 2, losses)
    bench.lost.clear()
    with open_losses(path) as losses:
        assert measured(["kill", "stop"], 3, losses) == []
    assert sorted(way for _, way in bench.lost) == ["kill", "stop", "stop"]
    assert len(read_losses(path)) == 6


def test_ways_take_turns_and_only_a_cut_takes_the_detour_through_proxies(bench: type[PlayedBench]) -> None:
    measured(["isolate", "kill", "pause"], 2, LossFile([], None))
    assert bench.lost == [
        *[(False, way) for way in ("kill", "pause", "kill", "pause")],
        *[(True, "isolate")] * 2,
    ]


def test_a_way_that_the_nodes_do_not_offer_is_skipped_once_with_the_reason(bench: type[PlayedBench]) -> None:
    bench.unavailable.add("transfer")
    losses = LossFile([], None)
    skipped = measured(["transfer", "stop"], 2, losses)
    assert skipped == [{"way": "transfer", "timeouts": "tight", "skipped": "no such thing"}]
    assert [loss.way for loss in losses.losses] == ["stop", "stop"]


def test_the_json_document_holds_every_single_loss(capsys: pytest.CaptureFixture[str]) -> None:
    plan = elections.Plan(timeouts=[elections.TIMEOUTS["tight"]], ways=["kill"], times=2, controllers=3)
    found = [a_loss(to_commit_ms=612.5), a_loss(to_commit_ms=598.25), a_loss("stop", 1.125)]
    elections.print_losses(plan, {}, found, [], as_json=True)
    losses = json.loads(capsys.readouterr().out)["results"]["losses"]
    assert [loss["to_commit_ms"] for loss in losses] == [612.5, 598.25]


class PlayedCluster:
    def __init__(self) -> None:
        self.deeds: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.deeds.append(name)


@pytest.mark.parametrize(("way", "deeds"), [("pause", ["pause", "resume"]), ("isolate", ["isolate", "heal"])])
def test_a_lost_leader_comes_back_even_without_a_successor(way: str, deeds: list[str]) -> None:
    cluster = PlayedCluster()
    lost: AbstractContextManager[Any] = WAYS[way](cluster, 1)  # type: ignore[arg-type]
    lost.__enter__()()
    error = NoWriteAcknowledgedError("unknown")
    assert not lost.__exit__(type(error), error, None)
    assert cluster.deeds == deeds


def test_fast_means_few_leaders_and_short_timeouts() -> None:
    options = elections.options_of(["--fast", "--times", "50"])
    assert (options.times, options.timeouts) == (elections.FAST_TIMES, ["tight"])
    assert elections.options_of(["--times", "50"]).times == 50


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--times", "0"], "--times is 0"),
        (["--controllers", "4"], "invalid choice: 4"),
        (["--folder", "."], "--folder . exists already"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        elections.options_of(arguments)
    assert told in capsys.readouterr().err
