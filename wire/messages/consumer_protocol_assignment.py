"""ConsumerProtocolAssignment, versions 0 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Data, Struct, kafka, message, struct


@struct
class TopicPartition(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 3), flexible_since=None)
class ConsumerProtocolAssignment(Data):
    assigned_partitions: tuple[TopicPartition, ...] = kafka([TopicPartition], default=())
    user_data: bytes | None = kafka("bytes", default=None, nullable=True)
