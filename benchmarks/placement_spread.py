"""How evenly 1,000 topics are spread over brokers and racks: `python -m benchmarks.placement_spread [SEED]`.

Each topic is made by a request of its own, as administrators do, so every one begins at a place drawn by lot. For
leaders and for replicas the table says how many the emptiest and the fullest broker have, in percent of the mean
("start by lot": of leaders, without a look at who leads how many already); "rack crowded" counts the partitions with
two replicas in one rack while another rack, of as many as are needed, has none. Where racks differ in size and each is
needed for every partition, the brokers of the smallest must have more replicas; they lead no more than others.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from kquorum.metadata.controller.topics.placement import StripedPlacer
from kquorum.metadata.image.cluster import BrokerRegistration

TOPICS = 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """`racks` are the numbers of brokers in each; one rack means that there are no racks."""

    name: str
    racks: tuple[int, ...]
    partitions: tuple[int, ...]
    replication_factor: int
    fenced: int = 0

    def brokers(self) -> list[BrokerRegistration]:
        made = [(rack, 100 * rack + number) for rack, size in enumerate(self.racks) for number in range(size)]
        return [
            BrokerRegistration(
                id=broker_id,
                epoch=1,
                incarnation_id=UUID(int=broker_id),
                rack=f"rack{rack}" if len(self.racks) > 1 else None,
                fenced=place < self.fenced,
            )
            for place, (rack, broker_id) in enumerate(made)
        ]


LAYOUTS = (
    Layout("6 brokers", (6,), (1,), 3),
    Layout("6 brokers", (6,), (12,), 3),
    Layout("10 brokers, one fenced", (10,), (6,), 3, fenced=1),
    Layout("3 racks of 2", (2, 2, 2), (1, 3, 8), 3),
    Layout("3 racks of 3", (3, 3, 3), (9,), 3),
    Layout("3 racks of 4", (4, 4, 4), (1, 6, 50), 3),
    Layout("2 racks of 5", (5, 5), (4,), 3),
    Layout("racks of 1, 3 and 5", (1, 3, 5), (6,), 2),
    Layout("racks of 2, 4 and 4", (2, 4, 4), (10,), 3),
    Layout("50 brokers in 5 racks", (10,) * 5, (1, 10, 100), 3),
)


class SeededRandomSource:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def randint(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def place_all(layout: Layout, seed: int, *, sees_leaders: bool) -> Iterator[tuple[int, ...]]:
    """The replicas of every partition of every topic; sizes of topics take turns."""
    random_source, led = SeededRandomSource(seed), Counter[int]()
    brokers = layout.brokers()
    for number in range(TOPICS):
        placer = StripedPlacer(brokers, random_source, led if sees_leaders else None)
        count = layout.partitions[number % len(layout.partitions)]
        for replicas in placer.place(count, layout.replication_factor):
            led[replicas[0]] += 1
            yield replicas


def spread(counts: Mapping[int, int], brokers: Sequence[int]) -> str:
    """The least and the most, in percent of the mean."""
    values = [counts[broker] for broker in brokers]
    mean = sum(values) / len(values)
    return f"{100 * min(values) / mean:4.0f}-{100 * max(values) / mean:3.0f}"


def crowded(layout: Layout, placed: Sequence[tuple[int, ...]]) -> int:
    """Partitions that have two replicas in one rack though another rack has none of them."""
    racks = len(layout.racks)
    fewest = min(racks, layout.replication_factor)
    return sum(len({replica // 100 for replica in replicas}) < fewest for replicas in placed)


def row(layout: Layout, seed: int) -> str:
    placed = list(place_all(layout, seed, sees_leaders=True))
    by_lot = list(place_all(layout, seed, sees_leaders=False))
    everybody = [broker.id for broker in layout.brokers()]
    leaders = [broker.id for broker in layout.brokers() if not broker.fenced]
    sizes = ",".join(map(str, layout.partitions))
    columns = (
        spread(Counter(replicas[0] for replicas in placed), leaders),
        spread(Counter(replicas[0] for replicas in by_lot), leaders),
        spread(Counter(each for replicas in placed for each in replicas), everybody),
    )
    return (
        f"{layout.name:24} {sizes:>9} {layout.replication_factor:3}  {columns[0]:>9} {columns[1]:>13} "
        f"{columns[2]:>10} {crowded(layout, placed):>14}"
    )


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    print(f"{TOPICS} topics, one request each; least-most of a broker in % of the mean; seed {seed}")
    print(
        f"{'layout':24} {'sizes':>9} {'rf':>3}  {'leaders':>9} {'start by lot':>13} {'replicas':>10} "
        f"{'rack crowded':>14}"
    )
    for layout in LAYOUTS:
        print(row(layout, seed))


if __name__ == "__main__":
    main()
