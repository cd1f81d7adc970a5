"""Plain values of the report about partitions and their leaders; see `facts`."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A number of partitions (or brokers) over time: its peak in each bucket, and how long it was above 0, summed
    over all of them."""

    peaks: tuple[int, ...] = ()
    summed_ms: int = 0

    @property
    def peak(self) -> int:
        return max(self.peaks, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A partition without a leader, or with too few in-sync replicas; `is_open` at the end of the window."""

    topic: str
    partition_id: int
    start_ms: int
    end_ms: int
    is_open: bool
    start_offset: int
    detail: str = ""

    @property
    def duration_ms(self) -> int:
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Partitions that lost their leader by one decision of the controller. `still_open` of them have none yet."""

    start_ms: int
    end_ms: int
    start_offset: int
    partitions: int
    topics: int
    example_topic: str
    still_open: int
    partition_ms: int
    cause: str | None
    old_leaders: tuple[int, ...]
    controller_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """What one broker came to lead of one topic at one moment without having been in sync."""

    timestamp_ms: int
    offset: int
    topic: str
    partitions: int
    new_leader: int
    controller_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanges:
    """`by_bucket` counts by (bucket, cause); `unclean_total` counts changes, as all do, `unclean_groups` elections."""

    by_bucket: Mapping[tuple[int, str], int] = field(default_factory=dict)
    by_cause: Mapping[str, int] = field(default_factory=dict)
    by_topic: tuple[tuple[str, int], ...] = ()
    topics: int = 0
    unclean: tuple[UncleanElection, ...] = ()
    unclean_total: int = 0
    unclean_groups: int = 0

    @property
    def total(self) -> int:
        return sum(self.by_cause.values())
