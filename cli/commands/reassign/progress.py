"""How far reassignments are: by partitions, and by bytes where brokers tell the sizes of the logs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.live_brokers import live_brokers
from kquorum.cli.clients.log_dirs_client import find_log_dirs
from kquorum.cli.commands.reassign.balance import Place
from kquorum.cli.commands.reassign.reassign_client import Ongoing, find_ongoing
from kquorum.cli.commands.topics.topic_client import PartitionView

BAR_WIDTH = 24


class Stage(StrEnum):
    DONE = "done"
    MOVING = "moving"
    NOT_AS_PLANNED = "not as planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    """One partition. Bytes are those of the new replicas: what they have, and what the leader's log has for them; None
    where a broker does not tell."""

    topic: str
    partition: int
    stage: Stage
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    bytes_there: int | None = None
    bytes_needed: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    partitions: tuple[PartitionProgress, ...]

    def count(self, stage: Stage) -> int:
        return sum(each.stage is stage for each in self.partitions)

    @property
    def bytes_there(self) -> int:
        return sum(each.bytes_there or 0 for each in self.partitions)

    @property
    def bytes_needed(self) -> int:
        return sum(each.bytes_needed or 0 for each in self.partitions)

    @property
    def share(self) -> float:
        """Of the work, from 0 to 1; by partitions where no sizes are known. 1 only if nothing is left to do."""
        of_moving = self.bytes_there / self.bytes_needed if self.bytes_needed else 0.0
        moving, done, total = self.count(Stage.MOVING), self.count(Stage.DONE), len(self.partitions)
        if done == total:
            return 1.0
        return min((done + of_moving * moving) / total, 0.99)

    def line(self) -> str:
        """`[######------------------]  25 %  1 of 4 partitions done, 12,000 of 48,000 bytes`."""
        parts = [f"{self.count(Stage.MOVING):,} moving"]
        if done := self.count(Stage.DONE):
            parts.append(f"{done:,} done")
        if astray := self.count(Stage.NOT_AS_PLANNED):
            parts.append(f"{astray:,} not as planned")
        if self.bytes_needed and self.count(Stage.MOVING):
            parts.append(f"{self.bytes_there:,} of {self.bytes_needed:,} bytes")
        return f"{bar(self.share)} {self.share:>4.0%}  {', '.join(parts)}"


def bar(share: float) -> str:
    full = int(share * BAR_WIDTH)
    return f"[{'#' * full}{'-' * (BAR_WIDTH - full)}]"


async def look(
    client: ClusterClient,
    plan: Mapping[Place, Sequence[int]] | None,
    partitions: Mapping[Place, PartitionView],
) -> Progress:
    """Of the partitions of a plan, or of those that move. `partitions` are present ones. Raises CliError."""
    ongoing = await find_ongoing(client)
    if plan is not None:
        ongoing = {place: each for place, each in ongoing.items() if place in plan}
    sizes = await _sizes(client, ongoing) if ongoing else {}
    found = [_moving(place, each, partitions.get(place), sizes) for place, each in ongoing.items()]
    for place, replicas in (plan or {}).items():
        if place not in ongoing:
            there = partitions[place].replicas if place in partitions else ()
            stage = Stage.DONE if there == tuple(replicas) else Stage.NOT_AS_PLANNED
            found.append(PartitionProgress(topic=place[0], partition=place[1], stage=stage, replicas=there))
    return Progress(tuple(sorted(found, key=lambda each: (each.topic, each.partition))))


async def _sizes(client: ClusterClient, ongoing: Mapping[Place, Ongoing]) -> dict[tuple[Place, int], int]:
    """By partition and broker; what no broker tells is left out."""
    asked: dict[str, set[int]] = {}
    for topic, partition in ongoing:
        asked.setdefault(topic, set()).add(partition)
    live = await live_brokers(client)
    involved = {each for item in ongoing.values() for each in item.replicas} & live.keys()
    addresses = {each: live[each].address for each in sorted(involved)}
    found, _ = await find_log_dirs(addresses, asked, client.remaining_ms)
    return {
        ((log.topic, log.partition), directory.broker_id): log.size_bytes
        for directory in found
        for log in directory.replicas
        if not log.is_future
    }


def _moving(
    place: Place, ongoing: Ongoing, partition: PartitionView | None, sizes: Mapping[tuple[Place, int], int]
) -> PartitionProgress:
    of_leader = None if partition is None else sizes.get((place, partition.leader))
    there = None
    if of_leader is not None:
        # A new replica may have more bytes than the leader for a while, for its segments end elsewhere.
        there = sum(min(sizes.get((place, each), 0), of_leader) for each in ongoing.adding)
    return PartitionProgress(
        topic=place[0],
        partition=place[1],
        stage=Stage.MOVING,
        replicas=ongoing.replicas,
        adding=ongoing.adding,
        removing=ongoing.removing,
        bytes_there=there,
        bytes_needed=None if of_leader is None else of_leader * len(ongoing.adding),
    )


def topics_of(places: Iterable[Place]) -> list[str]:
    return sorted({topic for topic, _ in places})
