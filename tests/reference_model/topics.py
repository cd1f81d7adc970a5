"""Topics, partitions, leaders, reassignments and the configs that matter to them (rules C9, C11 to C15)."""

from typing import Any

from tests.reference_model.brokers import election
from tests.reference_model.changes import Wish, change
from tests.reference_model.objects import NO_BROKER, Cluster, Partition, Refused, Topic

MIN_ISR = "min.insync.replicas"
ELR_FROM = 23


def create_topic(cluster: Cluster, name: str, assignments: list[list[int]], configs: dict[str, str]) -> None:
    if name in cluster.topics:
        raise Refused("topic_already_exists")
    partitions = [_new_partition(cluster, each, len(assignments[0])) for each in assignments]
    cluster.topics[name] = Topic(name, partitions)
    cluster.log.append(("topic", name))
    if configs:
        cluster.configs[name] = dict(configs)
    cluster.log.extend(("config", "topic", name, key, value) for key, value in sorted(configs.items()))
    _log_partitions(cluster, name, 0)


def delete_topic(cluster: Cluster, name: str) -> None:
    if name not in cluster.topics:
        raise Refused("unknown_topic_or_partition")
    del cluster.topics[name]
    cluster.configs.pop(name, None)
    cluster.log.append(("remove topic", name))


def create_partitions(cluster: Cluster, name: str, count: int, assignments: list[list[int]]) -> None:
    if name not in cluster.topics:
        raise Refused("unknown_topic_or_partition")
    partitions = cluster.topics[name].partitions
    first = len(partitions)
    if count <= first:
        raise Refused("invalid_partitions")
    if len(assignments) != count - first:
        raise Refused("invalid_replica_assignment")
    factor = len(partitions[0].replicas)
    partitions.extend([_new_partition(cluster, each, factor) for each in assignments])
    _log_partitions(cluster, name, first)


def alter_partition(
    cluster: Cluster, broker_id: int, broker_epoch: int, name: str, index: int, asked: dict[str, Any]
) -> Partition:
    """`asked`: isr (list of (broker, epoch or -1)), leader_epoch, partition_epoch, is_recovering."""
    cluster.broker(broker_id, broker_epoch)
    if name not in cluster.topics:
        raise Refused("unknown_topic_id")
    part = cluster.partition(name, index)
    _check_epochs(part, broker_id, asked)
    members = [member for member, _ in asked["isr"]]
    if len(set(members)) < len(members) or not set(members).issubset(part.replicas):
        raise Refused("invalid_request")
    if part.leader not in members:
        raise Refused("invalid_request")
    if asked["is_recovering"] and (len(members) > 1 or not part.is_recovering):
        raise Refused("invalid_request")
    for member, epoch in asked["isr"]:
        if member not in cluster.active() or epoch not in (-1, cluster.brokers[member].epoch):
            raise Refused("ineligible_replica")
        if not cluster.has_session(member):
            raise Refused("ineligible_replica")
    wish = Wish(isr=members, is_recovering=asked["is_recovering"], election=election(cluster, name))
    change(cluster, name, index, wish)
    changed = cluster.topics[name].partitions[index]
    if changed.leader != broker_id:
        raise Refused("new_leader_elected", is_written=True)
    return changed


def elect_leader(cluster: Cluster, name: str, index: int, *, unclean: bool) -> None:
    part = cluster.partition(name, index)
    if (part.leader != NO_BROKER) if unclean else (part.leader == part.replicas[0]):
        raise Refused("election_not_needed")
    if not change(cluster, name, index, Wish(election="unclean" if unclean else "preferred")):
        raise Refused("eligible_leaders_not_available" if unclean else "preferred_leader_not_available")


def reassign(cluster: Cluster, name: str, index: int, target: list[int]) -> None:
    part = cluster.partition(name, index)
    _check_assignment(cluster, target, None)
    removing = sorted(set(part.replicas) - set(target))
    adding = sorted(set(target) - set(part.replicas))
    # As in Kafka, an assignment that adds no replica leaves the list of those being added as it was.
    wish = Wish(replicas=[*target, *removing], removing=removing, adding=adding or part.adding)
    change(cluster, name, index, wish)


