"""What the command line refuses, in one line each."""

import shlex
from collections import Counter

import pytest

from tests.jepsen.__main__ import options_of, parse
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
        (["--config", "metadata.max.retention.bytes"], "KEY=VALUE, not 'metadata.max.retention.bytes'"),
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


def test_configs_are_each_nodes_and_stand_in_the_command_that_runs_it_again() -> None:
    chosen = parse(["--config", "metadata.max.retention.bytes=200000", "--config", "broker.rack=r 1"])
    options = options_of(chosen, nodes=3)
    assert dict(options.config) == {"metadata.max.retention.bytes": 200_000, "broker.rack": "r 1"}
    again = parse(shlex.split(options.command)[3:])
    assert options_of(again, nodes=3).config == options.config
