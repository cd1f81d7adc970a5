"""What benchmarks.broker_peers reads from the output of Kafka's producer, and how it compares two sides."""

import pytest

from benchmarks.broker_peers import FIGURES, FailedError, last_line, parse, rows

SAID = """\
5001 records sent, 1000.0 records/sec (0.98 MB/sec), 3.1 ms avg latency, 200.0 ms max latency.
10000 records sent, 999.6 records/sec (0.97 MB/sec), 2.70 ms avg latency, 212.00 ms max latency, 2 ms 50th, 5 ms \
95th, 41 ms 99th, 120 ms 99.9th.
"""


def test_the_line_of_the_whole_run_counts() -> None:
    assert last_line(SAID) == (0.97, (2.0, 41.0))
    with pytest.raises(FailedError, match="printed no result"):
        last_line("5001 records sent, 1000.0 records/sec (0.98 MB/sec)")


def test_ratios_are_medians_of_the_rounds() -> None:
    def figures(value: float) -> dict[str, float]:
        return dict.fromkeys(FIGURES, value)

    ours = [figures(2.0), figures(30.0), figures(4.0)]
    found = rows({"kquorum": ours, "kafka": [figures(1.0), figures(10.0), figures(4.0)]})
    assert [row["produce_mb_s"] for row in found] == [4.0, 4.0, 2.0]
    assert [row["side"] for row in rows({"kquorum": ours})] == ["kquorum"]


def test_an_unknown_side_is_refused() -> None:
    assert parse(["--sides", "kafka"]).sides == ["kafka"]
    with pytest.raises(SystemExit):
        parse(["--sides", "etcd"])
