"""AlterPartition (api key 56) as leaders ask for it: in version 3 with the epochs of the brokers (KIP-903), in version
2 with their ids alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    RequestTopicData,
)

_FIRST_VERSION_WITH_EPOCHS = 3


def changes_of_isr(
    broker_id: int, broker_epoch: int, topics: Mapping[UUID, Sequence[RequestPartitionData]]
) -> ByVersion[AlterPartitionResponse]:
    """`topics` have the members of each ISR with their epochs."""

    def make(version: int) -> AlterPartitionRequest:
        is_with_epochs = version >= _FIRST_VERSION_WITH_EPOCHS
        return AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            topics=tuple(
                RequestTopicData(
                    topic_id=topic_id,
                    partitions=tuple(changes if is_with_epochs else map(_without_epochs, changes)),
                )
                for topic_id, changes in topics.items()
            ),
        )

    return ByVersion(AlterPartitionRequest, make)


def _without_epochs(change: RequestPartitionData) -> RequestPartitionData:
    members = tuple(member.broker_id for member in change.new_isr_with_epochs)
    return replace(change, new_isr=members, new_isr_with_epochs=())
