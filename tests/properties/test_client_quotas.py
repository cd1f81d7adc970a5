"""A client that sends as it likes and waits as its answers say stays within its quota, over any span of time."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from kquorum.broker.quota import rate as rates
from kquorum.broker.quota.client_quotas import ClientQuota, ClientQuotas
from kquorum.broker.quota.rate import Level, WindowedRate, Windows
from kquorum.metadata.image.quotas import ClientQuotasImage

LIMIT = 1_000.0
# Of floats.
ROUNDING = 0.01
IMAGE = ClientQuotasImage(Map({(("user", "alice"),): Map({"producer_byte_rate": LIMIT})}))

# How long a client pauses by its own will, in ms, and how much it sends then.
Load = list[tuple[int, int]]
LOADS = st.lists(
    st.tuples(st.one_of(st.just(0), st.integers(0, 3_000), st.integers(0, 40_000)), st.integers(1, 6_000)),
    min_size=1,
    max_size=60,
)
WINDOWS = st.builds(Windows, st.integers(2, 12), st.sampled_from([200, 1_000, 3_000]))


def sent(load: Load, windows: Windows, connections: int) -> list[tuple[int, int]]:
    """When each request was sent, by clients of one user that take turns: each waits for its own throttle alone."""
    quotas = ClientQuotas(lambda: IMAGE, windows)
    free_ms = [0] * connections
    found: list[tuple[int, int]] = []
    now_ms = 0
    for number, (pause_ms, amount) in enumerate(load):
        each = number % connections
        now_ms = max(now_ms + pause_ms, free_ms[each])
        throttle_ms = quotas.charge(ClientQuota.PRODUCE, now_ms, "User:alice", "app", amount)
        found.append((now_ms, amount))
        free_ms[each] = now_ms + throttle_ms
    return found


def excess(found: list[tuple[int, int]], windows: Windows, connections: int) -> float:
    """By how much the worst span of time exceeds what the quota allows there: what the windows hold, and for each
    connection the one request that exceeded it."""
    largest = max(amount for _, amount in found)
    allowed = LIMIT * windows.full_ms / 1_000 + connections * largest
    worst = float("-inf")
    for first, (begin_ms, _) in enumerate(found):
        total = 0
        for at_ms, amount in found[first:]:
            total += amount
            worst = max(worst, total - (allowed + LIMIT * (at_ms - begin_ms) / 1_000))
    return worst


@given(load=LOADS, windows=WINDOWS, connections=st.integers(1, 3))
def test_a_client_that_waits_stays_within_its_quota(load: Load, windows: Windows, connections: int) -> None:
    assert excess(sent(load, windows, connections), windows, connections) <= ROUNDING


@given(load=LOADS, windows=WINDOWS)
def test_the_rate_is_that_of_the_plain_list_of_amounts(load: Load, windows: Windows) -> None:
    assert differs(load, windows) is None


@given(load=st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 4_000)), max_size=60))
def test_a_client_far_below_its_quota_never_waits(load: Load) -> None:
    quotas = ClientQuotas(lambda: IMAGE, Windows())
    now_ms = 0
    for pause_ms, amount in load:
        # Half of the limit, and one request more than that in the windows, are less than the limit.
        assert quotas.charge(ClientQuota.PRODUCE, now_ms, "User:alice", "app", amount) == 0
        now_ms += pause_ms + round(amount / LIMIT * 2 * 1_000)


def plain_rate(found: list[tuple[int, int]], windows: Windows, now_ms: int) -> float:
    """Kafka's Rate, from all that was recorded."""
    kept: list[tuple[int, int]] = []
    for at_ms, amount in found:
        if kept and at_ms - kept[-1][0] < windows.size_ms:
            kept[-1] = (kept[-1][0], kept[-1][1] + amount)
        else:
            kept.append((at_ms, amount))
    kept = [each for each in kept[-windows.number :] if each[0] > now_ms - windows.number * windows.size_ms]
    elapsed_ms = now_ms - kept[0][0] if kept else 0
    while elapsed_ms // windows.size_ms < windows.number - 1:
        elapsed_ms += windows.size_ms
    return sum(amount for _, amount in kept) * 1_000 / elapsed_ms


