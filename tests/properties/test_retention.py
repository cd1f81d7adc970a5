"""Retention loses nothing: the log begins where a snapshot ends that is kept, and the newest one is kept."""

from hypothesis import given
from hypothesis import strategies as st

from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.retention import Kept, KeptSegment, KeptSnapshot, RetentionLimits, given_up

NOW_MS = 10_000
sizes = st.integers(0, 500)
limits = st.integers(-1, 3000)


@st.composite
def folders(draw: st.DrawFn) -> Kept:
    """Of a log that begins at 0 or where one of its snapshots ends."""
    ends = sorted(draw(st.sets(st.integers(1, 100), max_size=8)))
    epochs = sorted(draw(st.lists(st.integers(1, 5), min_size=len(ends), max_size=len(ends))))
    times = st.none() | st.integers(0, NOW_MS)
    snapshots = [
        KeptSnapshot(SnapshotId(end, epoch), draw(sizes), draw(times))
        for end, epoch in zip(ends, epochs, strict=True)
    ]
    start = draw(st.sampled_from([0, *ends]))
    bases = {0, *draw(st.sets(st.integers(1, 110), max_size=5))}
    return Kept(
        log_start_offset=start,
        bound=draw(st.integers(start, 120)),
        segments=tuple(KeptSegment(base, draw(sizes)) for base in bases),
        snapshots=tuple(draw(st.permutations(snapshots))),
    )


@given(folders(), limits, limits)
def test_nothing_is_lost(kept: Kept, max_bytes: int, max_age_ms: int) -> None:
    gone = given_up(kept, RetentionLimits(max_bytes=max_bytes, max_age_ms=max_age_ms), NOW_MS)
    ends = sorted(each.snapshot_id.end_offset for each in kept.snapshots)
    starts = [kept.log_start_offset, *(each.log_start_offset for each in gone)]
    assert starts == sorted(set(starts)), "the start only moves forward"
    for each in gone:
        assert each.log_start_offset in ends, "and only to where a snapshot ends"
        assert kept.log_start_offset < each.log_start_offset <= min(kept.bound, ends[-1])
        assert each.snapshot_id.end_offset < each.log_start_offset, "which is not the one that goes"
    left = {each.snapshot_id for each in kept.snapshots} - {each.snapshot_id for each in gone}
    assert (
        not kept.snapshots or max(kept.snapshots, key=lambda each: each.snapshot_id.order).snapshot_id in left
    )
    if gone:
        assert gone[-1].log_start_offset in {each.end_offset for each in left}, "what it stands for is kept"


@given(folders(), limits, limits)
def test_what_is_decided_once_is_decided(kept: Kept, max_bytes: int, max_age_ms: int) -> None:
    """With the log begun there, nothing more goes: neither by size nor by age."""
    both = RetentionLimits(max_bytes=max_bytes, max_age_ms=max_age_ms)
    gone = given_up(kept, both, NOW_MS)
    if gone:
        left = Kept(
            log_start_offset=gone[-1].log_start_offset,
            bound=kept.bound,
            segments=kept.segments,
            snapshots=kept.snapshots,
        )
        assert given_up(left, both, NOW_MS) == ()


@given(folders())
def test_without_limits_nothing_goes(kept: Kept) -> None:
    assert given_up(kept, RetentionLimits(), NOW_MS) == ()
