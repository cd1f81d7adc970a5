"""The content of the report as plain values: bounded in number, whatever the length of the log, and free of Spark.

Times are milliseconds since the epoch; `total` beside a list is the full number if the list is cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquorum.spark_replay.report.times import Window

# Plain values of the report about partitions and their leaders; see `facts`.


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


NEVER, NO_CHANGES = Series(), LeaderChanges()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGap:
    """No record at all between two batches; `epoch_after` differs from `epoch_before` where an election ended it."""

    start_ms: int
    end_ms: int
    offset_after: int
    epoch_before: int
    epoch_after: int

    @property
    def duration_ms(self) -> int:
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGaps:
    """`longer_than_ms` is None where the log has no idle records: then quiet and an outage look the same."""

    longer_than_ms: int | None = None
    longest: tuple[IdleGap, ...] = ()
    total: int = 0
    total_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedPlace:
    file: str
    position: int
    offset: int | None
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """The log within the window. `types_by_bucket` counts records by (bucket, record type)."""

    source: str
    cluster_id: str | None
    node_id: int | None
    inputs: tuple[str, ...]
    other_sources: tuple[str, ...]
    state_from: str
    start_offset: int | None
    end_offset: int | None
    records: int
    batches: int
    size_in_bytes: int
    unread_records: int
    types: Mapping[str, int]
    types_by_bucket: Mapping[tuple[int, str], int]
    features: tuple[tuple[str, int], ...]
    feature_changes: int
    voters: tuple[int, ...]
    voter_changes: int
    damage: tuple[DamagedPlace, ...]
    damage_total: int
    has_notes: bool
    limits: tuple[str, ...] = ()  # sentences on what cannot be told of this log (`questions.log_gaps`)

    @property
    def is_incomplete(self) -> bool:
        """Whether the log cannot show that something did not happen."""
        return bool(self.limits) or self.damage_total > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """`end_ms` is when the last of its records was written, not when the next epoch began."""

    epoch: int
    leader_id: int | None
    start_offset: int
    start_ms: int
    end_ms: int
    records: int
    votes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpan:
    """`state`: unfenced, fenced, shutting down, stopped (fenced after a controlled shutdown), registered (not yet
    unfenced)."""

    state: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """One broker in the window; `state` is its last one there, "unregistered" if it was removed. `spans` is None for a
    broker whose bar is not drawn, because other brokers had more changes."""

    broker_id: int
    rack: str | None
    state: str
    registrations: int
    fencings: int
    shutdowns: int
    unfenced_ms: int
    out_ms: int
    lost_leaderships: int = 0
    spans: tuple[BrokerSpan, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeChange:
    """What one request, or one batch of the controller, wrote. Without a note `principal` is None."""

    timestamp_ms: int
    first_offset: int
    last_offset: int
    records: int
    types: tuple[tuple[str, int], ...]
    topics: int
    topic: str | None
    quorum_epoch: int
    controller_id: int | None
    principal: str | None = None
    client: str = ""
    api: str = ""
    reason: str = ""
    operator_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found. `severity`: violation, or note (lawful, but worth knowing). `offsets` prove it."""

    check: str
    severity: str
    source: str
    subject: str
    reason: str
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """`ran` is False if the checks were not requested; `skipped` has the parts that were not checked, and why."""

    ran: bool = False
    passed: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    violations: int = 0
    notes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """What there was at the end of the window."""

    topics: int
    partitions: int
    leaderless: int
    under_replicated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Everything on the page. `window` is None if the log has no batch with a time in what was asked for."""

    log: LogFacts
    window: Window | None
    state: ClusterState
    idle_gaps: IdleGaps = IdleGaps()
    epochs: tuple[Epoch, ...] = ()
    epochs_total: int = 0
    elections_by_bucket: Mapping[int, int] = field(default_factory=dict)
    brokers: tuple[BrokerFacts, ...] = ()
    brokers_total: int = 0
    brokers_out: Series = NEVER
    leader_changes: LeaderChanges = NO_CHANGES
    leaderless: Series = NEVER
    under_min_isr: Series = NEVER
    under_replicated: Series = NEVER
    reassigning: Series = NEVER
    outages: tuple[Outage, ...] = ()
    outages_total: int = 0
    leaderless_longest: tuple[Interval, ...] = ()
    leaderless_total: int = 0
    under_min_isr_longest: tuple[Interval, ...] = ()
    under_min_isr_total: int = 0
    large_changes: tuple[LargeChange, ...] = ()
    checks: Checks = Checks()
