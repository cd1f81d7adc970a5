"""Brokers that come, live and go (rules C6 to C8)."""

from tests.reference_model.changes import Wish, change
from tests.reference_model.objects import DIRECTORIES_FROM, NO_BROKER, Broker, Cluster, Partition, Refused

CHANGE_RECORD_FROM = 6
LEAVING_STATE_FROM = 7
ELECTIONS_EVERY_MS = 10_000


def register(
    cluster: Cluster,
    broker_id: int,
    incarnation: int,
    directories: list[int],
    *,
    is_clean: bool,
    epoch: int,
    offset: int,
) -> int:
    """`epoch` and `offset` are what a new process would get, and where its record stands. Answers its epoch."""
    known = cluster.brokers.get(broker_id)
    if known is not None and known.incarnation == incarnation:
        known.registered_at, known.contact_ms = offset, cluster.now_ms
        known.directories = directories
        cluster.log.append(("register", broker_id, known.epoch, known.fenced, known.leaving))
        return known.epoch
    if known is not None and not known.fenced and cluster.has_session(broker_id):
        raise Refused("duplicate_broker_registration")
    # Also where eligible leader replicas were turned off: a list that was kept still names the replicas with the data.
    _remove(cluster, broker_id, has_crashed=known is None or not is_clean)
    cluster.brokers[broker_id] = Broker(
        broker_id,
        epoch,
        incarnation,
        registered_at=offset,
        directories=directories,
        contact_ms=cluster.now_ms,
    )
    cluster.log.append(("register", broker_id, epoch, True, False))
    return epoch


def unregister(cluster: Cluster, broker_id: int) -> None:
    if broker_id not in cluster.brokers:
        raise Refused("broker_id_not_registered")
    _remove(cluster, broker_id, has_crashed=True)
    del cluster.brokers[broker_id]
    cluster.log.append(("unregister", broker_id))


def heartbeat(
    cluster: Cluster,
    broker_id: int,
    epoch: int,
    read_offset: int,
    *,
    want_fence: bool,
    want_shut_down: bool,
    offline: list[int],
) -> tuple[bool, bool, bool]:
    """Answers whether it is caught up, is fenced, should shut down."""
    broker = cluster.broker(broker_id, epoch)
    is_caught_up = read_offset >= broker.registered_at
    state = _state(broker)
    following = _next_state(cluster, broker, state, is_caught_up, want_fence, want_shut_down)
    failed = set(offline) & set(broker.directories)
    if failed and (state, following) == ("fenced", "unfenced"):
        following = state
    is_fenced = following in ("fenced", "gone")
    broker.contact_ms, broker.read_offset = cluster.now_ms, read_offset
    if is_fenced:
        broker.shutdown_offset = None
        if state != "fenced":
            _fence_as_asked_for(cluster, broker)
    elif following == "unfenced" and state == "fenced":
        _unfence(cluster, broker)
    elif following == "leaving" and state == "unfenced":
        _begin_leaving(cluster, broker)
    if failed and following == state:
        _lose_directories(cluster, broker, failed)
    return is_caught_up, is_fenced, following == "gone"


def _lose_directories(cluster: Cluster, broker: Broker, failed: set[int]) -> None:
    """A broker that has none left is about to stop; nothing more is said of it."""
    for name, index, part in cluster.places():
        where = dict(zip(part.replicas, part.directories, strict=True)).get(broker.id)
        if broker.id in part.isr and where in failed and not _is_all_that_is_left(cluster, part, broker.id):
            isr = [each for each in part.isr if each != broker.id]
            change(cluster, name, index, Wish(isr=isr, election=election(cluster, name), gone={broker.id}))
    left = [each for each in broker.directories if each not in failed]
    if left:
        broker.directories = left
        cluster.log.append(("broker directories", broker.id, left))


def assign_directory(
    cluster: Cluster, broker_id: int, epoch: int, name: str, index: int, directory: int
) -> None:
    if cluster.level < DIRECTORIES_FROM:
        raise Refused("unsupported_version")
    broker = cluster.broker(broker_id, epoch)
    if name not in cluster.topics:
        raise Refused("unknown_topic_id")
    part = cluster.partition(name, index)
    if broker_id not in part.replicas:
        raise Refused("not_leader_or_follower")
    change(cluster, name, index, Wish(directories={broker_id: directory}))
    part = cluster.partition(name, index)
    if broker.directories and directory not in broker.directories:
        isr = [each for each in part.isr if each != broker_id]
        change(cluster, name, index, Wish(isr=isr, election=election(cluster, name), gone={broker_id}))


def pass_time(cluster: Cluster, milliseconds: int) -> None:
    """Whatever becomes due is done at its own moment."""
    target = cluster.now_ms + milliseconds
    while (due_ms := _next_due_ms(cluster)) <= target:
        cluster.now_ms = max(cluster.now_ms, due_ms)
        _do_what_is_due(cluster)
    cluster.now_ms = target


def _do_what_is_due(cluster: Cluster) -> None:
    """Sessions end one by one, and only then it is looked for leaders. Who is fenced first leaves its partitions when
    all fences are written."""
    fenced_first = []
    while silent := [each for each in cluster.brokers.values()
                     if not each.fenced and not cluster.has_session(each.id)]:  # fmt: skip
        broker = min(silent, key=lambda each: (each.contact_ms, each.id))
        broker.shutdown_offset = None
        if _are_too_many(cluster, broker.id):
            _note_fence(cluster, broker)
            fenced_first.append(broker.id)
        else:
            _take_off(cluster, broker.id)
            _note_fence(cluster, broker)
    for broker_id in fenced_first:
        _take_off(cluster, broker_id)
    if cluster.election_due_ms <= cluster.now_ms:
        cluster.election_due_ms = cluster.now_ms + ELECTIONS_EVERY_MS
        _elect_clean_leaders(cluster)


