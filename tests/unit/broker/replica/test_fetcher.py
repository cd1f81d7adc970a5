"""The fetcher of one leader's partitions, by the behaviours of Kafka's brokers."""

from uuid import UUID

import pytest

from kquorum.broker.replica.fetcher import FORGOTTEN_NAMES, Fetcher, FetcherSettings
from kquorum.broker.replica.partition import Outbox, Partition, TopicPartition
from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kquorum.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kquorum.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset as AnsweredEpochEnd,
)
from kquorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kquorum.wire.record_batch import write_batch
from tests.support.batches import rewrite_offsets
from tests.support.memory_partition_log import MemoryPartitionLog

LEADER, ME = 1, 2
TOPIC_ID = UUID(int=1 << 80)
NOW_MS = 1_000_000
BACKOFF_MS = 1_000
Answer = FetchRequest | ListOffsetsRequest | OffsetForLeaderEpochRequest


class Cluster:
    def is_alive(self, broker_id: int) -> bool:
        return True

    def may_join_isr(self, broker_id: int, directory_id: UUID) -> bool:
        return True

    def broker_epoch(self, broker_id: int) -> int | None:
        return 10 * broker_id


class Quota:
    def __init__(self) -> None:
        self.throttled: set[int] = set()
        self.exceeded = False
        self.recorded = 0

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        return topic_partition.partition in self.throttled

    def is_exceeded(self, now_ms: int) -> bool:
        return self.exceeded

    def record(self, now_ms: int, size_bytes: int) -> None:
        self.recorded += size_bytes


class Stage:
    """A fetcher with some partitions in leader epoch 5, and what the leader is asked."""

    def __init__(self, partitions: int = 1, *, cuts_by_fetch: bool = True) -> None:
        self.quota = Quota()
        self.fetcher = Fetcher(LEADER, FetcherSettings(ME, cuts_by_fetch=cuts_by_fetch), self.quota)
        self.now_ms = NOW_MS
        self.partitions = [self.made(index) for index in range(partitions)]
        self.logs = [partition.log for partition in self.partitions]
        self.session_id = 77
        self.session: dict[int, tuple[int, int]] = {}
        """What the leader reads for a Fetch that names nothing: (offset, last epoch) of each partition."""

    def made(self, index: int) -> Partition:
        partition = Partition(
            broker_id=ME,
            topic_id=TOPIC_ID,
            topic="orders",
            partition=index,
            log=MemoryPartitionLog("orders", index, topic_id=TOPIC_ID),
            cluster=Cluster(),
            outbox=Outbox(),
        )
        follow(partition, 5)
        return partition

    def add(self) -> None:
        for partition in self.partitions:
            self.fetcher.add(partition, partition.leader_epoch)

    def request(self, version: int = 17) -> Answer | None:
        request = self.fetcher.next_request(self.now_ms, 20)
        return None if request is None else request.make(version)  # type: ignore[return-value]

    def fetch(self) -> FetchRequest:
        request = self.request()
        assert isinstance(request, FetchRequest)
        if request.session_epoch <= 0:
            self.session.clear()
        for each in named(request):
            self.session[each.partition] = (each.fetch_offset, each.last_fetched_epoch)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                del self.session[index]
        return request

    def asked(self) -> dict[int, tuple[int, int]]:
        """(fetch offset, last fetched epoch) of each partition that the next Fetch names."""
        return {each.partition: (each.fetch_offset, each.last_fetched_epoch) for each in named(self.fetch())}

    def read(self) -> dict[int, tuple[int, int]]:
        """(fetch offset, last fetched epoch) of each partition that the leader reads for the next Fetch."""
        self.fetch()
        return self.session

    def answer(self, *partitions: PartitionData, error: ErrorCode = ErrorCode.none) -> None:
        session_id = self.session_id if error is ErrorCode.none else 0
        topics = (FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions),)
        self.fetcher.handle_reply(
            self.now_ms, FetchResponse(error_code=error, session_id=session_id, responses=topics)
        )

    def answer_offset(self, offset: int, error: ErrorCode = ErrorCode.none) -> None:
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=error)
        topics = (ListOffsetsTopicResponse(name="orders", partitions=(found,)),)
        self.fetcher.handle_reply(self.now_ms, ListOffsetsResponse(topics=topics))

    def answer_epoch(self, epoch: int, end_offset: int, error: ErrorCode = ErrorCode.none) -> None:
        end = AnsweredEpochEnd(partition=0, leader_epoch=epoch, end_offset=end_offset, error_code=error)
        topics = (OffsetForLeaderTopicResult(topic="orders", partitions=(end,)),)
        self.fetcher.handle_reply(self.now_ms, OffsetForLeaderEpochResponse(topics=topics))

    def sleep(self, ms: int = BACKOFF_MS) -> None:
        self.now_ms += ms


