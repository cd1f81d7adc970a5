"""Fetch by Kafka's behaviours: what consumers and followers may read, when an answer waits, and sessions (KIP-227)."""

from typing import Any

import pytest

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.broker.data_world import ORDERS, ORDERS_ID, Asked, DataWorld
from tests.support.broker.disk_logs import data, records_in
from tests.support.images import topic_id

VERSIONS = range(4, 19)


def fetch(world: DataWorld, *wanted: tuple[int, int], version: int = 18, **how: Any) -> Asked:
    """`wanted` are partitions and offsets; `how` are fields of the request, or of each partition."""
    of_partition = {
        name: how.pop(name)
        for name in ("current_leader_epoch", "last_fetched_epoch", "partition_max_bytes", "log_start_offset")
        if name in how
    }
    named = how.pop("named", ORDERS_ID)
    replica = how.pop("replica", None)
    if replica is not None:
        how |= {"replica_state": ReplicaState(replica_id=replica, replica_epoch=-1)}
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=offset, **{"partition_max_bytes": 1_000} | of_partition)
        for index, offset in wanted
    )
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 100_000} | how
    if version < 15:
        values["replica_id"] = -1
    topics = (FetchTopic(topic=ORDERS, topic_id=named, partitions=partitions),) if partitions else ()
    return world.ask(FetchRequest(topics=topics, **values), version)


def found(asked: Asked) -> dict[int, Any]:
    return {
        partition.partition_index: partition
        for topic in asked.answer.responses
        for partition in topic.partitions
    }


def values(asked: Asked, index: int = 0) -> list[str]:
    return [(each.value or b"").decode() for each in records_in(bytes(found(asked)[index].records))]


@pytest.fixture
def world() -> DataWorld:
    """orders-0 has three committed records in two batches, and a fourth that broker 2 lacks."""
    made = DataWorld()
    made.append("a", "b")
    made.append("c")
    made.follower_fetches(3)
    made.append("d")
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_a_consumer_reads_what_is_committed_in_every_version(world: DataWorld, version: int) -> None:
    asked = fetch(world, (0, 0), version=version)
    assert values(asked) == ["a", "b", "c"]
    told = found(asked)[0]
    assert (told.error_code, told.high_watermark, told.last_stable_offset) == (ErrorCode.none, 3, 3)
    assert told.aborted_transactions is None


def test_a_follower_reads_to_the_end_of_the_log(world: DataWorld) -> None:
    assert values(fetch(world, (0, 3), replica=2)) == ["d"]


def test_an_offset_in_a_batch_gives_the_whole_batch(world: DataWorld) -> None:
    assert values(fetch(world, (0, 1)))[:2] == ["a", "b"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(3, "none"), (4, "none"), (5, "offset_out_of_range"), (-1, "offset_out_of_range")],
)
def test_an_offset_between_watermark_and_end_is_empty_and_one_beyond_is_out_of_range(
    world: DataWorld, offset: int, expected: str
) -> None:
    told = found(fetch(world, (0, offset)))[0]
    assert (told.error_code.name, bytes(told.records)) == (expected, b"")


@pytest.mark.parametrize(
    ("index", "version", "expected"),
    [
        (2, 10, "not_leader_or_follower"),
        (2, 11, "none"),
        (3, 18, "not_leader_or_follower"),
        (9, 18, "unknown_topic_or_partition"),
    ],
)
def test_followers_serve_consumers_that_know_of_it(
    world: DataWorld, index: int, version: int, expected: str
) -> None:
    asked = fetch(world, (index, 0), version=version)
    assert found(asked)[index].error_code.name == expected
    if version >= 16 and expected == "not_leader_or_follower":
        assert found(asked)[index].current_leader.leader_id == 2
        assert [each.node_id for each in asked.answer.node_endpoints] == [2]


def test_an_unknown_topic_id_is_the_error_of_its_partitions(world: DataWorld) -> None:
    assert found(fetch(world, (0, 0), named=topic_id(77)))[0].error_code is ErrorCode.unknown_topic_id


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, "none"), (3, "none"), (2, "fenced_leader_epoch"), (4, "unknown_leader_epoch")],
)
def test_the_leader_epoch_of_the_reader_is_checked(world: DataWorld, epoch: int, expected: str) -> None:
    assert found(fetch(world, (0, 0), current_leader_epoch=epoch))[0].error_code.name == expected


def test_a_diverged_follower_hears_where_and_gets_no_records(world: DataWorld) -> None:
    told = found(fetch(world, (0, 9), replica=2, last_fetched_epoch=3))[0]
    assert (told.error_code, bytes(told.records)) == (ErrorCode.none, b"")
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (3, 4)


