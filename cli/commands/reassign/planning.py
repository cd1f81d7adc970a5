"""A plan for a cluster as it is: which brokers may have replicas, and what the plan changes for each."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.live_brokers import LiveBroker, live_brokers, not_there
from kquorum.cli.clients.log_dirs_client import find_log_dirs
from kquorum.cli.commands.reassign.balance import Assignment, Place, balanced
from kquorum.cli.commands.reassign.reassign_client import check_none_ongoing, find_ongoing, find_partitions
from kquorum.cli.commands.topics.topic_client import PartitionView
from kquorum.cli.failures import CliError


@dataclass(frozen=True, slots=True)
class Plan:
    """`current` and `changed` are of the partitions that the plan changes; `rows` say what it means for each broker."""

    current: Assignment
    changed: Assignment
    rows: Sequence["BrokerShare"]

    @property
    def moves(self) -> int:
        """How many replicas go to a broker that does not have them."""
        return sum(len(set(each) - set(self.current[place])) for place, each in self.changed.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerShare:
    """Replicas and preferred leaders of the chosen topics. `arriving_bytes` is None where no broker tells sizes."""

    broker_id: int
    rack: str | None
    replicas_before: int
    replicas: int
    leaders_before: int
    leaders: int
    arriving: int
    arriving_bytes: int | None


async def make_plan(
    client: ClusterClient,
    topics: Sequence[str] | None,
    brokers: Collection[int],
    removed: Collection[int],
    replication_factor: int | None,
) -> Plan:
    """`brokers` (none: all live ones) without those `removed` get the replicas. Raises CliError."""
    partitions = await find_partitions(client, topics)
    ongoing = {place: each for place, each in (await find_ongoing(client)).items() if place in partitions}
    check_none_ongoing(ongoing, "cancel them (`kquorum reassign cancel`) before you plan")
    live = await live_brokers(client)
    racks = _allowed(live, partitions, brokers, removed)
    current = {place: each.replicas for place, each in partitions.items()}
    try:
        wanted = balanced(current, racks, replication_factor)
    except ValueError as error:
        raise CliError(f"{error}; start more brokers, or ask for fewer replicas") from None
    sizes = await _leader_sizes(client, live, partitions)
    changed = {place: replicas for place, replicas in wanted.items() if replicas != current[place]}
    rows = _shares(live, current, wanted, sizes)
    return Plan({place: current[place] for place in changed}, changed, rows)


def _allowed(
    live: Mapping[int, LiveBroker],
    partitions: Mapping[Place, PartitionView],
    brokers: Collection[int],
    removed: Collection[int],
) -> dict[int, str | None]:
    """Id and rack. Raises CliError for a broker that is away: its replicas must not move by an oversight."""
    for each in brokers:
        if each not in live:
            raise not_there(each, live)
    holders = {broker for each in partitions.values() for broker in each.replicas}
    if not brokers and (away := sorted(holders - live.keys() - set(removed))):
        names = ", ".join(map(str, away))
        raise CliError(
            f"broker {names} has replicas, and is away: start it, or have its replicas moved with "
            f"{' '.join(f'--remove-broker {each}' for each in away)}"
        )
    allowed = {
        each: live[each].rack for each in live if (not brokers or each in brokers) and each not in removed
    }
    if not allowed:
        raise CliError("no broker is left that may have replicas: name fewer with --remove-broker")
    return allowed


async def _leader_sizes(
    client: ClusterClient, live: Mapping[int, LiveBroker], partitions: Mapping[Place, PartitionView]
) -> dict[Place, int]:
    """The size of each leader's log; nothing of brokers that do not tell."""
    addresses = {each: broker.address for each, broker in live.items()}
    found, _ = await find_log_dirs(addresses, None, client.remaining_ms)
    return {
        (log.topic, log.partition): log.size_bytes
        for directory in found
        for log in directory.replicas
        if not log.is_future
        and (place := (log.topic, log.partition)) in partitions
        and partitions[place].leader == directory.broker_id
    }


def _shares(
    live: Mapping[int, LiveBroker], before: Assignment, after: Assignment, sizes: Mapping[Place, int]
) -> list[BrokerShare]:
    counts = [
        Counter(broker for replicas in each.values() for broker in replicas) for each in (before, after)
    ]
    led = [Counter(replicas[0] for replicas in each.values() if replicas) for each in (before, after)]
    arriving: Counter[int] = Counter()
    arriving_bytes: Counter[int] = Counter()
    for place, replicas in after.items():
        for broker in set(replicas) - set(before[place]):
            arriving[broker] += 1
            arriving_bytes[broker] += sizes.get(place, 0)
    return [
        BrokerShare(
            broker_id=each,
            rack=live[each].rack if each in live else None,
            replicas_before=counts[0][each],
            replicas=counts[1][each],
            leaders_before=led[0][each],
            leaders=led[1][each],
            arriving=arriving[each],
            arriving_bytes=arriving_bytes[each] if sizes else None,
        )
        for each in sorted(live.keys() | counts[0].keys())
    ]
