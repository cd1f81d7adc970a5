"""What becomes of one partition (rules C9, C10), step by step on a copy, and the record that tells of it.

Where the product departs from Kafka on purpose, so does the model:
metadata/controller/partitions/partition_change.py says where.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.reference_model.objects import DIRECTORIES_FROM, NO_BROKER, Cluster, Partition

EPOCH_BUMP_ON_SHRINK_BELOW = 12
RECOVERY_FROM = 3


@dataclass
class Wish:
    """A wanted change of a partition. `gone` may not lead, `back` may, whatever the registrations say; `crashed`
    have lost what they had not flushed."""

    isr: list[int] | None = None
    replicas: list[int] | None = None
    adding: list[int] | None = None
    removing: list[int] | None = None
    election: str = "online"
    gone: set[int] = field(default_factory=set)
    back: set[int] = field(default_factory=set)
    crashed: set[int] = field(default_factory=set)
    is_recovering: bool | None = None
    directories: dict[int, int] = field(default_factory=dict)


def change(cluster: Cluster, topic: str, index: int, wish: Wish) -> bool:
    """Change the partition and log the record; False when there is nothing to change."""
    old = cluster.topics[topic].partitions[index]
    new = deepcopy(old)
    _apply_wish(new, wish)
    _complete_reassignment(new)
    _place_replicas(cluster, old, new, wish)
    _update_eligible(cluster, topic, old, new, wish)
    leader, is_unclean = _elect(cluster, old, new, wish)
    _install(cluster, topic, old, new, leader, is_unclean)
    if wish.is_recovering is not None and not is_unclean:
        new.is_recovering = wish.is_recovering
    fields = _difference(cluster, old, new)
    lost_replica = bool(set(old.replicas) - set(new.replicas))
    shrank = bool(set(old.isr) - set(new.isr))
    if new.leader != old.leader or lost_replica or (shrank and cluster.level < EPOCH_BUMP_ON_SHRINK_BELOW):
        fields["leader"] = new.leader
        new.leader_epoch += 1
    if not fields:
        return False
    new.partition_epoch += 1
    cluster.topics[topic].partitions[index] = new
    cluster.log.append(("change", topic, index, fields))
    return True


def _apply_wish(new: Partition, wish: Wish) -> None:
    for name in ("isr", "replicas", "adding", "removing"):
        value = getattr(wish, name)
        if value is not None:
            setattr(new, name, list(value))


def _complete_reassignment(new: Partition) -> None:
    """All that are to stay are in sync: those that were to go are dropped."""
    if not new.adding and not new.removing:
        return
    staying = [each for each in new.replicas if each not in new.removing]
    in_sync = [each for each in new.isr if each not in new.removing]
    if staying and in_sync and set(staying).issubset(in_sync):
        new.replicas, new.isr, new.adding, new.removing = staying, in_sync, [], []


def _place_replicas(cluster: Cluster, old: Partition, new: Partition, wish: Wish) -> None:
    known = dict(zip(old.replicas, old.directories, strict=True)) | wish.directories
    new.directories = [
        known[each] if each in known else cluster.default_directory(each) for each in new.replicas
    ]


def _update_eligible(cluster: Cluster, topic: str, old: Partition, new: Partition, wish: Wish) -> None:
    if not cluster.has_elr:
        # The list is not maintained any more: it holds only where the ISR was empty, so that nothing was written since.
        kept = set() if old.isr else old.eligible
        new.eligible = kept.intersection(new.replicas).difference(wish.crashed)
        return
    if len(new.isr) >= min(cluster.min_isr(topic), len(new.replicas)):
        new.eligible = set()
        return
    candidates = old.eligible.union(old.isr)
    new.eligible = (candidates.intersection(new.replicas)).difference(new.isr).difference(wish.crashed)


def _elect(cluster: Cluster, old: Partition, new: Partition, wish: Wish) -> tuple[int, bool]:
    """The leader, and whether data may be lost with it."""
    acceptable = (cluster.active() | wish.back) - wish.gone - wish.crashed
    acceptable = {each for each in acceptable & set(cluster.brokers) if cluster.is_online(old, each)}
    entitled = set(new.isr) if new.isr else new.eligible
    valid = acceptable & entitled
    if wish.election == "preferred" and new.replicas[0] in valid:
        return new.replicas[0], False
    if old.leader in valid:
        return old.leader, False
    for replica in new.replicas:
        if replica in valid:
            return replica, False
    is_alone = cluster.has_elr and not new.isr and not new.eligible and len(old.last_known) == 1
    if is_alone and old.last_known[0] in acceptable and old.last_known[0] in new.replicas:
        return old.last_known[0], True
    if wish.election == "unclean":
        for replica in new.replicas:
            if replica in acceptable:
                return replica, True
    return NO_BROKER, False


def _install(
    cluster: Cluster, topic: str, old: Partition, new: Partition, leader: int, is_unclean: bool
) -> None:
    new.leader = leader
    if is_unclean:
        new.isr, new.eligible = [leader], set()
        if cluster.level >= RECOVERY_FROM:
            new.is_recovering = True
    elif leader in new.eligible and not new.isr:
        new.isr = [leader]
        new.eligible = new.eligible - {leader}
        if min(cluster.min_isr(topic), len(new.replicas)) <= 1:
            new.eligible = set()
    elif not new.isr and not cluster.has_elr:
        new.isr = list(old.isr)
    if new.isr and not cluster.has_elr:
        new.eligible = set()
    if cluster.has_elr:
        new.last_known = _last_known(old, new)


def _last_known(old: Partition, new: Partition) -> list[int]:
    if new.leader != NO_BROKER:
        return []
    got_empty = not new.isr and bool(old.isr)
    if got_empty and old.leader != NO_BROKER:
        return [old.leader]
    if got_empty and len(old.isr) == 1 and not old.last_known:
        return list(old.isr)
    return list(old.last_known)


def _difference(cluster: Cluster, old: Partition, new: Partition) -> dict[str, Any]:
    names = ("replicas", "isr", "adding", "removing", "eligible", "last_known", "is_recovering")
    changed = {name: getattr(new, name) for name in names if getattr(new, name) != getattr(old, name)}
    if new.directories != old.directories and cluster.level >= DIRECTORIES_FROM:
        changed["directories"] = new.directories
    return changed
