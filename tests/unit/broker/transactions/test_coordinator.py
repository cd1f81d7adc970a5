"""Transactional ids and their transactions, through the handlers: producers, partitions, ends, fail-over, time."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kquorum.broker.groups.shard import GroupShard
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions.transaction import HIGHEST_EPOCH, LAST_EPOCH, Transaction, TransactionState
from kquorum.wire.data_batch import Record, write_data_batch
from kquorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kquorum.wire.messages.describe_transactions import DescribeTransactionsRequest
from kquorum.wire.messages.list_transactions import ListTransactionsRequest
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.transaction_records import encode_transaction_key
from tests.support.broker.data_world import ORDERS
from tests.support.broker.group_world import GROUP
from tests.support.broker.transaction_world import (
    FIRST_PRODUCER,
    MINE,
    PLACE,
    TIMEOUT_MS,
    TRANSACTIONS_ID,
    TXN_SETTINGS,
    TransactionWorld,
    error_of_offsets,
    errors_of,
    topics_of,
)
from tests.support.images import fencing, partition_record, topic_id
from tests.support.memory_partition_log import StoredBatch

OTHER_PLACE = TopicPartition(ORDERS, 1)
FIRST = ProducerEpoch(FIRST_PRODUCER, 0)
STATE = TransactionState


def error(asked: Any) -> str:
    name: str = asked.answer.error_code.name
    return name


def begun(world: TransactionWorld, *places: TopicPartition, version: int = 2) -> ProducerEpoch:
    """A producer with an open transaction."""
    producer = world.producer()
    add = world.add_as_broker if version >= 2 else world.add
    assert set(errors_of(add(producer, *places).answer).values()) == {"none"}
    return producer


def known(state: TransactionState = STATE.EMPTY, **fields: Any) -> Transaction:
    defaults: dict[str, Any] = {
        "producer_id": FIRST_PRODUCER,
        "epoch": 5,
        "timeout_ms": TIMEOUT_MS,
        "previous_producer_id": FIRST_PRODUCER,
        "last_update_ms": 1,
    }
    if state not in (STATE.EMPTY, STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT):
        defaults |= {"partitions": frozenset({PLACE}), "start_ms": 1_700_000_000_000}
    return Transaction(state=state, **(defaults | fields))


class TestProducers:
    def test_the_first_producer_of_an_id_has_epoch_0_in_the_log(self) -> None:
        world = TransactionWorld()
        assert world.producer() == FIRST
        [logged] = world.logged()
        assert logged is not None
        assert (logged.state, logged.epoch, logged.timeout_ms) == (STATE.EMPTY, 0, TIMEOUT_MS)
        assert logged.partitions == frozenset()
        assert logged.start_ms == -1

    def test_the_next_one_has_the_next_epoch_and_the_newest_timeout_counts(self) -> None:
        world = TransactionWorld()
        world.producer()
        assert world.producer(timeout_ms=5_000) == ProducerEpoch(FIRST_PRODUCER, 1)
        assert world.transaction().timeout_ms == 5_000

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"transactional_id": ""}, "invalid_request"),
            ({"timeout_ms": 0}, "invalid_transaction_timeout"),
            ({"timeout_ms": TXN_SETTINGS.max_timeout_ms}, "none"),
            ({"timeout_ms": TXN_SETTINGS.max_timeout_ms + 1}, "invalid_transaction_timeout"),
            ({"expected": ProducerEpoch(3, -1)}, "invalid_request"),
            ({"expected": ProducerEpoch(-1, 3)}, "invalid_request"),
        ],
    )
    def test_requests_that_cannot_be(self, fields: dict[str, Any], expected: str) -> None:
        assert TransactionWorld().init(**fields).error_code.name == expected

    def test_an_unknown_id_takes_any_expected_producer(self) -> None:
        assert TransactionWorld().producer(expected=ProducerEpoch(77, 3)) == FIRST

    def test_after_an_error_the_producer_goes_on_with_the_next_epoch_and_may_ask_twice(self) -> None:
        """KIP-360; the answer to the first request was lost."""
        world = TransactionWorld()
        first = world.producer()
        second = world.producer(expected=first)
        assert second == ProducerEpoch(FIRST_PRODUCER, 1)
        assert world.producer(expected=first) == second
        third = world.producer()
        refused = world.init(expected=second)
        assert refused.error_code.name == "producer_fenced"
        assert third.epoch == 2

    @pytest.mark.parametrize(
        ("expected", "version", "error_name"),
        [
            (ProducerEpoch(FIRST_PRODUCER, 4), 5, "producer_fenced"),
            (ProducerEpoch(FIRST_PRODUCER + 1, 5), 4, "producer_fenced"),
            (ProducerEpoch(FIRST_PRODUCER, 4), 3, "invalid_producer_epoch"),
        ],
    )
    def test_a_producer_that_is_fenced(self, expected: ProducerEpoch, version: int, error_name: str) -> None:
        world = TransactionWorld()
        world.put(known())
        assert world.init(expected=expected, version=version).error_code.name == error_name

    def test_an_exhausted_epoch_gives_way_to_another_producer_id(self) -> None:
        world = TransactionWorld()
        world.put(known(epoch=LAST_EPOCH))
        expected = ProducerEpoch(FIRST_PRODUCER, LAST_EPOCH)
        taken = world.producer(expected=expected)
        assert taken == ProducerEpoch(FIRST_PRODUCER + 1, 0)
        # The answer was lost.
        assert world.producer(expected=expected) == taken
        stale = world.init(expected=ProducerEpoch(FIRST_PRODUCER, LAST_EPOCH - 1))
        assert stale.error_code.name == "producer_fenced"

    @pytest.mark.parametrize("state", [STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT])
    def test_the_end_of_the_last_transaction_has_to_be_complete(self, state: TransactionState) -> None:
        world = TransactionWorld()
        world.holds_markers = True
        world.put(known(state))
        assert world.init().error_code.name == "concurrent_transactions"
        world.release_markers()
        assert world.producer().epoch == 6

    @pytest.mark.parametrize(("version", "epochs"), [(2, (1, 2)), (1, (1, 2)), (0, (1, 2))])
    def test_an_open_transaction_is_aborted_first_and_its_producer_is_fenced(
        self, version: int, epochs: tuple[int, int]
    ) -> None:
        world = TransactionWorld(version=version)
        old = begun(world, version=version)
        assert world.init().error_code.name == "concurrent_transactions"
        aborted, after = epochs
        [(marked, marker)] = world.markers_in()
        assert (marked.epoch, marker.is_commit) == (aborted, False)
        assert world.transaction().state is STATE.COMPLETE_ABORT
        assert world.producer().epoch == after
        assert error(world.end(old, version=4)) == "producer_fenced"
        assert set(errors_of(world.add(old).answer).values()) == {"producer_fenced"}

    def test_an_abort_that_cannot_be_written_is_done_once(self) -> None:
        """The epoch is not raised twice (KAFKA-9666): nothing changed at the first attempt."""
        world = TransactionWorld()
        begun(world)
        world.state_partition().settings.min_insync_replicas = 2
        world.state_partition().replicas = (1, 2)
        assert world.init().error_code.name == "coordinator_not_available"
        assert world.transaction().epoch == 0
        world.state_partition().settings.min_insync_replicas = 1
        assert world.init().error_code.name == "concurrent_transactions"
        assert world.transaction().epoch == 1

    def test_not_while_a_change_of_the_transaction_is_on_its_way(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known())
        world.follow_state()
        asked = world.add(ProducerEpoch(FIRST_PRODUCER, 5))
        assert asked.is_waiting
        assert world.init().error_code.name == "concurrent_transactions"
        world.follow_state()
        assert errors_of(asked.answer) == {PLACE: "none"}

    def test_without_an_id_at_hand_the_producer_asks_again(self) -> None:
        world = TransactionWorld()
        while world.plane.producer_ids.take() is not None:
            pass
        world.services = replace(world.services, new_delayed_operation=NoWait)
        assert world.init().error_code.name == "coordinator_load_in_progress"
        assert world.txn_shard().count == 0


class NoWait:
    """A DelayedOperation whose time is over at once."""

    def complete(self) -> None:
        """The wait is over."""

    async def wait(self, timeout_ms: int) -> bool:
        del timeout_ms
        return False


class TestPartitions:
    def test_they_are_in_the_transaction_when_the_record_is_committed(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known())
        world.follow_state()
        asked = world.add(ProducerEpoch(FIRST_PRODUCER, 5), PLACE, OTHER_PLACE)
        assert asked.is_waiting
        assert world.transaction().state is STATE.EMPTY
        again = world.add(ProducerEpoch(FIRST_PRODUCER, 5), PLACE)
        world.pass_time(TXN_SETTINGS.add_retry_max_ms)
        assert errors_of(again.answer) == {PLACE: "concurrent_transactions"}
        third = world.add(ProducerEpoch(FIRST_PRODUCER, 5), PLACE)
        assert third.is_waiting
        world.follow_state()
        assert errors_of(asked.answer) == {PLACE: "none", OTHER_PLACE: "none"}
        assert errors_of(third.answer) == {PLACE: "none"}
        assert world.transaction().partitions == {PLACE, OTHER_PLACE}

    def test_the_first_one_begins_the_transaction_and_the_others_do_not_begin_it_again(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        start_ms = world.now_ms
        world.pass_time(50)
        world.add_as_broker(producer, OTHER_PLACE)
        assert world.transaction().start_ms == start_ms
        assert world.transaction().partitions == {PLACE, OTHER_PLACE}
        assert world.transaction().client_version == 2

    def test_one_that_is_in_the_transaction_needs_no_record(self) -> None:
        world = TransactionWorld()
        producer = begun(world, PLACE, OTHER_PLACE)
        before = len(world.logged())
        assert errors_of(world.add(producer).answer) == {PLACE: "none"}
        assert len(world.logged()) == before

    @pytest.mark.parametrize(
        ("producer", "version", "expected"),
        [
            (ProducerEpoch(FIRST_PRODUCER + 1, 5), 3, "invalid_producer_id_mapping"),
            (ProducerEpoch(FIRST_PRODUCER, 4), 3, "producer_fenced"),
            (ProducerEpoch(FIRST_PRODUCER, 6), 3, "producer_fenced"),
            (ProducerEpoch(FIRST_PRODUCER, 6), 1, "invalid_producer_epoch"),
            (ProducerEpoch(FIRST_PRODUCER, 5), 0, "none"),
        ],
    )
    @pytest.mark.parametrize(
        "state", [STATE.EMPTY, STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT, STATE.ONGOING]
    )
    def test_of_whom(
        self, state: TransactionState, producer: ProducerEpoch, version: int, expected: str
    ) -> None:
        world = TransactionWorld()
        world.put(known(state))
        assert errors_of(world.add(producer, version=version).answer) == {PLACE: expected}

    @pytest.mark.parametrize("state", [STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT])
    def test_not_while_the_last_transaction_ends(self, state: TransactionState) -> None:
        world = TransactionWorld()
        world.holds_markers = True
        world.put(known(state))
        asked = world.add(ProducerEpoch(FIRST_PRODUCER, 5))
        world.pass_time(TXN_SETTINGS.add_retry_max_ms - 1)
        assert asked.is_waiting
        world.pass_time(1)
        assert errors_of(asked.answer) == {PLACE: "concurrent_transactions"}

    @pytest.mark.parametrize("as_broker", [True, False])
    def test_the_end_of_the_last_transaction_wakes_those_that_wait_for_it(self, as_broker: bool) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.holds_markers = True
        world.end(producer)
        following = ProducerEpoch(producer.producer_id, 1)
        asked = (world.add_as_broker if as_broker else world.add)(following, OTHER_PLACE)
        assert asked.is_waiting
        world.release_markers()
        assert errors_of(asked.answer) == {OTHER_PLACE: "none"}
        assert (world.transaction().state, world.transaction().partitions) == (STATE.ONGOING, {OTHER_PLACE})
        assert not world.txn_shard()._waiting

    def test_a_broker_waits_only_as_long_as_it_would_before_it_asks_again(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.holds_markers = True
        world.end(producer)
        asked = world.add_as_broker(ProducerEpoch(producer.producer_id, 1), OTHER_PLACE)
        world.pass_time(TXN_SETTINGS.add_retry_ms)
        assert errors_of(asked.answer) == {OTHER_PLACE: "concurrent_transactions"}
        # What gave up is not kept while the transaction hangs.
        assert not world.txn_shard()._waiting
        assert not len(world.transactions.timers)

    def test_other_producers_do_not_wait_for_the_end_of_a_transaction(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        other = world.producer("other")
        world.holds_markers = True
        world.end(producer)
        entries = [
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=each.producer_id,
                producer_epoch=each.epoch,
                topics=topics_of((OTHER_PLACE,)),
            )
            for transactional_id, each in (
                (MINE, ProducerEpoch(producer.producer_id, 1)),
                ("other", other),
            )
        ]
        answer = world.ask(AddPartitionsToTxnRequest(transactions=tuple(entries)), 5).answer
        told = {
            each.transactional_id: each.topic_results[0].results_by_partition[0].partition_error_code.name
            for each in answer.results_by_transaction
        }
        assert told == {MINE: "concurrent_transactions", "other": "none"}

    def test_what_waits_is_answered_when_the_coordinator_gives_the_partition_up(self) -> None:
        world = TransactionWorld(txn_follower=True)
        producer = ProducerEpoch(FIRST_PRODUCER, 5)
        world.put(known(STATE.ONGOING, partitions=frozenset({PLACE})))
        world.follow_state()
        world.holds_markers = True
        world.end(producer, version=4)
        world.follow_state()
        asked = world.add(producer, OTHER_PLACE)
        assert asked.is_waiting
        world.elect_state(2)
        assert errors_of(asked.answer) == {OTHER_PLACE: "not_coordinator"}

    @pytest.mark.parametrize("transactional_id", ["", "unknown"])
    def test_of_no_id(self, transactional_id: str) -> None:
        world = TransactionWorld()
        expected = "invalid_producer_id_mapping" if transactional_id else "invalid_request"
        for ask in (world.add, world.add_as_broker):
            assert errors_of(ask(FIRST, transactional_id=transactional_id).answer) == {PLACE: expected}
        asked = world.add_as_broker(FIRST, transactional_id=transactional_id, verify_only=True)
        assert errors_of(asked.answer) == {PLACE: expected}

    def test_an_unknown_partition_keeps_the_others_out(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        nowhere = TopicPartition(ORDERS, 99)
        for ask in (world.add, world.add_as_broker):
            assert errors_of(ask(producer, PLACE, nowhere).answer) == {
                PLACE: "operation_not_attempted",
                nowhere: "unknown_topic_or_partition",
            }
        assert world.transaction().state is STATE.EMPTY

    def test_clients_cannot_name_the_topics_of_coordinators(self) -> None:
        world = TransactionWorld()
        place = TopicPartition(OFFSETS_TOPIC, 0)
        assert errors_of(world.add(world.producer(), place).answer) == {place: "topic_authorization_failed"}

    def test_brokers_verify_without_changing_anything(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        before = len(world.logged())
        asked = world.add_as_broker(producer, PLACE, OTHER_PLACE, verify_only=True)
        assert errors_of(asked.answer) == {PLACE: "none", OTHER_PLACE: "transaction_abortable"}
        stale = world.add_as_broker(ProducerEpoch(FIRST_PRODUCER, 9), verify_only=True)
        assert errors_of(stale.answer) == {PLACE: "producer_fenced"}
        assert len(world.logged()) == before

    def test_the_offsets_of_a_group(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        assert world.add_offsets(producer) == "none"
        [place] = world.transaction().partitions
        assert place == world.offsets_partition(GROUP).topic_partition
        assert world.transaction().client_version == 0
        assert world.add_offsets(ProducerEpoch(FIRST_PRODUCER, 9), version=1) == "invalid_producer_epoch"


class TestEnds:
    @pytest.mark.parametrize("commit", [True, False])
    def test_before_version_2_the_epoch_stays(self, commit: bool) -> None:
        world = TransactionWorld(version=1)
        producer = begun(world, PLACE, OTHER_PLACE, version=1)
        assert error(world.end(producer, commit=commit, version=4)) == "none"
        for place in (PLACE, OTHER_PLACE):
            [(marked, marker)] = world.markers_in(place)
            assert marked == producer
            assert (marker.is_commit, marker.coordinator_epoch) == (commit, 3)
        found = world.transaction()
        assert found.state is (STATE.COMPLETE_COMMIT if commit else STATE.COMPLETE_ABORT)
        assert found.partitions == frozenset()
        assert error(world.end(producer, commit=commit, version=4)) == "none"
        assert error(world.end(producer, commit=not commit, version=4)) == "invalid_txn_state"

    @pytest.mark.parametrize("commit", [True, False])
    def test_version_2_raises_the_epoch_with_each_end(self, commit: bool) -> None:
        world = TransactionWorld()
        producer = begun(world)
        answer = world.end(producer, commit=commit).answer
        raised = ProducerEpoch(FIRST_PRODUCER, 1)
        assert (answer.producer_id, answer.producer_epoch) == raised
        [(marked, marker)] = world.markers_in()
        assert (marked, marker.is_commit) == (raised, commit)
        # The answer was lost: the same again, with the epoch of the transaction.
        again = world.end(producer, commit=commit).answer
        assert (again.error_code.name, again.producer_id, again.producer_epoch) == ("none", *raised)
        assert error(world.end(producer, commit=not commit)) == "invalid_txn_state"
        assert len(world.markers_in()) == 1

    def test_the_answer_does_not_wait_for_the_markers(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.holds_markers = True
        assert error(world.end(producer)) == "none"
        assert world.transaction().state is STATE.PREPARE_COMMIT
        assert error(world.end(producer)) == "concurrent_transactions"
        assert error(world.end(producer, commit=False)) == "invalid_txn_state"
        # With the current epoch it is no retry.
        assert error(world.end(ProducerEpoch(FIRST_PRODUCER, 1))) == "producer_fenced"
        world.release_markers()
        assert world.transaction().state is STATE.COMPLETE_COMMIT

    def test_but_for_the_record(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known(STATE.ONGOING, client_version=2))
        world.follow_state()
        asked = world.end(ProducerEpoch(FIRST_PRODUCER, 5))
        assert asked.is_waiting
        assert world.markers_in() == []
        world.follow_state()
        assert error(asked) == "none"
        assert len(world.markers_in()) == 1

    @pytest.mark.parametrize(
        ("state", "epoch", "commit", "expected"),
        [
            (STATE.EMPTY, 4, False, "producer_fenced"),
            (STATE.EMPTY, 4, True, "producer_fenced"),
            (STATE.EMPTY, 5, False, "none"),
            (STATE.EMPTY, 5, True, "invalid_txn_state"),
            (STATE.COMPLETE_ABORT, 4, False, "none"),
            (STATE.COMPLETE_ABORT, 5, False, "none"),
            (STATE.COMPLETE_ABORT, 4, True, "invalid_txn_state"),
            (STATE.COMPLETE_ABORT, 5, True, "invalid_txn_state"),
            (STATE.COMPLETE_COMMIT, 4, False, "invalid_txn_state"),
            (STATE.COMPLETE_COMMIT, 5, False, "none"),
            (STATE.COMPLETE_COMMIT, 4, True, "none"),
            (STATE.COMPLETE_COMMIT, 5, True, "invalid_txn_state"),
            (STATE.ONGOING, 6, True, "producer_fenced"),
            (STATE.ONGOING, 4, True, "producer_fenced"),
        ],
    )
    def test_the_table_of_version_2(
        self, state: TransactionState, epoch: int, commit: bool, expected: str
    ) -> None:
        """With the current epoch an abort of nothing is lawful, and raises the epoch (KAFKA-18464)."""
        world = TransactionWorld()
        world.put(known(state, client_version=2))
        answer = world.end(ProducerEpoch(FIRST_PRODUCER, epoch), commit=commit).answer
        assert answer.error_code.name == expected
        if expected == "none":
            is_new = epoch == 5
            assert answer.producer_epoch == (6 if is_new else 5)
            assert world.transaction().state is (STATE.COMPLETE_ABORT if is_new else state)

    @pytest.mark.parametrize(
        ("state", "epoch", "commit", "expected"),
        [
            (STATE.EMPTY, 5, False, "invalid_txn_state"),
            (STATE.EMPTY, 5, True, "invalid_txn_state"),
            (STATE.EMPTY, 4, True, "producer_fenced"),
            (STATE.COMPLETE_ABORT, 5, False, "none"),
            (STATE.COMPLETE_ABORT, 5, True, "invalid_txn_state"),
            (STATE.COMPLETE_COMMIT, 5, True, "none"),
            (STATE.COMPLETE_COMMIT, 5, False, "invalid_txn_state"),
        ],
    )
    def test_the_table_before_version_2(
        self, state: TransactionState, epoch: int, commit: bool, expected: str
    ) -> None:
        world = TransactionWorld(version=1)
        world.put(known(state))
        asked = world.end(ProducerEpoch(FIRST_PRODUCER, epoch), commit=commit, version=4)
        assert error(asked) == expected

    @pytest.mark.parametrize(("version", "expected"), [(5, "producer_fenced"), (1, "invalid_producer_epoch")])
    def test_of_whom(self, version: int, expected: str) -> None:
        world = TransactionWorld()
        begun(world)
        assert error(world.end(ProducerEpoch(FIRST_PRODUCER, 7), version=version)) == expected
        assert error(world.end(ProducerEpoch(9, 0), version=version)) == "invalid_producer_id_mapping"
        assert error(world.end(FIRST, transactional_id="other")) == "invalid_producer_id_mapping"
        assert error(world.end(FIRST, transactional_id="")) == "invalid_request"

    @pytest.mark.parametrize("commit", [True, False])
    def test_an_exhausted_epoch_ends_with_another_producer_id(self, commit: bool) -> None:
        world = TransactionWorld()
        world.put(known(STATE.ONGOING, epoch=LAST_EPOCH, client_version=2))
        world.holds_markers = True
        producer = ProducerEpoch(FIRST_PRODUCER, LAST_EPOCH)
        first = world.end(producer, commit=commit).answer
        assert first.error_code.name == "none"
        following = ProducerEpoch(first.producer_id, first.producer_epoch)
        assert following == ProducerEpoch(FIRST_PRODUCER + 1, 0)
        # It is heard of before the end of the transaction is complete.
        waits = "concurrent_transactions"
        asked = world.add_as_broker(following)
        world.pass_time(TXN_SETTINGS.add_retry_ms)
        assert errors_of(asked.answer) == {PLACE: waits}
        assert error(world.end(following)) == waits
        assert world.init(expected=following).error_code.name == waits
        world.release_markers()
        [(marked, _)] = world.markers_in()
        assert marked == ProducerEpoch(FIRST_PRODUCER, HIGHEST_EPOCH)
        found = world.transaction()
        assert ProducerEpoch(found.producer_id, found.epoch) == following
        again = world.end(producer, commit=commit).answer
        assert (again.error_code.name, again.producer_id, again.producer_epoch) == ("none", *following)

    def test_a_fenced_producer_at_the_last_epoch_is_not_a_dead_end(self) -> None:
        """KAFKA-20090: the abort by the coordinator takes another producer id too."""
        world = TransactionWorld()
        world.put(known(STATE.ONGOING, epoch=LAST_EPOCH, client_version=2))
        assert world.init().error_code.name == "concurrent_transactions"
        assert world.transaction().epoch == 0
        assert world.producer().epoch == 1

    def test_a_transaction_left_at_the_highest_epoch_is_aborted_all_the_same(self) -> None:
        world = TransactionWorld()
        world.put(known(STATE.ONGOING, epoch=HIGHEST_EPOCH, client_version=2))
        assert world.init().error_code.name == "concurrent_transactions"
        [(marked, _)] = world.markers_in()
        assert marked.epoch == HIGHEST_EPOCH
        assert world.transaction().state is STATE.COMPLETE_ABORT


class TestMarkers:
    def test_a_partition_that_was_deleted_needs_none(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.change(RemoveTopicRecord(topic_id=topic_id(1)))
        assert error(world.end(producer)) == "none"
        assert world.transaction().state is STATE.COMPLETE_COMMIT

    def test_a_partition_without_a_leader_is_waited_for(self) -> None:
        world = TransactionWorld()
        place = TopicPartition(ORDERS, 2)
        producer = begun(world, PLACE, place)
        world.change(fencing(2, fenced=True))
        assert error(world.end(producer)) == "none"
        assert world.transaction().state is STATE.PREPARE_COMMIT
        assert len(world.markers_in(PLACE)) == 1
        world.change(fencing(2, fenced=False))
        world.pass_time(100)
        assert list(world.transactions.markers.destinations(world.now_ms)) == [2]

    def test_those_of_one_broker_share_a_request(self) -> None:
        world = TransactionWorld()
        world.holds_markers = True
        for name in ("a", "b"):
            producer = world.producer(name)
            world.add_as_broker(producer, transactional_id=name)
            world.end(producer, transactional_id=name)
        # The first one is under way; what comes meanwhile waits.
        assert [len(request.markers) for request, _ in world.held] == [1]
        world.release_markers()
        assert len(world.markers_in()) == 2

    def test_a_marker_that_times_out_is_sent_again(self) -> None:
        """With acks=all: the follower of the partition does not fetch."""
        world = TransactionWorld()
        producer = begun(world)
        world.has_orders_follower = False
        world.end(producer)
        assert world.transaction().state is STATE.PREPARE_COMMIT
        world.pass_time(30_100)
        assert len(world.markers_in()) == 2
        world.has_orders_follower = True
        world.settle()
        assert world.transaction().state is STATE.COMPLETE_COMMIT

    def test_the_completion_is_written_when_the_replicas_are_back(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.holds_markers = True
        world.end(producer)
        world.state_partition().settings.min_insync_replicas = 2
        world.state_partition().replicas = (1, 2)
        world.release_markers()
        assert world.transaction().state is STATE.PREPARE_COMMIT
        world.pass_time(1_000)
        assert world.transaction().state is STATE.PREPARE_COMMIT
        world.state_partition().settings.min_insync_replicas = 1
        world.pass_time(1_000)
        assert world.transaction().state is STATE.COMPLETE_COMMIT
        assert len(world.markers_in()) == 1


class TestFailOver:
    @pytest.mark.parametrize("state", [STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT])
    def test_the_markers_of_a_decided_end_are_sent_again(self, state: TransactionState) -> None:
        world = TransactionWorld()
        world.put(known(state, epoch=6, client_version=2))
        [(marked, marker)] = world.markers_in()
        assert marked == ProducerEpoch(FIRST_PRODUCER, 6)
        assert marker.is_commit is (state is STATE.PREPARE_COMMIT)
        assert world.transaction().state in (STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT)

    def test_an_open_transaction_goes_on(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.fail_over_transactions()
        assert world.transaction().state is STATE.ONGOING
        assert error(world.end(producer)) == "none"

    def test_the_producer_id_that_follows_is_in_the_log(self) -> None:
        """KAFKA-20310: a fail-over between the end and its completion does not lose it."""
        world = TransactionWorld()
        world.put(known(STATE.ONGOING, epoch=LAST_EPOCH, client_version=2))
        world.holds_markers = True
        answer = world.end(ProducerEpoch(FIRST_PRODUCER, LAST_EPOCH)).answer
        world.held.clear()
        world.holds_markers = False
        world.fail_over_transactions()
        found = world.transaction()
        assert (found.producer_id, found.epoch) == (answer.producer_id, answer.producer_epoch)
        assert found.state is STATE.COMPLETE_COMMIT

    def test_what_waits_is_sent_to_the_next_coordinator(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known(STATE.ONGOING))
        world.follow_state()
        asked = world.end(ProducerEpoch(FIRST_PRODUCER, 5), version=4)
        assert asked.is_waiting
        world.elect_state(2)
        assert error(asked) == "not_coordinator"
        assert error(world.end(ProducerEpoch(FIRST_PRODUCER, 5))) == "not_coordinator"
        assert world.init().error_code.name == "not_coordinator"
        assert errors_of(world.add(FIRST).answer) == {PLACE: "not_coordinator"}
        assert world.markers_in() == []

    def test_it_serves_when_all_that_it_read_is_committed(self) -> None:
        """A decision that the former leader wrote may be lost; its marker could not be taken back."""
        world = TransactionWorld(txn_follower=True)
        world.put(known(STATE.PREPARE_COMMIT))
        assert error(world.end(FIRST)) == "coordinator_load_in_progress"
        assert world.markers_in() == []
        assert not world.transactions.is_loading
        world.follow_state()
        assert len(world.markers_in()) == 1

    def test_a_coordinator_that_resigned_sends_no_markers(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known(STATE.ONGOING, partitions=frozenset({TopicPartition(ORDERS, 2)}), client_version=2))
        world.follow_state()
        world.change(fencing(2, fenced=True))
        asked = world.end(ProducerEpoch(FIRST_PRODUCER, 5))
        world.follow_state()
        assert error(asked) == "none"
        assert len(world.transactions.markers) == 1
        world.elect_state(2)
        assert len(world.transactions.markers) == 0

    def test_markers_have_the_epoch_in_which_their_coordinator_was_elected_again(self) -> None:
        world = TransactionWorld()
        producer = begun(world)
        world.elect_state(1)
        world.elect_state(1)
        epoch = world.state_partition().leader_epoch
        assert epoch > 0
        world.end(producer)
        [(_, marker)] = world.markers_in()
        assert marker.coordinator_epoch == epoch

    def test_more_partitions_of_the_log_do_not_move_the_ids(self) -> None:
        world = TransactionWorld()
        ids = [f"id {number}" for number in range(50)]
        before = [world.transactions.partition_of(each) for each in ids]
        world.change(partition_record(TRANSACTIONS_ID, 2, (1,)))
        assert len(world.image.topics.by_name[TRANSACTIONS_TOPIC].partitions) == 3
        assert [world.transactions.partition_of(each) for each in ids] == before

    def test_a_record_that_cannot_be_read_fails_the_load(self) -> None:
        world = TransactionWorld()
        world.put(known())
        log: Any = world.state_partition().log
        del log.batches[-1]
        bad = write_data_batch([Record(0, 1, encode_transaction_key(MINE), b"\x00\x09rest")])
        log.batches.append(StoredBatch(0, 0, 3, 1, bad))
        world.fail_over_transactions()
        assert error(world.end(FIRST)) == "not_coordinator"


class TestTime:
    @pytest.mark.parametrize("version", [1, 2])
    def test_a_transaction_past_its_time_is_aborted_and_its_producer_fenced(self, version: int) -> None:
        world = TransactionWorld(version=version)
        producer = begun(world, version=version)
        world.pass_time(TIMEOUT_MS)
        assert world.transaction().state is STATE.ONGOING
        world.pass_time(TXN_SETTINGS.abort_check_ms)
        assert world.transaction().state is STATE.COMPLETE_ABORT
        assert error(world.end(producer, version=4)) == "producer_fenced"
        [(marked, marker)] = world.markers_in()
        assert (marked.epoch, marker.is_commit) == (1, False)

    def test_its_time_runs_on_at_the_next_coordinator(self) -> None:
        world = TransactionWorld()
        begun(world)
        world.pass_time(TIMEOUT_MS - 5_000)
        world.fail_over_transactions()
        world.pass_time(TXN_SETTINGS.abort_check_ms)
        assert world.transaction().state is STATE.COMPLETE_ABORT

    def test_a_transaction_of_two_phases_has_no_end(self) -> None:
        world = TransactionWorld()
        world.put(known(STATE.ONGOING, timeout_ms=2**31 - 1, start_ms=1))
        world.pass_time(100 * TXN_SETTINGS.abort_check_ms)
        assert world.transaction().state is STATE.ONGOING

    def test_many_are_aborted_in_parts(self) -> None:
        world = TransactionWorld()
        for number in range(250):
            name = f"id-{number}"
            producer = world.producer(name, timeout_ms=1_000)
            world.add_as_broker(producer, transactional_id=name)
        world.now_ms += 20_000
        world.transactions.expire(world.now_ms)
        ended = [each.aborted_by_timeout for each in world.transactions.active()]
        assert all(0 < each <= 100 for each in ended)
        world.pass_time(10)
        assert sum(each.aborted_by_timeout for each in world.transactions.active()) == 250

    @pytest.mark.parametrize("state", [STATE.EMPTY, STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT])
    def test_an_unused_id_is_forgotten(self, state: TransactionState) -> None:
        world = TransactionWorld()
        world.put(known(state, last_update_ms=world.now_ms - TXN_SETTINGS.expiration_ms))
        world.pass_time(TXN_SETTINGS.expiration_check_ms)
        assert world.logged()[-1] is None
        assert world.txn_shard().count == 0
        assert error(world.end(FIRST)) == "invalid_producer_id_mapping"

    def test_those_that_wait_for_an_id_hear_when_it_is_forgotten(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known(last_update_ms=1))
        world.follow_state()
        world.pass_time(TXN_SETTINGS.expiration_check_ms)
        asked = world.add(ProducerEpoch(FIRST_PRODUCER, 5))
        assert asked.is_waiting
        world.follow_state()
        assert errors_of(asked.answer) == {PLACE: "invalid_producer_id_mapping"}

    def test_not_one_that_was_used_since_or_has_a_transaction(self) -> None:
        world = TransactionWorld()
        world.txn_settings = replace(TXN_SETTINGS, expiration_ms=7_200_000)
        world.put(known(STATE.ONGOING, last_update_ms=1, timeout_ms=2**31 - 1), "open")
        world.put(known(last_update_ms=world.now_ms), "used")
        world.pass_time(TXN_SETTINGS.expiration_check_ms)
        assert world.txn_shard("open").find("open") is not None
        assert world.txn_shard("used").find("used") is not None

    def test_a_write_that_its_replicas_do_not_get_in_time_counts_when_they_do(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known(timeout_ms=2_000))
        world.follow_state()
        asked = world.add(ProducerEpoch(FIRST_PRODUCER, 5))
        world.pass_time(2_000)
        assert errors_of(asked.answer) == {PLACE: "coordinator_not_available"}
        again = world.add(ProducerEpoch(FIRST_PRODUCER, 5))
        world.pass_time(TXN_SETTINGS.add_retry_max_ms)
        assert errors_of(again.answer) == {PLACE: "concurrent_transactions"}
        world.follow_state()
        assert errors_of(world.add(ProducerEpoch(FIRST_PRODUCER, 5)).answer) == {PLACE: "none"}


class TestQuestions:
    def test_the_list_by_state_producer_and_duration(self) -> None:
        world = TransactionWorld()
        world.put(known(STATE.ONGOING, start_ms=world.now_ms - 500), "open")
        world.put(known(STATE.COMPLETE_COMMIT, producer_id=9), "done")

        def listed(version: int = 2, **fields: Any) -> set[tuple[str, int, str]]:
            answer = world.ask_local(ListTransactionsRequest(**fields), version)
            assert answer.error_code.name == "none"
            return {
                (each.transactional_id, each.producer_id, each.transaction_state)
                for each in answer.transaction_states
            }

        open_one = ("open", FIRST_PRODUCER, "Ongoing")
        done = ("done", 9, "CompleteCommit")
        assert listed() == {open_one, done}
        assert listed(state_filters=("Ongoing",)) == {open_one}
        assert listed(producer_id_filters=(9,)) == {done}
        assert listed(duration_filter=500) == {done}
        assert listed(duration_filter=499) == {open_one, done}
        assert listed(transactional_id_pattern="o.*") == {open_one}
        assert listed(transactional_id_pattern="pen") == set()
        bad = world.ask_local(ListTransactionsRequest(transactional_id_pattern="("))
        assert bad.error_code.name == "invalid_regular_expression"
        unknown = world.ask_local(ListTransactionsRequest(state_filters=("Gone",)))
        assert (unknown.unknown_state_filters, unknown.transaction_states) == (("Gone",), ())

    def test_no_list_while_a_part_is_loading(self) -> None:
        world = TransactionWorld(txn_follower=True)
        world.put(known())
        answer = world.ask_local(ListTransactionsRequest())
        assert answer.error_code.name == "coordinator_load_in_progress"

    def test_a_description(self) -> None:
        world = TransactionWorld()
        begun(world, PLACE, OTHER_PLACE)
        request = DescribeTransactionsRequest(transactional_ids=(MINE, "other", ""))
        found, other, empty = world.ask_local(request).transaction_states
        assert found.error_code.name == "none"
        assert (found.transaction_state, found.producer_id, found.producer_epoch) == (
            "Ongoing",
            FIRST_PRODUCER,
            0,
        )
        assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (TIMEOUT_MS, world.now_ms)
        assert [(each.topic, each.partitions) for each in found.topics] == [(ORDERS, (0, 1))]
        assert other.error_code.name == "transactional_id_not_found"
        assert empty.error_code.name == "invalid_request"


class TestOffsets:
    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", [0, 3, 4, 5])
    def test_they_count_when_the_transaction_is_committed(self, version: int, commit: bool) -> None:
        world = TransactionWorld()
        world.commit(3)
        producer = world.producer()
        if version < 5:
            assert world.add_offsets(producer) == "none"
        assert error_of_offsets(world.commit_in_transaction(producer, 7, version=version).answer) == "none"
        assert world.committed() == {(ORDERS, 0): 3}
        [group] = world.fetch(0, stable=True).answer.groups
        assert group.topics[0].partitions[0].error_code.name == "unstable_offset_commit"
        assert error(world.end(producer, commit=commit, version=5 if version == 5 else 3)) == "none"
        assert world.committed() == {(ORDERS, 0): 7 if commit else 3}
        [group] = world.fetch(0, stable=True).answer.groups
        assert group.topics[0].partitions[0].error_code.name == "none"

    @pytest.mark.parametrize(
        ("version", "expected"), [(3, "invalid_txn_state"), (4, "transaction_abortable")]
    )
    def test_a_group_that_is_not_in_the_transaction(self, version: int, expected: str) -> None:
        world = TransactionWorld()
        asked = world.commit_in_transaction(world.producer(), 7, version=version)
        assert error_of_offsets(asked.answer) == expected
        assert world.records() == []

    def test_version_5_adds_the_group(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.commit_in_transaction(producer, 7)
        assert world.transaction().partitions == {world.offsets_partition().topic_partition}

    def test_a_late_one_of_the_last_transaction_is_refused(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.commit_in_transaction(producer, 7)
        world.end(producer)
        late = world.commit_in_transaction(producer, 9)
        assert error_of_offsets(late.answer) == "invalid_producer_epoch"
        assert world.committed() == {(ORDERS, 0): 7}

    def test_members_and_generations_are_checked(self) -> None:
        world = TransactionWorld()
        [member] = world.stable(1)
        producer = world.producer()

        def told(**fields: Any) -> str:
            return error_of_offsets(world.commit_in_transaction(producer, 7, **fields).answer)

        assert told(member_id=member, generation_id=1) == "none"
        assert told(member_id=member, generation_id=2) == "illegal_generation"
        assert told(member_id="other", generation_id=1) == "unknown_member_id"
        assert told(member_id=member, generation_id=1, group_instance_id="x") == "unknown_member_id"
        # Clients before version 3 cannot say who they are.
        assert told() == "none"
        assert told(group_id="new", generation_id=3, member_id="m") == "illegal_generation"
        assert told(group_id="") == "invalid_group_id"

    def test_a_later_plain_commit_wins(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.commit_in_transaction(producer, 7)
        world.commit(9)
        world.end(producer)
        assert world.committed() == {(ORDERS, 0): 9}

    def test_a_group_of_an_open_transaction_survives_its_coordinator(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.commit_in_transaction(producer, 7)
        world.fail_over()
        world.end(producer)
        assert world.committed() == {(ORDERS, 0): 7}

    def test_what_an_open_transaction_commits_does_not_expire(self) -> None:
        """Nor does its group, which has no other offsets (KAFKA-19163)."""
        world = TransactionWorld()
        [member_id] = world.stable(1)
        world.leave((member_id, None))
        world.commit(3, group_id="other")
        producer = world.producer()
        world.commit_in_transaction(producer, 7)
        world.commit_in_transaction(producer, 8, group_id="other")
        for group_id in (GROUP, "other"):
            shard = world.groups.shard_of(group_id)
            assert isinstance(shard, GroupShard)
            shard.expire_offsets(world.now_ms + 2 * world.settings.retention_ms)
            world.settle()
            assert group_id in shard.groups
        assert world.committed("other") == {(ORDERS, 0): 3}
        world.end(producer)
        assert (world.committed(), world.committed("other")) == ({(ORDERS, 0): 7}, {(ORDERS, 0): 8})


def test_figures() -> None:
    world = TransactionWorld()
    place = TopicPartition(ORDERS, 2)
    producer = begun(world, place)
    world.producer("other")
    world.change(fencing(2, fenced=True))
    figures = world.transactions.figures()
    assert (figures.transactional_ids, figures.ongoing, figures.ending) == (2, 1, 0)
    world.end(producer)
    figures = world.transactions.figures()
    assert (figures.ongoing, figures.ending, figures.without_leader) == (0, 1, 1)
    assert figures.partitions == {"active": 2}


class TestFigures:
    def test_a_partition_whose_transaction_hangs_is_counted(self) -> None:
        """Its coordinator should have ended the transaction long ago (KIP-664)."""
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.produce(world.producer("other"), transactional_id="other", index=1)
        assert world.transactions.figures().late_partitions == 0
        # The coordinator has lost both, as one of Kafka below transaction.version 2 can.
        world.now_ms += world.partition().log.producers.max_transaction_timeout_ms + 300_001
        assert world.transactions.figures().late_partitions == 2
        assert error(world.end(producer, commit=False)) == "none"
        assert world.transactions.figures().late_partitions == 1
