"""What a broker tells clients of the cluster: one reference to an immutable image, replaced whole at each publish.

A request reads `image` once and asks the functions here about that image, so it never sees half an update. The rules
are Kafka's (KRaftMetadataCache): see each function.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kquorum.metadata.image.directories import is_online
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.raft.ports import RandomSource

NO_NODE = -1


class MetadataCache:
    """The current image; swapped by the state machine, read by request handlers of the same thread."""

    def __init__(self) -> None:
        self._image = MetadataImage.empty()

    @property
    def image(self) -> MetadataImage:
        return self._image

    def swap(self, image: MetadataImage) -> None:
        self._image = image


@dataclass(frozen=True, slots=True)
class AliveBroker:
    """A broker which clients may be sent to, at its address on the asked listener."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


def alive_brokers(
    image: MetadataImage, listener_name: str, *, with_fenced: bool = False
) -> list[AliveBroker]:
    """Registered, unfenced brokers that have the listener, by id; one in controlled shutdown counts as alive."""
    found = []
    for broker_id, broker in sorted(image.cluster.brokers.items()):
        endpoint = broker.end_point(listener_name)
        if endpoint is not None and (with_fenced or not broker.fenced):
            found.append(AliveBroker(broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced))
    return found


def controller_id_for_clients(image: MetadataImage, random_source: RandomSource) -> int:
    """A random alive broker: clients never reach controllers, and every broker forwards; -1 if none is alive."""
    alive = [broker_id for broker_id, broker in image.cluster.brokers.items() if not broker.fenced]
    return alive[random_source.randint(0, len(alive) - 1)] if alive else NO_NODE


@dataclass(frozen=True, slots=True)
class LeaderView:
    """The leader as a client of one listener sees it: `is_registered` and `has_listener` tell why it lacks."""

    leader_id: int
    is_registered: bool
    has_listener: bool


def leader_view(image: MetadataImage, partition: PartitionState, listener_name: str) -> LeaderView:
    """A fenced leader is still returned: fencing is not checked here, as in Kafka."""
    broker = image.cluster.brokers.get(partition.leader)
    if broker is None:
        return LeaderView(NO_NODE, is_registered=False, has_listener=False)
    has_listener = broker.end_point(listener_name) is not None
    return LeaderView(
        partition.leader if has_listener else NO_NODE, is_registered=True, has_listener=has_listener
    )


def reachable_replicas(
    image: MetadataImage, broker_ids: Sequence[int], listener_name: str
) -> tuple[int, ...]:
    """Those of unfenced brokers that have the listener (the filter of Metadata version 0)."""
    return tuple(broker_id for broker_id in broker_ids if _is_reachable(image, broker_id, listener_name))


def offline_replicas(image: MetadataImage, partition: PartitionState, listener_name: str) -> tuple[int, ...]:
    """Replicas of unregistered or fenced brokers, without the listener, or in a directory that is not online."""
    return tuple(
        broker_id
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=True)
        if not _is_reachable(image, broker_id, listener_name)
        or not is_online(directory, image.cluster.brokers[broker_id].log_dirs)
    )


def _is_reachable(image: MetadataImage, broker_id: int, listener_name: str) -> bool:
    broker = image.cluster.brokers.get(broker_id)
    return broker is not None and not broker.fenced and broker.end_point(listener_name) is not None
