"""ConsumerProtocolSubscription, versions 0 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Data, Struct, kafka, message, struct


@struct
class TopicPartition(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 3), flexible_since=None)
class ConsumerProtocolSubscription(Data):
    topics: tuple[str, ...] = kafka("[]string", default=())
    user_data: bytes | None = kafka("bytes", default=None, nullable=True)
    owned_partitions: tuple[TopicPartition, ...] = kafka([TopicPartition], default=(), since=1)
    generation_id: int = kafka("int32", default=-1, since=2)
    rack_id: str | None = kafka("string", default=None, since=3, nullable=True)
