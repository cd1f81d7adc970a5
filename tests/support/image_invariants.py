"""What holds of every image, whichever record came last; each is written so that it names what it found."""

from collections.abc import Iterator

from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import NO_LEADER, PartitionState

FENCED_LEADER = "the leader is fenced or not registered"


def image_violations(image: MetadataImage, before: MetadataImage | None = None) -> list[str]:
    """What is wrong with an image, and with the step from the one before it (a record or more earlier)."""
    found: list[str] = []
    for topic in image.topics.by_id.values():
        for partition_id, state in topic.partitions.items():
            place = f"{topic.name}-{partition_id}"
            found += [f"{place}: {what}: {state}" for what in _of_partition(image, state)]
            old = None if before is None else before.topics.partition(topic.id, partition_id)
            if old is not None and old != state:
                found += [f"{place}: {what}: {old} -> {state}" for what in _of_step(old, state)]
    found += _of_topics(image)
    if before is not None:
        found += _of_brokers(before, image)
    return found


def _of_partition(image: MetadataImage, state: PartitionState) -> Iterator[str]:
    yield from _of_lists(state)
    if state.leader != NO_LEADER:
        yield from _of_leader(image, state)
    unregistered = {broker for broker in {*state.isr, *state.elr} if broker not in image.cluster.brokers}
    if unregistered - _last_member(state):
        yield "an unregistered broker counts as having the data"


def _of_lists(state: PartitionState) -> Iterator[str]:
    replicas, isr, elr = set(state.replicas), set(state.isr), set(state.elr)
    if not replicas:
        yield "no replicas"
    if len(replicas) != len(state.replicas) or len(isr) != len(state.isr) or len(elr) != len(state.elr):
        yield "a list names a broker twice"
    if not isr <= replicas:
        yield "an ISR beyond the replicas"
    if not elr <= replicas:
        yield "eligible leaders beyond the replicas"
    if isr & elr:
        yield "ISR and ELR overlap"
    if not set(state.removing_replicas) <= replicas or not set(state.adding_replicas) <= replicas:
        yield "adding or removing beyond the replicas"
    if len(state.directories) != len(state.replicas):
        yield "directories do not fit the replicas"


def _of_leader(image: MetadataImage, state: PartitionState) -> Iterator[str]:
    if state.leader not in state.isr:
        yield "the leader is not in sync"
    leader = image.cluster.brokers.get(state.leader)
    if leader is None or leader.fenced:
        yield FENCED_LEADER


def _last_member(state: PartitionState) -> set[int]:
    """Without a leader the ISR may keep its last member, so that its data is known to be the whole."""
    return set(state.isr) if state.leader == NO_LEADER and len(state.isr) == 1 else set()


def _of_step(old: PartitionState, new: PartitionState) -> Iterator[str]:
    if new.leader_epoch < old.leader_epoch:
        yield "the leader epoch went back"
    if new.partition_epoch <= old.partition_epoch:
        yield "a change without a new partition epoch"
    if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
        yield "another leader in the same epoch"
    if set(old.replicas) - set(new.replicas) and new.leader_epoch == old.leader_epoch:
        yield "a replica was dropped without a new leader epoch"
    has_new_leader = new.leader not in (NO_LEADER, old.leader)
    entitled = {*old.isr, *old.elr}
    is_reassigned = old.adding_replicas or old.removing_replicas
    if is_reassigned and not (new.adding_replicas or new.removing_replicas):
        # The change of the ISR that ends a reassignment may bring its new leader in.
        entitled.update(new.isr)
    if has_new_leader and new.leader not in entitled and new.leader_recovery_state == 0:
        yield "an unclean leader that does not recover"


def _of_topics(image: MetadataImage) -> Iterator[str]:
    by_id, by_name = image.topics.by_id, image.topics.by_name
    if len(by_id) != len(by_name) or any(by_name.get(each.name) is not each for each in by_id.values()):
        yield "topics by id and by name differ"
    led: dict[int, int] = {}
    for topic in by_id.values():
        if [partition_id for partition_id, _ in topic.partitions.items()] != list(
            range(len(topic.partitions))
        ):
            yield f"{topic.name}: partitions have holes"
        for _, state in topic.partitions.items():
            if state.leader != NO_LEADER:
                led[state.leader] = led.get(state.leader, 0) + 1
    partitions = sum(len(topic.partitions) for topic in image.topics.by_id.values())
    if partitions != image.topics.partition_count:
        yield f"the count of partitions is {image.topics.partition_count}, but there are {partitions}"
    if led != dict(image.topics.led_counts):
        yield f"counts of led partitions: {dict(image.topics.led_counts)}, but {led} are led"


def _of_brokers(before: MetadataImage, image: MetadataImage) -> Iterator[str]:
    for broker_id, broker in image.cluster.brokers.items():
        known = before.cluster.brokers.get(broker_id)
        if known is None or known.epoch == broker.epoch:
            continue
        if broker.epoch < known.epoch:
            yield f"broker {broker_id}: the epoch went back from {known.epoch} to {broker.epoch}"
        if not broker.fenced:
            yield f"broker {broker_id}: a new process is not fenced"