def cancel_reassignment(cluster: Cluster, name: str, index: int) -> None:
    part = cluster.partition(name, index)
    if not part.adding and not part.removing:
        raise Refused("no_reassignment_in_progress")
    replicas = [each for each in part.replicas if each not in part.adding]
    isr = [each for each in part.isr if each not in part.adding]
    if not replicas or (not isr and not cluster.allows_unclean(name)):
        raise Refused("invalid_replica_assignment")
    wish = Wish(
        isr=isr or replicas[:1], replicas=replicas, adding=[], removing=[], election=election(cluster, name)
    )
    change(cluster, name, index, wish)


def set_config(cluster: Cluster, name: str, key: str, value: str | None) -> None:
    """Of a topic, or with the empty name of all brokers; None takes it off."""
    if name and name not in cluster.topics:
        raise Refused("unknown_topic_or_partition")
    if not name and cluster.has_elr and key == MIN_ISR and value is None:
        raise Refused("invalid_config")
    values = cluster.configs.setdefault(name, {})
    is_new = values.get(key) != value
    if value is not None:
        values[key] = value
    else:
        values.pop(key, None)
    if not values:
        del cluster.configs[name]
    # What brokers learn of is always written: they are to read it again.
    if is_new or not name:
        cluster.log.append(("config", "topic" if name else "broker", name, key, value))
        if key == MIN_ISR and cluster.has_elr:
            _clear_eligible(cluster, name)


def turn_elr(cluster: Cluster, *, on: bool) -> None:
    """With eligible leader replicas there is one minimum for all nodes; without them, lists stay till they are used."""
    if on and cluster.level < ELR_FROM:
        raise Refused("invalid_update_version")
    values = cluster.configs.setdefault("", {})
    if on and MIN_ISR not in values:
        values[MIN_ISR] = "1"
        cluster.log.append(("config", "broker", "", MIN_ISR, "1"))
    if not values:
        del cluster.configs[""]
    if on and not cluster.has_elr:
        _forget_stale_lists(cluster)
    cluster.has_elr = on
    cluster.log.append(("feature", "eligible.leader.replicas.version", int(on)))


def _clear_eligible(cluster: Cluster, name: str) -> None:
    """A list that was kept under another minimum is worth nothing."""
    cluster.log.append(("clear elr", name))
    for topic, _, part in cluster.places():
        if name in ("", topic) and (part.eligible or part.last_known):
            part.eligible, part.last_known = set(), []
            part.partition_epoch += 1


def _forget_stale_lists(cluster: Cluster) -> None:
    """They were not maintained, and in-sync replicas may have gone on without those listed."""
    for name, topic in cluster.topics.items():
        with_lists = [
            (index, part) for index, part in enumerate(topic.partitions) if part.eligible or part.last_known
        ]
        stale = [(index, part) for index, part in with_lists if part.isr]
        is_whole_topic = len(stale) == len(with_lists)
        if stale and is_whole_topic:
            cluster.log.append(("clear elr", name))
        for index, part in stale:
            if not is_whole_topic:
                cluster.log.append(("change", name, index, {"eligible": set(), "last_known": []}))
            part.eligible, part.last_known = set(), []
            part.partition_epoch += 1


def _check_epochs(part: Partition, broker_id: int, asked: dict[str, Any]) -> None:
    if asked["leader_epoch"] > part.leader_epoch or asked["partition_epoch"] > part.partition_epoch:
        raise Refused("not_controller")
    if asked["leader_epoch"] < part.leader_epoch:
        raise Refused("fenced_leader_epoch")
    if broker_id != part.leader:
        raise Refused("invalid_request")
    if asked["partition_epoch"] < part.partition_epoch:
        raise Refused("invalid_update_version")


def _check_assignment(cluster: Cluster, replicas: list[int], factor: int | None) -> None:
    if (
        not replicas
        or len(set(replicas)) < len(replicas)
        or not set(replicas).issubset(cluster.brokers)
        or (factor is not None and len(replicas) != factor)
    ):
        raise Refused("invalid_replica_assignment")


def _new_partition(cluster: Cluster, replicas: list[int], factor: int) -> Partition:
    _check_assignment(cluster, replicas, factor)
    isr = [each for each in replicas if each in cluster.active() - cluster.going()]
    if not isr:
        raise Refused("invalid_replica_assignment")
    directories = [cluster.default_directory(each) for each in replicas]
    return Partition(replicas=list(replicas), isr=isr, leader=isr[0], directories=directories)


def _log_partitions(cluster: Cluster, name: str, first: int) -> None:
    for index, part in enumerate(cluster.topics[name].partitions[first:], first):
        cluster.log.append(("partition", name, index, list(part.replicas), list(part.isr), part.leader))