def forget_sessions(cluster: Cluster) -> None:
    """Another controller became active: it gives everybody a full session."""
    cluster.election_due_ms = cluster.now_ms + ELECTIONS_EVERY_MS
    for broker in cluster.brokers.values():
        broker.contact_ms, broker.read_offset, broker.shutdown_offset = cluster.now_ms, -1, None


def _next_due_ms(cluster: Cluster) -> int:
    ends = [each.contact_ms + cluster.session_ms + 1 for each in cluster.brokers.values() if not each.fenced]
    return min([cluster.election_due_ms, *ends])


def _elect_clean_leaders(cluster: Cluster) -> None:
    """Partitions without a leader although a broker with all of the data, or with all that is left of it, is up."""
    for name, index, part in cluster.places():
        with_data = set(part.isr) or part.eligible.union(part.last_known)
        if part.leader == NO_BROKER and with_data & cluster.active():
            change(cluster, name, index, Wish(gone=cluster.going()))


def _state(broker: Broker) -> str:
    if broker.fenced:
        return "fenced"
    return "unfenced" if broker.shutdown_offset is None else "leaving"


def _next_state(
    cluster: Cluster, broker: Broker, state: str, is_caught_up: bool, want_fence: bool, want_shut_down: bool
) -> str:
    if state == "fenced":
        if want_shut_down:
            return "gone"
        return "unfenced" if is_caught_up and not want_fence else "fenced"
    if state == "leaving":
        return _next_while_leaving(cluster, broker)
    if want_fence:
        return "gone" if want_shut_down else "fenced"
    if want_shut_down:
        return "leaving" if cluster.leads_any(broker.id) else "gone"
    return "unfenced"


def _next_while_leaving(cluster: Cluster, broker: Broker) -> str:
    others = [
        each.read_offset
        for each in cluster.brokers.values()
        if not each.fenced and each.shutdown_offset is None
    ]
    assert broker.shutdown_offset is not None
    if cluster.leads_any(broker.id):
        return "leaving"
    return "gone" if not others or broker.shutdown_offset <= min(others) else "leaving"


def _fence_as_asked_for(cluster: Cluster, broker: Broker) -> None:
    is_first = _are_too_many(cluster, broker.id, is_asked_for=True)
    if is_first:
        _note_fence(cluster, broker)
    _take_off(cluster, broker.id, is_asked_for=True)
    if not is_first:
        _note_fence(cluster, broker)


def _remove(cluster: Cluster, broker_id: int, *, has_crashed: bool) -> None:
    """Off its partitions, before its registration goes or is replaced."""
    known = cluster.brokers.get(broker_id)
    are_too_many = _are_too_many(cluster, broker_id, has_crashed=has_crashed, is_asked_for=True)
    if are_too_many and known is not None and not known.fenced:
        _note_fence(cluster, known)
    _take_off(cluster, broker_id, has_crashed=has_crashed, is_asked_for=True)


def _note_fence(cluster: Cluster, broker: Broker) -> None:
    broker.fenced = True
    kind = "broker" if cluster.level >= CHANGE_RECORD_FROM else "fence"
    cluster.log.append((kind, broker.id, "fenced"))


def _unfence(cluster: Cluster, broker: Broker) -> None:
    broker.fenced = False
    kind = "broker" if cluster.level >= CHANGE_RECORD_FROM else "unfence"
    cluster.log.append((kind, broker.id, "unfenced"))
    for name, index, part in cluster.places():
        if part.leader == NO_BROKER:
            change(cluster, name, index, Wish(election=election(cluster, name), back={broker.id}))


def _begin_leaving(cluster: Cluster, broker: Broker) -> None:
    if cluster.level >= LEAVING_STATE_FROM and not broker.leaving:
        broker.leaving = True
        cluster.log.append(("broker", broker.id, "leaving"))
    _take_off(cluster, broker.id)


def _take_off(
    cluster: Cluster, broker_id: int, *, has_crashed: bool = False, is_asked_for: bool = False
) -> None:
    """Out of every ISR; who crashed also out of the eligible ones."""
    concerned = _concerned(cluster, broker_id, has_crashed=has_crashed, is_asked_for=is_asked_for)
    for name, index, part in concerned:
        wish = Wish(
            isr=[each for each in part.isr if each != broker_id],
            election=election(cluster, name),
            gone={broker_id},
            crashed={broker_id} if has_crashed else set(),
        )
        change(cluster, name, index, wish)


def _concerned(
    cluster: Cluster, broker_id: int, *, has_crashed: bool, is_asked_for: bool
) -> list[tuple[str, int, Partition]]:
    return [
        (name, index, part)
        for name, index, part in cluster.places()
        if broker_id in part.isr or (has_crashed and broker_id in part.eligible)
        if not (is_asked_for and _is_all_that_is_left(cluster, part, broker_id))
    ]


def _are_too_many(
    cluster: Cluster, broker_id: int, *, has_crashed: bool = False, is_asked_for: bool = False
) -> bool:
    concerned = _concerned(cluster, broker_id, has_crashed=has_crashed, is_asked_for=is_asked_for)
    return len(concerned) > cluster.changes_at_once


def _is_all_that_is_left(cluster: Cluster, part: Partition, broker_id: int) -> bool:
    """It stays in the ISR, and a request by which it goes is no occasion to lose its data by another leader."""
    return not cluster.has_elr and part.leader == NO_BROKER and set(part.isr) == {broker_id}


def election(cluster: Cluster, topic: str) -> str:
    return "unclean" if cluster.allows_unclean(topic) else "online"