def differs(load: Load, windows: Windows) -> str | None:
    measured, found, now_ms = WindowedRate(windows), [], 0
    for pause_ms, amount in load:
        now_ms += pause_ms
        measured.record(now_ms, amount)
        found.append((now_ms, amount))
        for later_ms in (0, windows.size_ms // 2):
            expected = plain_rate(found, windows, now_ms + later_ms)
            if abs(measured.per_second(now_ms + later_ms) - expected) > 0.001:
                return (
                    f"{later_ms} ms after {found}: {measured.per_second(now_ms + later_ms)}, not {expected}"
                )
        now_ms += windows.size_ms // 2
    return None


def never_rises(self: Level, now_ms: int, amount: float, limit: float) -> None:
    """Planted: what the windows have forgotten counts no more."""
    del self, now_ms, amount, limit


def falls_twice_as_fast(self: Level, now_ms: int, limit: float) -> float:
    """Planted: the level falls faster than the limit."""
    return REAL_LEFT(self, now_ms, 2 * limit)


def waits_half(self: Level, now_ms: int, limit: float, most: float) -> int:
    """Planted: a client waits too short a time."""
    return REAL_WAIT(self, now_ms, limit, most) // 2


def allows_twice_as_much(self: Level, now_ms: int, limit: float, most: float) -> int:
    """Planted: a client has twice its windows at once."""
    return REAL_WAIT(self, now_ms, limit, 2 * most)


REAL_LEFT = Level._left
REAL_WAIT = Level.throttle_ms
LARGE: Load = [(0, 40_000)] * 60


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("record", never_rises),
        ("_left", falls_twice_as_fast),
        ("throttle_ms", waits_half),
        ("throttle_ms", allows_twice_as_much),
    ],
)
def test_planted_mistakes_exceed_the_quota(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: Callable[..., object]
) -> None:
    load = LARGE if planted is not allows_twice_as_much else [(0, 100)] * 600
    assert excess(sent(load, Windows(), 1), Windows(), 1) <= ROUNDING
    monkeypatch.setattr(rates.WindowedRate, "throttle_ms", lambda *_: 0)
    assert excess(sent(load, Windows(), 1), Windows(), 1) <= ROUNDING, "the level alone keeps the long run"
    monkeypatch.setattr(rates.Level, name, planted)
    assert excess(sent(load, Windows(), 1), Windows(), 1) > ROUNDING


def forgets_at_once(self: WindowedRate, now_ms: int) -> None:
    """Planted: what is older than one window counts no more."""
    while self._samples and self._samples[0][0] <= now_ms - self._windows.size_ms:
        self._drop_first()


def forgets_nothing(self: WindowedRate, now_ms: int) -> None:
    """Planted: old windows count as long as there are few."""
    del self, now_ms


def does_not_pad(self: WindowedRate, now_ms: int) -> int:
    """Planted: a client that begins is measured by the time since it began alone."""
    self._expire(now_ms)
    return max(now_ms - self._samples[0][0] if self._samples else 0, self._windows.size_ms)


@pytest.mark.parametrize(
    ("name", "planted"),
    [("_expire", forgets_at_once), ("_expire", forgets_nothing), ("window_ms", does_not_pad)],
)
def test_planted_mistakes_change_the_rate(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: Callable[..., object]
) -> None:
    loads: list[Load] = [[(100, 500)] * 20, [(0, 500), (40_000, 100)]]
    assert all(differs(load, Windows()) is None for load in loads)
    monkeypatch.setattr(rates.WindowedRate, name, planted)
    assert any(differs(load, Windows()) is not None for load in loads)