class TestLimits:
    def test_the_first_batch_is_whole_however_little_is_wanted(self, world: DataWorld) -> None:
        assert values(fetch(world, (0, 0), partition_max_bytes=1, max_bytes=1)) == ["a", "b"]

    def test_only_the_first_partition_with_records_exceeds_the_limit(self, world: DataWorld) -> None:
        world.append("x", index=1)
        world.follower_fetches(1, index=1)
        asked = fetch(world, (0, 0), (1, 0), max_bytes=1)
        assert (values(asked, 0), values(asked, 1)) == (["a", "b"], [])
        asked = fetch(world, (1, 0), (0, 0), max_bytes=1)
        assert (values(asked, 1), values(asked, 0)) == (["x"], [])

    def test_records_leave_as_the_log_has_them(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 2))
        [stored] = [each.data for each in world.logs.logs["orders", 0].batches if each.base_offset == 2]  # type: ignore[index]
        answer: Any = asked.raw[0]
        assert bytes(answer.responses[0].partitions[0].records) == stored


class TestWaiting:
    def test_an_answer_waits_for_the_high_watermark(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 3), max_wait_ms=500)
        world.append("e")
        assert asked.is_waiting
        world.follower_fetches(4)
        assert values(asked) == ["d"]

    def test_a_follower_waits_for_the_log_to_grow(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 4), replica=2, max_wait_ms=500)
        assert asked.is_waiting
        world.append("e")
        assert values(asked) == ["e"]

    def test_it_ends_with_what_is_there(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 3), max_wait_ms=500)
        world.pass_time(499)
        assert asked.is_waiting
        world.pass_time(1)
        assert (values(asked), found(asked)[0].error_code) == ([], ErrorCode.none)

    def test_many_bytes_are_counted_over_many_appends(self, world: DataWorld) -> None:
        size = len(data("e"))
        asked = fetch(world, (0, 4), replica=2, max_wait_ms=500, min_bytes=3 * size)
        for value in "ef":
            world.append(value)
            assert asked.is_waiting
        world.append("g")
        assert values(asked) == ["e", "f", "g"]

    def test_a_new_leader_ends_it(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 3), max_wait_ms=500, current_leader_epoch=3)
        world.change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, leader=2))
        assert found(asked)[0].error_code is ErrorCode.fenced_leader_epoch

    def test_an_error_of_one_partition_is_not_waited_over(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 3), (1, 99), max_wait_ms=500)
        assert found(asked)[1].error_code is ErrorCode.offset_out_of_range

    def test_the_wait_of_a_follower_does_not_count_its_fetch_again(self, world: DataWorld) -> None:
        asked = fetch(world, (0, 4), replica=2, max_wait_ms=500)
        before = world.partition().followers[2].fetched_ms
        world.now_ms += 100
        world.append("e")
        assert not asked.is_waiting
        assert world.partition().followers[2].fetched_ms == before

    def test_an_append_wakes_the_waits_of_its_partition_alone(self, world: DataWorld) -> None:
        asked = [
            fetch(world, (0, 4), replica=2, max_wait_ms=500),
            fetch(world, (1, 0), replica=2, max_wait_ms=500),
        ]
        world.append("e", index=1)
        assert [each.is_waiting for each in asked] == [True, False]


