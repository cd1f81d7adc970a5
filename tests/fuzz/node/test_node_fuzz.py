"""Short runs at a real node; `make fuzz` throws a million inputs."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.fuzz.node.campaign import Campaign, WayReport
from tests.fuzz.node.http_inputs import HttpInputs
from tests.fuzz.node.measured_node import LIMIT_S
from tests.fuzz.node.tls_inputs import TlsInputs
from tests.fuzz.node.ways import WAYS, Maker
from tests.support.network.grpc_inputs import GrpcInputs


def run(folder: Path, inputs: int, *names: str, limit_s: float = LIMIT_S) -> list[WayReport]:
    ways = [way for way in WAYS if way.name in names]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return Campaign(1, inputs, folder, ways=ways, limit_s=limit_s).run(runner)


def test_no_input_holds_the_loop_of_a_node_up(tmp_path: Path) -> None:
    reports = run(tmp_path, 1_500, "http", "grpc", "controller")
    assert not [finding for report in reports for finding in report.findings], "\n".join(map(str, reports))
    assert sum(report.inputs for report in reports) == 1_500
    assert all(0 < report.longest_s < LIMIT_S for report in reports)
    # gRPC's own words about headers that it cannot read.
    assert "hpack_parser" not in (tmp_path / "open" / "node.out").read_text()


def test_no_handshake_holds_the_loop_of_a_node_up(tmp_path: Path) -> None:
    (report,) = run(tmp_path, 500, "tls-before-login")
    assert not report.findings, str(report)
    assert report.inputs == 500
    assert 0 < report.longest_s < LIMIT_S
    assert {"a huge hello", "mixed records", "inside TLS: an odd login"} <= report.kinds.keys()


def test_no_call_inside_of_tls_holds_the_loop_of_a_node_up(tmp_path: Path) -> None:
    (report,) = run(tmp_path, 500, "grpc-tls")
    assert not report.findings, str(report)
    assert report.inputs == 500
    assert 0 < report.longest_s < LIMIT_S
    assert {"a huge hello", "inside TLS: a changed message"} <= report.kinds.keys(), report.kinds


@pytest.mark.slow
def test_no_input_holds_the_loop_of_a_node_up_by_any_way(tmp_path: Path) -> None:
    reports = run(tmp_path, 20_000, *(way.name for way in WAYS))
    assert [report.way for report in reports] == [way.name for way in WAYS]
    assert not [finding for report in reports for finding in report.findings], "\n".join(map(str, reports))


def test_an_input_in_a_long_turn_is_named_and_kept(tmp_path: Path) -> None:
    """Of a turn that is longer than no time at all."""
    (report,) = run(tmp_path, 20, "http", limit_s=0.0)
    found = next(finding for finding in report.findings if "a turn of" in finding)
    again = re.search(r"--seed 1 --way http --number (\d+)", found)
    assert again is not None, "the slowest of the suspects is named"
    number = int(again[1])
    kept = tmp_path / f"http-seed-1-number-{number}.bin"
    assert kept.read_bytes() == HttpInputs(1).make(number).data
    assert "alone" in found


def tls_inputs(seed: int) -> TlsInputs:
    return TlsInputs(HttpInputs(seed), seed)


@pytest.mark.parametrize("inputs", [HttpInputs, GrpcInputs, tls_inputs])
def test_the_same_seed_and_number_make_the_same_input(inputs: Callable[[int], Maker]) -> None:
    first, second, other = (inputs(seed) for seed in (3, 3, 4))
    assert [first.make(number) for number in range(200)] == [second.make(number) for number in range(200)]
    assert [first.make(number) for number in range(200)] != [other.make(number) for number in range(200)]
