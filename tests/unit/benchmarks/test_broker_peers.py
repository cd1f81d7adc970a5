"""What benchmarks.broker_peers reads from the output of Kafka's producer, and how it compares two sides."""

from pathlib import Path

import pytest

from benchmarks.broker_peers import FailedError, fetch_rate, last_line, parse, rows, sides_of
from tests.interop.kafka_process import PROJECT_ROOT

SAID = """\
5001 records sent, 1000.0 records/sec (0.98 MB/sec), 3.1 ms avg latency, 200.0 ms max latency.
10000 records sent, 999.6 records/sec (0.97 MB/sec), 2.70 ms avg latency, 212.00 ms max latency, 2 ms 50th, 5 ms \
95th, 41 ms 99th, 120 ms 99.9th.
"""


def test_the_line_of_the_whole_run_counts() -> None:
    assert last_line(SAID) == (0.97, (2.0, 41.0))
    with pytest.raises(FailedError, match="printed no result"):
        last_line("5001 records sent, 1000.0 records/sec (0.98 MB/sec)")


def test_the_rate_of_a_consumer_leaves_out_the_assignment() -> None:
    times = "2026-11-28 16:00:00:0, 2026-11-28 16:00:05:0"
    line = f"{times}, 97.6562, 19.5312, 100000, 20000.0, 3000, 2000, 48.8281, 50000.0"
    assert fetch_rate(f"some warning\n{line}\n", 100_000) == 48.8281
    with pytest.raises(FailedError, match="did not read 100001 records"):
        fetch_rate(line, 100_001)


def test_ratios_are_medians_of_the_rounds() -> None:
    def figures(value: float) -> dict[str, float]:
        return {"start_s": 1.0, "produce_MB/s": value}

    ours = [figures(2.0), figures(30.0), figures(4.0)]
    found = rows({"kquorum": ours, "kafka": [figures(1.0), figures(10.0), figures(4.0)]})
    assert [row["produce_MB/s"] for row in found] == [4.0, 4.0, 2.0]
    assert [row["side"] for row in rows({"kquorum": ours})] == ["kquorum"]


def test_an_unknown_side_is_refused() -> None:
    assert parse(["--sides", "kafka"]).sides == ["kafka"]
    with pytest.raises(SystemExit):
        parse(["--sides", "etcd"])


def test_another_checkout_and_the_sources_are_sides_of_their_own(tmp_path: Path) -> None:
    options = parse(["--sides", "kquorum", "--against", str(tmp_path), "--from-sources"])
    names = [(side.name, side.tree, side.is_compiled) for side in sides_of(options)]
    assert names == [
        ("kquorum", PROJECT_ROOT, True),
        ("against", tmp_path, True),
        ("sources", PROJECT_ROOT, False),
    ]
