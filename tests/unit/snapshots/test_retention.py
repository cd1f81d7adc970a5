"""Which snapshots go, and where the log begins then; as Kafka's cleaner decides."""

from kquorum.snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kquorum.snapshots.retention import GivenUp, Kept, KeptSegment, KeptSnapshot, RetentionLimits, given_up

NOW_MS = 1_000_000


def snapshot(offset: int, size: int = 100, age_ms: int | None = 0, epoch: int = 1) -> KeptSnapshot:
    timestamp_ms = None if age_ms is None else NOW_MS - age_ms
    return KeptSnapshot(SnapshotId(offset, epoch), size, timestamp_ms)


def starts(
    *snapshots: KeptSnapshot,
    segments: tuple[KeptSegment, ...] = (KeptSegment(0, 1000),),
    start: int = 0,
    bound: int = 10_000,
    **limits: int,
) -> list[int]:
    kept = Kept(log_start_offset=start, bound=bound, segments=segments, snapshots=snapshots)
    return [each.log_start_offset for each in given_up(kept, RetentionLimits(**limits), NOW_MS)]


def test_without_limits_everything_stays() -> None:
    assert starts(snapshot(10, size=10**9), snapshot(20, age_ms=10**9)) == []


def test_size_counts_log_and_snapshots_and_the_limit_itself_may_be_reached() -> None:
    both = (snapshot(10), snapshot(20))
    assert starts(*both, max_bytes=1200) == []
    assert starts(*both, max_bytes=1199) == [20]


def test_the_newest_snapshot_always_stays() -> None:
    assert starts(snapshot(10), max_bytes=0, max_age_ms=0) == []
    assert starts(snapshot(10), snapshot(20), snapshot(30), max_bytes=0) == [20, 30]
    assert starts(max_bytes=0) == []


def test_size_ends_as_soon_as_it_is_small_enough() -> None:
    """The log shrinks by whole segments, never by the last one."""
    segments = (KeptSegment(0, 500), KeptSegment(15, 500), KeptSegment(25, 500))
    three = (snapshot(10), snapshot(20), snapshot(30))
    # 1800 in all. The log begins at 20 once the first is gone: a snapshot and a segment less.
    assert starts(*three, segments=segments, max_bytes=1799) == [20]
    assert starts(*three, segments=segments, max_bytes=1200) == [20]
    assert starts(*three, segments=segments, max_bytes=1199) == [20, 30]
    assert starts(*three, segments=segments, max_bytes=0) == [20, 30]


def test_age_is_that_of_the_oldest_and_the_limit_itself_may_be_reached() -> None:
    old = (snapshot(10, age_ms=500), snapshot(20, age_ms=300), snapshot(30, age_ms=100))
    assert starts(*old, max_age_ms=500) == []
    assert starts(*old, max_age_ms=499) == [20]
    assert starts(*old, max_age_ms=299) == [20, 30]
    assert starts(*old, max_age_ms=0) == [20, 30]


def test_an_oldest_one_that_may_stay_keeps_older_looking_ones_behind_it() -> None:
    assert starts(snapshot(10, age_ms=100), snapshot(20, age_ms=900), snapshot(30), max_age_ms=500) == []


def test_an_age_that_cannot_be_read_is_no_reason() -> None:
    assert starts(snapshot(10, age_ms=None), snapshot(20), max_age_ms=0) == []


def test_size_comes_first_then_age_of_what_is_left() -> None:
    kept = Kept(
        log_start_offset=0,
        bound=99,
        segments=(KeptSegment(0, 10),),
        snapshots=(snapshot(10, 500, 900), snapshot(20, 50, 700), snapshot(30, 50, 0)),
    )
    assert given_up(kept, RetentionLimits(max_bytes=200, max_age_ms=600), NOW_MS) == (
        GivenUp(SnapshotId(10, 1), 20, "log and snapshots have 610 bytes, more than the 200 to keep"),
        GivenUp(SnapshotId(20, 1), 30, "its last record is 700 ms old, more than the 600 to keep"),
    )


def test_the_log_never_begins_above_what_is_committed() -> None:
    three = (snapshot(10), snapshot(20), snapshot(30))
    assert starts(*three, bound=20, max_bytes=0) == [20]
    assert starts(*three, bound=19, max_bytes=0) == []
    assert starts(*three, bound=29, max_age_ms=-1, max_bytes=0) == [20]


def test_what_lies_below_the_start_is_gone_already() -> None:
    """Its files are on their way out; counting them would cost snapshots that are worth keeping."""
    segments = (KeptSegment(0, 5000), KeptSegment(15, 500))
    assert starts(snapshot(10), snapshot(20), snapshot(30), segments=segments, start=20, max_bytes=700) == []
    assert starts(snapshot(10), snapshot(20), snapshot(30), segments=segments, start=20, max_bytes=699) == [
        30
    ]


def test_the_first_voters_go_like_any_snapshot_but_stay_in_the_folder_for_a_while() -> None:
    first = KeptSnapshot(BOOTSTRAP_SNAPSHOT_ID, 90, NOW_MS - 900)
    assert starts(first, snapshot(10), max_age_ms=500) == [10]
    assert starts(first, snapshot(10), snapshot(20, age_ms=0), start=10, max_bytes=0) == [20]


def test_epochs_count_before_offsets() -> None:
    """A snapshot of an older epoch with a higher offset was never of this log: nothing is cut for its sake."""
    strange = snapshot(50, epoch=1)
    assert starts(strange, snapshot(20, epoch=2), snapshot(30, epoch=2), max_bytes=0) == [20, 30]
    assert starts(snapshot(20, epoch=1), snapshot(50, epoch=2), snapshot(40, epoch=3), max_bytes=0) == []
