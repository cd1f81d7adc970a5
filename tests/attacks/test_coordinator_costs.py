"""Some bytes of a client do not become seconds of a coordinator, nor gigabytes.

On a running broker one heartbeat of a group with 700 different expressions took 6.5 s of the event loop, and one
OffsetFetch of 8,000 groups with an offset in a transaction each 2.1 s. A DescribeTransactions of 80 KB, which named a
transaction of 1,000 partitions 19,000 times, was answered with 77 MB.
"""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.apis import transaction_questions
from kquorum.broker.groups import consumer_protocol, topic_regexes
from kquorum.broker.groups.offsets import CommittedOffset, OffsetStore, Place
from kquorum.broker.groups.topic_regexes import RegexResolution
from kquorum.broker.log import producer_state
from kquorum.broker.log.producer_state import ProducerStates
from kquorum.broker.replica.partition import TopicPartition
from kquorum.network.requests import RequestContext
from kquorum.wire.messages.describe_transactions import DescribeTransactionsRequest
from kquorum.wire.offsets_records import OffsetKey
from kquorum.wire.protocol.headers import RequestHeader
from kquorum.wire.uuids import ZERO_UUID
from tests.support.broker.consumer_world import ConsumerWorld
from tests.support.broker.data_world import ORDERS
from tests.support.broker.transaction_world import MINE, PLACE, TransactionWorld
from tests.support.images import LISTENER, image_of, partition_record, topic_records


def test_one_expression_at_a_time_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compiled = topic_regexes.compiled

    def counted(regex: str) -> Any:
        made.append(regex)
        return compiled(regex)

    monkeypatch.setattr(topic_regexes, "compiled", counted)
    regexes = [f"t{number}.*" for number in range(50)]
    image = image_of(*topic_records(1, "t7", partition_record(1, 0, (1,))))
    resolution = RegexResolution(regexes, image, lambda _topic: True)
    turns = [len(made)]
    while not resolution.advance():
        turns.append(len(made))
    assert max(after - before for before, after in zip([0, *turns], turns, strict=False)) == 1
    assert {regex for regex, found in resolution.result(0).items() if found.topics} == {"t7.*"}


def test_an_expression_that_another_broker_took_and_this_one_does_not_matches_nothing() -> None:
    image = image_of(*topic_records(1, "t7", partition_record(1, 0, (1,))))
    resolution = RegexResolution((r"\pL{1000}", "t.*"), image, lambda _topic: True)
    while not resolution.advance():
        pass
    found = resolution.result(0)
    assert (found[r"\pL{1000}"].topics, found["t.*"].topics) == (frozenset(), {"t7"})


def test_a_group_has_so_many_different_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_protocol, "MOST_REGEXES", 2)
    world = ConsumerWorld()
    world.settings = replace(world.settings, consumer_max_size=10)
    for number in range(2):
        assert world.add(f"m{number}", regex=f"t{number}.*").error_code.name == "none"
    answer = world.add("more", regex="more.*")
    assert answer.error_code.name == "invalid_regular_expression"
    assert "has 2 different expressions already" in answer.error_message
    assert world.add("same", regex="t1.*").error_code.name == "none"


class _Key(OffsetKey):
    """Counts how often a key is looked at."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "group_id":
            _Key.looks += 1
        return super().__getattribute__(name)


def test_the_transactions_of_other_groups_are_not_looked_through() -> None:
    store = OffsetStore()
    found = CommittedOffset(1, 0, "", 0, -1, ZERO_UUID, 5)
    for number in range(200):
        store.set_in_transaction(9, _Key(f"g{number}", ORDERS, 0), found)
    _Key.looks = 0
    assert store.in_transactions("g7") == [Place(ORDERS, 0)]
    assert store.in_transactions("other") == []
    assert _Key.looks == 0
    assert store.is_in_transaction("g7", Place(ORDERS, 0))
    store.end_transaction(9, 6, is_commit=True)
    assert store.in_transactions("g7") == []
    assert store.newest("g7") == {Place(ORDERS, 0): found}


def test_a_transaction_that_is_named_often_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = TransactionWorld()
    world.add_as_broker(world.producer(), PLACE, TopicPartition(ORDERS, 1))
    answer = world.ask_local(DescribeTransactionsRequest(transactional_ids=(MINE,) * 1_000 + ("other",)))
    assert [each.transactional_id for each in answer.transaction_states] == [MINE, "other"]
    named: list[str] = []
    described = transaction_questions._described

    def noted(access: Any, services: Any, transactional_id: str) -> Any:
        named.append(transactional_id)
        return described(access, services, transactional_id)

    monkeypatch.setattr(transaction_questions, "_described", noted)
    monkeypatch.setattr(transaction_questions, "_IN_A_SLICE", 2)
    request = DescribeTransactionsRequest(transactional_ids=(MINE, "other"))
    context = RequestContext(1, "127.0.0.1", LISTENER, RequestHeader(request.api_key, 0, 1, "c"))
    advance = transaction_questions.begin_describe(context, request, world.services)
    assert (advance(), named) == (None, [MINE])
    assert advance() is not None


def test_verifications_of_a_partition_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producer ids that a client made up stay as long as those of producers that are silent: a day."""
    monkeypatch.setattr(producer_state, "MOST_PRODUCERS", 3)
    states = ProducerStates(verifies_transactions=True)

    def guard(producer_id: int) -> object:
        return states.start_verification(producer_id, sequence=0, epoch=0, supports_epoch_bump=True, now_ms=0)

    first, *_, last = [guard(producer_id) for producer_id in range(4)]
    assert guard(3) is last
    assert guard(0) is not first
