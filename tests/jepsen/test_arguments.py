"""What the command line refuses, in one line each."""

from collections import Counter

import pytest

from tests.jepsen.__main__ import parse
from tests.jepsen.workloads.catalogue import WORKLOADS


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--time", "nan"], "must be numbers that are finite"),
        (["--fault", "inf"], "must be numbers that are finite"),
        (["--rate", "0"], "must be above 0"),
        (["--nodes", "3,,5"], "from 1 to 9 controllers, not '3,,5'"),
        (["--nodes", "x"], "from 1 to 9 controllers, not 'x'"),
        (["--nodes", "10"], "from 1 to 9 controllers, not '10'"),
        (["--brokers", "0"], "must be at least 1"),
        (["--workload", "rust"], "no workload rust; there are topics-set"),
        (["--nemesis", "rust"], "no nemesis 'rust'; there are none"),
        (["--mutant", "rust"], "no mutant 'rust'; there are"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert reason in capsys.readouterr().err


def test_several_sizes_are_taken() -> None:
    assert parse(["--nodes", "3,5"]).nodes == (3, 5)


def test_an_operation_belongs_to_one_workload() -> None:
    """Side by side they write one history, in which each finds its own by their names."""
    names = [f for kind in WORKLOADS.values() for f in kind.writes | kind.reads | kind.incidental]
    assert [name for name, count in Counter(names).items() if count > 1] == []