def follow(partition: Partition, leader_epoch: int) -> None:
    partition.become_follower(
        PartitionState(
            replicas=(LEADER, ME),
            directories=(MIGRATING,) * 2,
            isr=(LEADER, ME),
            leader=LEADER,
            leader_epoch=leader_epoch,
            partition_epoch=leader_epoch,
        )
    )


def named(request: FetchRequest) -> list[FetchPartition]:
    return [each for topic in request.topics for each in topic.partitions]


def batch(base_offset: int, epoch: int, records: int = 1) -> bytes:
    made = write_batch(base_offset=0, leader_epoch=0, timestamp_ms=NOW_MS, records=[(None, b"v")] * records)
    return rewrite_offsets(made, base_offset, epoch)


def data(
    partition: int = 0,
    records: bytes = b"",
    *,
    high_watermark: int = 0,
    start: int = 0,
    error: ErrorCode = ErrorCode.none,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    end = (
        EpochEndOffset() if diverging is None else EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    )
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=start,
        diverging_epoch=end,
        records=records,
    )


@pytest.fixture
def stage() -> Stage:
    return Stage()


def with_log(*batches: bytes, high_watermark: int = 0, **arguments: bool) -> Stage:
    stage = Stage(**arguments)
    for each in batches:
        stage.logs[0].append_as_follower(each, leader_epoch=5, now_ms=NOW_MS)
    stage.logs[0].update_high_watermark(high_watermark)
    stage.add()
    return stage


def test_records_and_watermarks_are_taken_over(stage: Stage) -> None:
    stage.add()
    assert stage.asked() == {0: (0, -1)}
    stage.answer(data(records=batch(0, 4, 2) + batch(2, 5), high_watermark=2))
    assert (stage.logs[0].log_end_offset, stage.logs[0].high_watermark) == (3, 2)
    assert stage.fetcher.lag_of(("orders", 0)) == 0
    assert stage.asked() == {0: (3, 5)}
    stage.answer(data(high_watermark=3, start=1))
    assert (stage.logs[0].high_watermark, stage.logs[0].log_start_offset) == (3, 1)


def test_a_request_names_its_broker_with_its_epoch(stage: Stage) -> None:
    stage.add()
    request = stage.fetch()
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (ME, 20)
    assert (request.max_wait_ms, request.min_bytes, request.session_epoch) == (500, 1, 0)
    assert named(request)[0].current_leader_epoch == 5


def test_an_older_leader_is_told_the_broker_alone(stage: Stage) -> None:
    stage.add()
    request = stage.request(14)
    assert isinstance(request, FetchRequest)
    assert (request.replica_id, request.replica_state.replica_id) == (ME, -1)


