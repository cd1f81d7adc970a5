"""Every int64 of milliseconds becomes a duration: a peer may send any."""

import pytest

from kquorum.wire.codegen.kinds import duration_of, milliseconds_of


@pytest.mark.parametrize("milliseconds", [0, 1, -1, 604_800_000, -(10**15), 10**15])
def test_a_duration_is_what_was_said(milliseconds: int) -> None:
    assert milliseconds_of(duration_of(milliseconds)) == milliseconds


@pytest.mark.parametrize("milliseconds", [2**63 - 1, -(2**63)])
def test_what_no_duration_can_be_becomes_the_longest(milliseconds: int) -> None:
    told = milliseconds_of(duration_of(milliseconds))
    assert abs(told) > 10**16
    assert (told < 0) == (milliseconds < 0)