class TestSessions:
    def begin(self, world: DataWorld, *wanted: tuple[int, int], version: int = 18) -> int:
        asked = fetch(world, *wanted, session_id=0, session_epoch=0, version=version)
        session_id: int = asked.answer.session_id
        assert session_id > 0
        return session_id

    def test_a_partition_without_news_is_left_out(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 3), (1, 0))
        asked = fetch(world, session_id=session, session_epoch=1)
        assert (asked.answer.error_code, asked.answer.session_id, found(asked)) == (
            ErrorCode.none,
            session,
            {},
        )
        world.append("x", index=1)
        world.follower_fetches(1, index=1)
        asked = fetch(world, session_id=session, session_epoch=2)
        assert list(found(asked)) == [1]
        assert values(asked, 1) == ["x"]

    def test_what_a_request_names_is_updated_and_what_it_forgets_goes(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 3), (1, 0))
        assert list(found(fetch(world, (0, 0), session_id=session, session_epoch=1))) == [0]
        forgotten = (ForgottenTopic(topic_id=ORDERS_ID, partitions=(0,)),)
        asked = fetch(world, session_id=session, session_epoch=2, forgotten_topics_data=forgotten)
        assert found(asked) == {}

    def test_a_follower_that_had_to_cut_its_log_hears_the_watermark_again(self, world: DataWorld) -> None:
        """It leaves the watermark of that answer alone."""
        world.follower_fetches(4)
        diverged = {"replica": 2, "last_fetched_epoch": 3}
        for begins in (True, False):
            first, how = ((0, 9), diverged) if begins else ((0, 4), {"replica": 2})
            session: int = fetch(world, first, session_id=0, session_epoch=0, **how).answer.session_id
            asked = fetch(world, (0, 9), session_id=session, session_epoch=1, **diverged)
            assert found(asked)[0].diverging_epoch.end_offset == 4
            asked = fetch(world, (0, 4), replica=2, session_id=session, session_epoch=2)
            assert found(asked)[0].high_watermark == 4
            assert found(fetch(world, replica=2, session_id=session, session_epoch=3)) == {}

    def test_a_reader_in_another_leader_epoch_hears_the_watermark_again(self, world: DataWorld) -> None:
        """It passes over an answer to what it asked in the epoch before."""
        session = self.begin(world, (0, 3))
        again = {"session_id": session, "current_leader_epoch": 3}
        assert list(found(fetch(world, (0, 3), session_epoch=1, **again))) == [0]
        assert found(fetch(world, (0, 3), session_epoch=2, **again)) == {}

    def test_a_session_that_forgets_all_is_closed(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 3))
        forgotten = (ForgottenTopic(topic_id=ORDERS_ID, partitions=(0,)),)
        asked = fetch(world, session_id=session, session_epoch=1, forgotten_topics_data=forgotten)
        assert asked.answer.session_id == 0
        assert len(world.plane.sessions) == 0

    @pytest.mark.parametrize(
        ("known", "epoch", "version", "expected"),
        [
            (False, 1, 18, "fetch_session_id_not_found"),
            (True, 2, 18, "invalid_fetch_session_epoch"),
            (True, 1, 12, "fetch_session_topic_id_error"),
        ],
    )
    def test_a_request_that_does_not_fit_the_session_is_an_error_of_the_whole(
        self, world: DataWorld, known: bool, epoch: int, version: int, expected: str
    ) -> None:
        session = self.begin(world, (0, 3))
        asked = fetch(world, session_id=session if known else 99, session_epoch=epoch, version=version)
        assert asked.answer.error_code.name == expected
        assert (asked.answer.session_id, asked.answer.responses) == (0, ())
        assert len(world.plane.sessions) == 1

    def test_another_principal_does_not_know_the_session(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 3))
        request = FetchRequest(session_id=session, session_epoch=1)
        asked = world.ask(request, principal="User:mallory")
        assert asked.answer.error_code is ErrorCode.fetch_session_id_not_found

    def test_the_final_epoch_closes_the_session(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 3))
        asked = fetch(world, (0, 0), session_id=session, session_epoch=-1)
        assert (asked.answer.session_id, values(asked)) == (0, ["a", "b", "c"])
        assert len(world.plane.sessions) == 0

    def test_only_records_move_a_partition_behind_the_others(self, world: DataWorld) -> None:
        """So that full answers serve all in turn; a moved watermark alone must not (KAFKA-12330)."""
        session = self.begin(world, (0, 0), (1, 0))
        world.append("x", index=1)
        world.follower_fetches(1, index=1)
        asked = fetch(world, (0, 0), session_id=session, session_epoch=1, max_bytes=1)
        assert (values(asked, 0), values(asked, 1)) == (["a", "b"], [])
        asked = fetch(world, session_id=session, session_epoch=2, max_bytes=1)
        assert values(asked, 1) == ["x"]

    def test_an_error_is_told_each_time_and_the_next_good_answer_once(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 99), (1, 0))
        asked = fetch(world, session_id=session, session_epoch=1)
        assert found(asked)[0].error_code is ErrorCode.offset_out_of_range
        assert list(found(fetch(world, (0, 3), session_id=session, session_epoch=2))) == [0]
        assert found(fetch(world, session_id=session, session_epoch=3)) == {}

    def test_a_request_sent_again_ends_the_wait_of_the_first_with_an_error(self, world: DataWorld) -> None:
        session = self.begin(world, (0, 3))
        first = fetch(world, session_id=session, session_epoch=1, max_wait_ms=500)
        fetch(world, session_id=session, session_epoch=2)
        world.pass_time(500)
        assert first.answer.error_code is ErrorCode.invalid_fetch_session_epoch

    def test_a_full_cache_makes_no_session_until_the_oldest_is_unused_for_two_minutes(self) -> None:
        world = DataWorld(session_slots=1)
        session = self.begin(world, (0, 0))
        assert fetch(world, (0, 0), session_id=0, session_epoch=0).answer.session_id == 0
        world.now_ms += 120_001
        newer = fetch(world, (0, 0), session_id=0, session_epoch=0).answer.session_id
        assert newer not in (0, session)
        assert world.plane.sessions.evictions == 1

    def test_a_follower_takes_the_place_of_a_consumer_but_not_the_other_way_round(self) -> None:
        world = DataWorld(session_slots=1)
        self.begin(world, (0, 0))
        of_follower = fetch(world, (0, 0), replica=2, session_id=0, session_epoch=0).answer.session_id
        assert of_follower > 0
        assert fetch(world, (0, 0), (1, 0), session_id=0, session_epoch=0).answer.session_id == 0

    def test_without_slots_there_are_no_sessions(self) -> None:
        world = DataWorld(session_slots=0)
        assert fetch(world, (0, 0), session_id=0, session_epoch=0).answer.session_id == 0