def test_one_request_is_under_way_at_a_time(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    assert stage.request() is None
    assert stage.fetcher.next_deadline_ms() is None


def test_an_answer_without_records_keeps_the_last_epoch() -> None:
    stage = with_log(batch(0, 3))
    stage.fetch()
    stage.answer(data())
    stage.logs[0].truncate_to(1)
    assert stage.fetcher._followed["orders", 0].last_fetched_epoch == 3


def test_a_session_names_only_what_changed() -> None:
    stage = Stage(3)
    stage.add()
    assert stage.asked() == {0: (0, -1), 1: (0, -1), 2: (0, -1)}
    stage.answer(data(1, batch(0, 5)))
    request = stage.fetch()
    assert (request.session_id, request.session_epoch) == (77, 1)
    assert [each.partition for each in named(request)] == [1]
    stage.answer()
    request = stage.fetch()
    assert (request.session_epoch, named(request)) == (2, [])


def test_a_partition_that_leaves_is_forgotten_in_the_session() -> None:
    stage = Stage(2)
    stage.add()
    stage.fetch()
    stage.answer()
    stage.fetcher.remove(("orders", 1))
    request = stage.fetch()
    assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [(TOPIC_ID, (1,))]


@pytest.mark.parametrize(
    ("error", "session"),
    [(ErrorCode.fetch_session_id_not_found, 0), (ErrorCode.invalid_fetch_session_epoch, 77)],
)
def test_a_lost_session_is_made_again_at_once(stage: Stage, error: ErrorCode, session: int) -> None:
    stage.add()
    stage.fetch()
    stage.answer()
    stage.fetch()
    stage.answer(error=error)
    request = stage.fetch()
    assert (request.session_id, request.session_epoch, len(named(request))) == (session, 0, 1)


def test_a_leader_without_sessions_is_named_all_each_time(stage: Stage) -> None:
    stage.session_id = 0
    stage.add()
    for _ in range(2):
        request = stage.fetch()
        assert (request.session_epoch, len(named(request))) == (0, 1)
        stage.answer()


def test_a_moved_log_start_is_told_to_the_leader_in_time(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.answer(data(records=batch(0, 5, 3), high_watermark=3))
    stage.fetch()
    stage.answer()
    stage.logs[0].advance_log_start_offset(2)
    stage.sleep()
    assert [each.log_start_offset for each in named(stage.fetch())] == [2]


# Errors


def test_a_broken_connection_pauses_all_partitions(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.fetcher.handle_failure(NOW_MS)
    assert stage.request() is None
    assert stage.fetcher.next_deadline_ms() == NOW_MS + BACKOFF_MS
    stage.sleep()
    assert stage.fetch().session_epoch == 0


def test_a_partition_with_an_error_pauses_and_the_others_go_on() -> None:
    stage = Stage(2)
    stage.add()
    stage.fetch()
    stage.answer(data(0, error=ErrorCode.not_leader_or_follower), data(1, batch(0, 5)))
    request = stage.fetch()
    assert [each.partition for each in named(request)] == [1]
    assert [each.partitions for each in request.forgotten_topics_data] == [(0,)]
    stage.sleep()
    stage.answer()
    assert [each.partition for each in named(stage.fetch())] == [0]


def test_a_pause_is_not_prolonged(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.answer(data(error=ErrorCode.unknown_topic_id))
    stage.sleep(600)
    stage.fetcher.handle_failure(stage.now_ms)
    stage.sleep(400)
    assert stage.asked() == {0: (0, -1)}


def test_a_fenced_partition_waits_for_another_leader_epoch(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.answer(data(error=ErrorCode.fenced_leader_epoch))
    assert stage.fetcher.failed == {("orders", 0): ErrorCode.fenced_leader_epoch}
    assert stage.fetcher.is_idle
    follow(stage.partitions[0], 6)
    stage.add()
    assert stage.fetcher.failed == {}
    assert stage.asked() == {0: (0, -1)}


def test_corrupt_records_are_fetched_again(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    damaged = bytearray(batch(0, 5))
    damaged[-1] ^= 1
    stage.answer(data(records=bytes(damaged), high_watermark=1))
    assert stage.logs[0].log_end_offset == 0
    stage.sleep()
    assert stage.read() == {0: (0, -1)}
    stage.answer(data(records=batch(0, 5), high_watermark=1))
    assert stage.logs[0].high_watermark == 1


def test_a_partition_whose_disk_fails_is_given_up_and_the_others_go_on() -> None:
    stage = Stage(2)
    stage.add()
    stage.fetch()
    stage.logs[0].fails = True  # type: ignore[attr-defined]
    stage.answer(data(0, batch(0, 5)), data(1, batch(0, 5)))
    assert set(stage.fetcher.failed) == {("orders", 0)}
    assert stage.asked() == {1: (1, 5)}


def test_a_partition_whose_disk_is_full_is_fetched_again_until_there_is_space(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.logs[0].is_full = True  # type: ignore[attr-defined]
    stage.answer(data(records=batch(0, 5), high_watermark=1))
    assert stage.fetcher.failed == {}
    assert stage.asked() == {}
    stage.sleep()
    stage.answer()
    assert stage.asked() == {0: (0, -1)}
    stage.logs[0].is_full = False  # type: ignore[attr-defined]
    stage.answer(data(records=batch(0, 5), high_watermark=1))
    assert (stage.logs[0].log_end_offset, stage.logs[0].high_watermark) == (1, 1)


def test_a_log_that_cannot_be_cut_for_want_of_space_is_cut_later() -> None:
    stage = with_log(batch(0, 3), batch(1, 4))
    stage.fetch()
    stage.logs[0].is_full = True  # type: ignore[attr-defined]
    stage.answer(data(diverging=(3, 1)))
    assert stage.fetcher.failed == {}
    stage.logs[0].is_full = False  # type: ignore[attr-defined]
    stage.sleep()
    assert stage.read() == {0: (2, 4)}
    stage.answer(data(diverging=(3, 1)))
    assert stage.logs[0].log_end_offset == 1


def test_a_log_without_epochs_is_cut_before_its_first_fetch_once_there_is_space(stage: Stage) -> None:
    stage.logs[0].is_full = True  # type: ignore[attr-defined]
    stage.add()
    assert stage.fetcher.failed == {}
    assert stage.request() is None
    stage.sleep()
    assert stage.request() is None
    stage.logs[0].is_full = False  # type: ignore[attr-defined]
    stage.sleep()
    assert stage.asked() == {0: (0, -1)}


def test_an_answer_to_another_leader_epoch_is_dropped(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    follow(stage.partitions[0], 6)
    stage.fetcher.remove(("orders", 0))
    stage.add()
    stage.answer(data(records=batch(0, 5), high_watermark=1))
    assert stage.logs[0].log_end_offset == 0


def test_an_answer_for_a_partition_that_left_changes_nothing(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.fetcher.remove(("orders", 0))
    stage.answer(data(diverging=(1, 0)), data(records=batch(0, 5)))
    assert stage.logs[0].log_end_offset == 0


def test_the_same_epoch_again_changes_nothing() -> None:
    stage = with_log(batch(0, 3), batch(1, 5))
    stage.fetch()
    stage.add()
    stage.answer(data(records=batch(2, 5), high_watermark=3))
    assert stage.logs[0].log_end_offset == 3


def test_records_of_a_later_epoch_than_the_fetch_are_left_out(stage: Stage) -> None:
    stage.add()
    stage.fetch()
    stage.answer(data(records=batch(0, 5) + batch(1, 6)))
    assert stage.asked() == {0: (1, 5)}


# Divergence


def test_a_diverging_log_is_cut_and_the_rest_of_the_answer_left_alone() -> None:
    stage = with_log(batch(0, 1, 3), batch(3, 2, 4), high_watermark=3)
    stage.fetch()
    stage.answer(data(records=batch(7, 5), high_watermark=7, start=2, diverging=(1, 3)))
    log = stage.logs[0]
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (3, 3, 0)
    assert stage.asked() == {0: (3, 1)}


def test_a_log_with_an_epoch_that_the_leader_lacks_needs_another_round() -> None:
    """Leader: epoch 1 to 2, epoch 3 to 6. Follower: epoch 1 to 4, epoch 2 to 8."""
    stage = with_log(batch(0, 1, 2), batch(2, 1, 2), batch(4, 2, 4))
    stage.fetch()
    stage.answer(data(diverging=(1, 2)))
    assert stage.logs[0].log_end_offset == 2
    again = with_log(batch(0, 0, 2), batch(2, 1, 2), batch(4, 4, 4))
    again.fetch()
    again.answer(data(diverging=(3, 6)))
    assert again.asked() == {0: (4, 1)}
    again.answer(data(diverging=(0, 1)))
    assert again.asked()[0][0] == 1


def test_a_leader_that_knows_no_epoch_names_an_offset_alone() -> None:
    stage = with_log(batch(0, 1, 3), batch(3, 2, 4))
    stage.fetch()
    stage.answer(data(diverging=(-1, 3)))
    assert stage.logs[0].log_end_offset == 3


def test_a_log_without_epochs_is_cut_at_its_high_watermark() -> None:
    stage = Stage()
    log = stage.logs[0]
    assert isinstance(log, MemoryPartitionLog)
    log.append_as_follower(batch(0, 1, 3), leader_epoch=5, now_ms=NOW_MS)
    log.append_as_follower(batch(3, 1, 3), leader_epoch=5, now_ms=NOW_MS)
    log.update_high_watermark(3)
    log.epochs.clear()
    stage.add()
    assert stage.asked() == {0: (3, -1)}


# Leaders that do not cut by fetch


def test_an_old_leader_is_asked_for_the_end_of_the_last_epoch_before_any_fetch() -> None:
    stage = with_log(batch(0, 1, 3), batch(3, 2, 4), cuts_by_fetch=False)
    question = stage.request(4)
    assert isinstance(question, OffsetForLeaderEpochRequest)
    asked = question.topics[0].partitions[0]
    assert (question.replica_id, asked.current_leader_epoch, asked.leader_epoch) == (ME, 5, 2)
    stage.answer_epoch(2, 5)
    assert stage.asked() == {0: (5, 1)} or stage.logs[0].log_end_offset == 5


def test_an_old_leader_is_asked_until_the_epochs_agree() -> None:
    stage = with_log(batch(0, 0, 2), batch(2, 1, 2), batch(4, 4, 4), cuts_by_fetch=False)
    stage.request(4)
    stage.answer_epoch(3, 6)
    question = stage.request(4)
    assert isinstance(question, OffsetForLeaderEpochRequest)
    assert question.topics[0].partitions[0].leader_epoch == 1
    stage.answer_epoch(1, 4)
    assert stage.asked() == {0: (4, 1)}


def test_an_old_leader_that_is_behind_is_asked_again_after_a_pause() -> None:
    stage = with_log(batch(0, 1), cuts_by_fetch=False)
    stage.request(4)
    stage.answer_epoch(-1, -1, ErrorCode.unknown_leader_epoch)
    assert stage.request(4) is None
    stage.sleep()
    assert isinstance(stage.request(4), OffsetForLeaderEpochRequest)
    stage.answer_epoch(-1, -1, ErrorCode.fenced_leader_epoch)
    assert set(stage.fetcher.failed) == {("orders", 0)}


# Out of range


def out_of_range(*batches: bytes) -> Stage:
    stage = with_log(*batches)
    stage.fetch()
    stage.answer(data(error=ErrorCode.offset_out_of_range))
    question = stage.request(9)
    assert isinstance(question, ListOffsetsRequest)
    asked = question.topics[0].partitions[0]
    assert (question.replica_id, asked.timestamp, asked.current_leader_epoch) == (ME, -1, 5)
    return stage


def test_a_log_behind_the_leaders_end_is_cut_to_it() -> None:
    stage = out_of_range(batch(0, 1, 5), batch(5, 1, 5))
    stage.answer_offset(5)
    assert stage.asked() == {0: (5, 1)}


def test_a_log_before_the_leaders_start_starts_again_there() -> None:
    stage = out_of_range(batch(0, 1, 5))
    stage.answer_offset(200)
    question = stage.request(9)
    assert isinstance(question, ListOffsetsRequest)
    assert question.topics[0].partitions[0].timestamp == -2
    stage.answer_offset(100)
    log = stage.logs[0]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert stage.asked() == {0: (100, -1)}


def test_a_log_that_is_in_range_by_now_goes_on_as_it_is() -> None:
    stage = out_of_range(batch(0, 1, 5))
    stage.answer_offset(9)
    stage.request(9)
    stage.answer_offset(2)
    assert stage.read() == {0: (5, 1)}


def test_a_question_that_is_refused_is_asked_again_or_given_up() -> None:
    stage = out_of_range(batch(0, 1, 5))
    stage.answer_offset(-1, ErrorCode.unknown_leader_epoch)
    assert stage.read() == {}, "the partition pauses: the Fetch forgets it"
    stage.answer()
    assert stage.request(9) is None
    stage.sleep()
    assert isinstance(stage.request(9), ListOffsetsRequest)
    stage.answer_offset(-1, ErrorCode.fenced_leader_epoch)
    assert set(stage.fetcher.failed) == {("orders", 0)}


def test_records_of_a_topic_that_was_deleted_are_not_taken_for_its_namesakes(stage: Stage) -> None:
    """The topic was made again while the answer was on its way."""
    stage.add()
    stage.fetch()
    stage.partitions[0].topic_id = UUID(int=8)
    stage.answer(data(records=batch(0, 5), high_watermark=1))
    assert stage.logs[0].log_end_offset == 0


# Throttles


def test_a_throttled_partition_that_lags_is_left_out_while_the_quota_is_exceeded() -> None:
    stage = Stage(2)
    stage.quota.throttled, stage.quota.exceeded = {0}, True
    stage.add()
    assert set(stage.asked()) == {1}
    stage.answer(data(1, batch(0, 5), high_watermark=1))
    assert stage.quota.recorded == 0
    stage.quota.exceeded = False
    assert set(stage.asked()) == {0, 1}
    records = batch(0, 5)
    stage.answer(data(0, records, high_watermark=1))
    assert stage.quota.recorded == len(records)


def test_a_throttled_partition_that_is_in_sync_is_never_left_out(stage: Stage) -> None:
    stage.quota.throttled = {0}
    stage.add()
    stage.fetch()
    stage.answer(data(records=batch(0, 5), high_watermark=1))
    stage.quota.exceeded = True
    assert stage.asked() == {0: (1, 5)}


def test_a_fetcher_keeps_nothing_of_topics_that_are_gone() -> None:
    """Topics are made and deleted for as long as a broker lives."""
    stage = Stage()
    sizes = set()
    for number in range(1, 400):
        partition = stage.made(0)
        partition.topic_id = UUID(int=number)
        stage.fetcher.add(partition, 5 + number)
        stage.fetcher.remove(partition.topic_partition)
        sizes.add(len(stage.fetcher._names))
    assert max(sizes) <= 2 * FORGOTTEN_NAMES


def test_a_reply_is_handled_partition_by_partition_and_what_left_meanwhile_gets_nothing() -> None:
    stage = Stage(partitions=3)
    stage.add()
    stage.fetch()
    partitions = tuple(data(index, records=batch(0, 5), high_watermark=1) for index in range(3))
    topics = (FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions),)
    response = FetchResponse(session_id=stage.session_id, responses=topics)
    steps = stage.fetcher.handling(stage.now_ms, response)
    next(steps)
    assert stage.request() is None
    stage.fetcher.remove(stage.partitions[1].topic_partition)
    assert len(list(steps)) == 2
    assert [log.log_end_offset for log in stage.logs] == [1, 0, 1]
    assert sorted(stage.read()) == [0, 2]
