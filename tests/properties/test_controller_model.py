"""A random stream of all that can happen to a controller, against a plain model of the rules.

After each step both have answered the same, written the same records, and are in the same state; and after each record
the invariants of every image hold.
"""

import pytest

from kquorum.metadata.controller.partitions import batched_update, change_batch
from tests.reference_model.stream import run_stream


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What concerns many partitions goes on in turns, with one partition in each."""
    monkeypatch.setattr(batched_update, "PARTITIONS_PER_SLICE", 1)
    monkeypatch.setattr(change_batch, "CHANGES_AT_ONCE", 1)


def test_the_controller_does_what_the_rules_say() -> None:
    run_stream(40, 30, derandomize=True)


@pytest.mark.usefixtures("one_at_a_time")
def test_partition_by_partition_it_does_the_same() -> None:
    run_stream(20, 30, derandomize=True)


@pytest.mark.slow
def test_the_controller_does_what_the_rules_say_for_long() -> None:
    run_stream(1500, 60)


@pytest.mark.slow
@pytest.mark.usefixtures("one_at_a_time")
def test_partition_by_partition_it_does_the_same_for_long() -> None:
    run_stream(500, 60)
