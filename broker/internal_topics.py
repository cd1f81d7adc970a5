"""How a topic that a client asks for looks when it is created by itself: Kafka's own topics have rules of their own
(AutoTopicCreationManager and the three coordinators of Kafka 4.3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

_AS_THE_CONTROLLER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    partitions: int
    replication_factor: int
    configs: Mapping[str, object] = field(default_factory=dict)


def creatable_topic(name: str, node: NodeConfigs) -> CreatableTopic:
    """An entry of a CreateTopicsRequest, by the configs of the broker that sends it.

    What the config file of this broker leaves open for an ordinary topic, the controller decides by its own.
    """
    shape = _INTERNAL.get(name, _ordinary)(node)
    return CreatableTopic(
        name=name,
        num_partitions=shape.partitions,
        replication_factor=shape.replication_factor,
        configs=tuple(
            CreatableTopicConfig(name=key, value=str(value)) for key, value in shape.configs.items()
        ),
    )


def _ordinary(node: NodeConfigs) -> _Shape:
    return _Shape(
        partitions=_if_set(node, "num.partitions"),
        replication_factor=_if_set(node, "default.replication.factor"),
    )


def _consumer_offsets(node: NodeConfigs) -> _Shape:
    return _Shape(
        partitions=node.number("offsets.topic.num.partitions"),
        replication_factor=node.number("offsets.topic.replication.factor"),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": node.number("offsets.topic.segment.bytes"),
        },
    )


def _transaction_state(node: NodeConfigs) -> _Shape:
    return _Shape(
        partitions=node.number("transaction.state.log.num.partitions"),
        replication_factor=node.number("transaction.state.log.replication.factor"),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": node.number("transaction.state.log.min.isr"),
            "segment.bytes": node.number("transaction.state.log.segment.bytes"),
            "unclean.leader.election.enable": "false",
        },
    )


def _share_group_state(node: NodeConfigs) -> _Shape:
    return _Shape(
        partitions=node.number("share.coordinator.state.topic.num.partitions"),
        replication_factor=node.number("share.coordinator.state.topic.replication.factor"),
        configs={
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": node.number("share.coordinator.state.topic.min.isr"),
            "segment.bytes": node.number("share.coordinator.state.topic.segment.bytes"),
        },
    )


_INTERNAL: Mapping[str, Callable[[NodeConfigs], _Shape]] = {
    "__consumer_offsets": _consumer_offsets,
    "__transaction_state": _transaction_state,
    "__share_group_state": _share_group_state,
}
INTERNAL_TOPICS: Final = frozenset(_INTERNAL)


def _if_set(node: NodeConfigs, name: str) -> int:
    return node.number(name) if name in node.static else _AS_THE_CONTROLLER
