"""Transactions as a client of brokers sees and ends them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.cli.clients.coordinator_client import CoordinatedKey, CoordinatorClient, check
from kquorum.cli.failures import CliError
from kquorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from kquorum.wire.messages.describe_transactions import DescribeTransactionsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest
from kquorum.wire.messages.list_transactions import ListTransactionsRequest
from kquorum.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

ONGOING: Final = "Ongoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransaction:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionView:
    """`start_ms` is in ms since 1970, None without a transaction."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[tuple[str, int], ...]


class TransactionClient(CoordinatorClient):
    """`timeout_ms` bounds each call. Used within `async with`."""

    key_type = CoordinatedKey.TRANSACTIONAL_ID

    async def transactions(
        self, states: Sequence[str] = (), producer_ids: Sequence[int] = (), longer_than_ms: int | None = None
    ) -> list[ListedTransaction]:
        """Of all brokers, by id. Raises CliError for a state that does not exist."""
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=-1 if longer_than_ms is None else longer_than_ms,
        )

        async def ask() -> list[ListedTransaction]:
            found: dict[str, ListedTransaction] = {}
            for broker_id in await self.look_up_brokers():
                answer = await self._call(await self._connection(broker_id), request)
                check(answer.error_code, f"broker {broker_id}")
                if answer.unknown_state_filters:
                    raise CliError(f"transactions have no state {answer.unknown_state_filters[0]}")
                for each in answer.transaction_states:
                    found[each.transactional_id] = ListedTransaction(
                        transactional_id=each.transactional_id,
                        coordinator=broker_id,
                        producer_id=each.producer_id,
                        state=each.transaction_state,
                    )
            return [found[name] for name in sorted(found)]

        return await self._until_it_passes(ask, "listing transactions")

    async def describe(self, transactional_id: str) -> TransactionView:
        """Raises CliError for an id that is not there."""

        async def ask() -> TransactionView:
            coordinator = await self.coordinator(transactional_id)
            request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
            answer = await self._call(await self._connection(coordinator), request)
            [found] = answer.transaction_states
            if found.error_code is ErrorCode.transactional_id_not_found:
                raise CliError(f"there is no transactional id {transactional_id}")
            check(found.error_code, f"transactional id {transactional_id}")
            return TransactionView(
                transactional_id=transactional_id,
                coordinator=coordinator,
                state=found.transaction_state,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                timeout_ms=found.transaction_timeout_ms,
                start_ms=None if found.transaction_start_time_ms < 0 else found.transaction_start_time_ms,
                partitions=tuple((topic.topic, each) for topic in found.topics for each in topic.partitions),
            )

        return await self._until_it_passes(ask, f"describing transactional id {transactional_id}")

    async def fence(self, found: TransactionView) -> None:
        """The id gets a new epoch: its open transaction is aborted, and its producer cannot go on."""
        request = InitProducerIdRequest(
            transactional_id=found.transactional_id, transaction_timeout_ms=found.timeout_ms
        )

        async def ask() -> None:
            answer = await self.at_coordinator(found.transactional_id, request)
            check(answer.error_code, f"transactional id {found.transactional_id}")

        await self._until_it_passes(ask, f"aborting the transaction of {found.transactional_id}")

    async def abort_at(self, topic: str, partition: int, start_offset: int) -> ProducerState:
        """Write an abort marker for the transaction that begins at an offset of the partition (KIP-664). Raises
        CliError where there is none."""
        place = await self.topic(topic)
        if partition not in place.leaders:
            raise CliError(f"topic {topic} has no partition {partition}")
        name = f"{topic}-{partition}"

        async def ask() -> ProducerState:
            leader = await self._leader(place, partition)
            request = DescribeProducersRequest(
                topics=(TopicRequest(name=topic, partition_indexes=(partition,)),)
            )
            answer = await self._call(leader, request)
            found = answer.topics[0].partitions[0]
            check(found.error_code, name)
            producers = [
                each for each in found.active_producers if each.current_txn_start_offset == start_offset
            ]
            if not producers:
                raise CliError(f"no open transaction begins at offset {start_offset} of {name}")
            [producer] = producers
            marker = WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(partition,)),),
                coordinator_epoch=max(producer.coordinator_epoch, 0),
            )
            written = await self._call(leader, WriteTxnMarkersRequest(markers=(marker,)))
            check(written.markers[0].topics[0].partitions[0].error_code, name)
            return producer

        return await self._until_it_passes(
            ask, f"aborting a transaction in {name}", lambda: self._look_again(place)
        )
