"""The numbers behind the plots, without the plots: points, quantiles, rates, and when operations succeeded."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import History, OpType

QUANTILES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
_BUCKETS_MAX = 600
_STRIP_BUCKET_S = 0.2
_READ_WORDS = ("list", "read", "get", "fetch", "describe", "poll", "scan", "query")


@dataclass(frozen=True, slots=True)
class Point:
    """One operation of a client; one without an end lasts until the end of the run."""

    f: str
    kind: OpType
    node: int | None
    start_s: float
    end_s: float

    @property
    def latency_ms(self) -> float:
        return max((self.end_s - self.start_s) * 1000, 0.001)  # a logarithm knows no 0


@dataclass(frozen=True, slots=True)
class Strip:
    """A row of the availability plot: (start_s, end_s, whether anything succeeded) where something was tried."""

    label: str
    spans: tuple[tuple[float, float, bool], ...]


def points_of(history: History) -> list[Point]:
    last_ns = history.last_time_ns
    return [
        Point(
            each.invoke.f,
            each.kind,
            each.invoke.node,
            each.invoke.time_ns / SECOND_NS,
            (last_ns if each.end is None else each.end.time_ns) / SECOND_NS,
        )
        for each in history.operations()
    ]


def bucket_s(until_s: float) -> int:
    """A second; more in runs so long that a line of seconds would be a smear."""
    return max(1, math.ceil(until_s / _BUCKETS_MAX))


def quantiles(points: Iterable[Point], width_s: float) -> dict[str, list[tuple[float, float]]]:
    """For each quantile (middle of the bucket, ms), of the operations invoked in it; empty buckets are left out."""
    by_bucket: dict[int, list[float]] = defaultdict(list)
    for point in points:
        by_bucket[int(point.start_s // width_s)].append(point.latency_ms)
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in QUANTILES}
    for bucket, latencies in sorted(by_bucket.items()):
        latencies.sort()
        for name, quantile in QUANTILES.items():
            # The nearest rank: a latency that really was.
            place = max(0, math.ceil(quantile * len(latencies)) - 1)
            lines[name].append(((bucket + 0.5) * width_s, latencies[place]))
    return lines


def rates(
    points: Iterable[Point], width_s: float, until_s: float
) -> dict[tuple[str, OpType], list[tuple[float, float]]]:
    """For each f and outcome (middle of the bucket, operations a second) by when they ended; zeros are kept."""
    buckets = max(1, math.ceil(until_s / width_s))
    counts: dict[tuple[str, OpType], list[int]] = defaultdict(lambda: [0] * buckets)
    for point in points:
        counts[point.f, point.kind][min(int(point.end_s // width_s), buckets - 1)] += 1
    return {
        key: [_rate_in(place, count, width_s, until_s) for place, count in enumerate(row)]
        for key, row in sorted(counts.items(), key=lambda item: (item[0][0], list(OpType).index(item[0][1])))
    }


def _rate_in(place: int, count: int, width_s: float, until_s: float) -> tuple[float, float]:
    """The last bucket ends with the run; a sliver of one would give a wild rate, so half a bucket is the least."""
    start_s = place * width_s
    length_s = min(width_s, max(until_s - start_s, width_s / 2))
    return start_s + length_s / 2, count / length_s


def is_read(f: str) -> bool:
    """By its name; a test may say better what its reads are."""
    return f.lower().startswith(_READ_WORDS)


def strips(points: Sequence[Point], until_s: float, reads: Callable[[str], bool] = is_read) -> list[Strip]:
    """Writes and reads, of all brokers and then of each; grey areas are those where nothing was tried."""
    width_s = max(_STRIP_BUCKET_S, until_s / _BUCKETS_MAX)
    groups = {
        "writes": [point for point in points if not reads(point.f)],
        "reads": [point for point in points if reads(point.f)],
    }
    rows = [Strip(name, _spans(group, width_s)) for name, group in groups.items() if group]
    nodes = sorted({point.node for point in points if point.node is not None})
    for name, group in groups.items():
        for node in nodes:
            own = [point for point in group if point.node == node]
            if own:
                rows.append(Strip(f"{name}, node {node}", _spans(own, width_s)))
    return rows


def _spans(points: Iterable[Point], width_s: float) -> tuple[tuple[float, float, bool], ...]:
    """Buckets of a kind that lie side by side are one span. An operation counts as tried while it is open."""
    succeeded: set[int] = set()
    tried: set[int] = set()
    for point in points:
        open_in = range(int(point.start_s // width_s), int(point.end_s // width_s) + 1)
        tried.update(open_in)
        if point.kind is OpType.OK:
            # A quick one that happens to lie on an edge is no outage of the bucket where it began.
            quick = point.end_s - point.start_s < width_s
            succeeded.update(open_in if quick else open_in[-1:])
    spans = []
    ordered = enumerate(sorted(tried))
    for (_, good), run in groupby(ordered, key=lambda item: (item[1] - item[0], item[1] in succeeded)):
        places = [bucket for _, bucket in run]
        spans.append((places[0] * width_s, (places[-1] + 1) * width_s, good))
    return tuple(spans)
