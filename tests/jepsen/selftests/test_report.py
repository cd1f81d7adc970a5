"""What a run shows: windows of faults, the timeline, the plots, the index, and the terminal."""

import io
import json
import struct
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict, as_json
from tests.jepsen.core.history import NEMESIS, History, Op, OpType
from tests.jepsen.report import write_report
from tests.jepsen.report.findings import violations_of
from tests.jepsen.report.index_page import repeat_command, write_index
from tests.jepsen.report.series import Point, quantiles, rates, strips
from tests.jepsen.report.terminal import Reporter, print_summary
from tests.jepsen.report.timeline import NEIGHBOURS, timeline_data, write_timeline
from tests.jepsen.report.windows import fault_windows

SECOND = 1_000_000_000
HOSTILE = "</script x><script>alert(1)</script>"
PLOTS = ("latency-raw", "latency-quantiles", "rate", "availability")
TEST = {"workload": "w", "nemesis": "kill-one", "time_s": 20.0, "concurrency": 2, "seed": 9, "nodes": (3, 5)}


def nemesis(f: str, at_s: float, value: Any = None, error: str | None = None, asked: Any = None) -> list[Op]:
    """Asked a tenth of a second before it was done."""
    asked_ns, done_ns = round((at_s - 0.1) * SECOND), round(at_s * SECOND)
    return [
        Op(type=OpType.INVOKE, f=f, process=NEMESIS, value=asked, time_ns=asked_ns),
        Op(type=OpType.INFO, f=f, process=NEMESIS, value=value, error=error, time_ns=done_ns),
    ]


def client(process: int, f: str, at_ms: int, kind: OpType | None = OpType.OK, value: Any = 1) -> list[Op]:
    """Takes 5 ms; None never ends."""
    invoke = Op(
        type=OpType.INVOKE, f=f, process=process, node=11 + process % 2, value=value, time_ns=at_ms * 10**6
    )
    if kind is None:
        return [invoke]
    return [invoke, Op(type=kind, f=f, process=process, node=11, value=value, time_ns=(at_ms + 5) * 10**6)]


def spans(ops: list[Op]) -> list[tuple[str, float, float | None]]:
    return [
        (each.f, each.start_ns / SECOND, None if each.end_ns is None else each.end_ns / SECOND)
        for each in fault_windows(ops)
    ]


def small_history(f: str = "create", value: Any = 1) -> History:
    return History(
        [
            *client(0, f, 0, OpType.OK, value),
            *client(1, "list", 10, OpType.FAIL),
            *nemesis("kill-one", 0.5, {"node": 2}),
            *client(1, f, 600, OpType.INFO, value),
            *client(3, "list", 800),
            *nemesis("heal", 1.0, {"fault": "kill-one"}),
            *client(0, f, 1500, None, value),
        ]
    )


def test_a_fault_lasts_from_when_it_was_done_until_it_was_healed() -> None:
    assert spans([*nemesis("kill", 1, {"node": 2}), *nemesis("heal", 3)]) == [("kill", 1, 3)]
    assert fault_windows(nemesis("kill", 1, {"node": 2}))[0].label == "kill node 2"


def test_a_heal_that_names_a_fault_ends_that_one_alone() -> None:
    ops = [
        *nemesis("kill", 1, {}),
        *nemesis("slow", 2, {}),
        *nemesis("kill", 3, {}),
        *nemesis("heal", 4, {"fault": "kill"}),
        *nemesis("cut", 5, {}),
        *nemesis("heal", 6),
        *nemesis("kill", 7, {}),
    ]
    assert spans(ops) == [("kill", 1, 4), ("slow", 2, 6), ("kill", 3, 4), ("cut", 5, 6), ("kill", 7, None)]


def test_what_was_asked_tells_which_fault_a_heal_ended_if_its_end_does_not() -> None:
    heal = nemesis("heal", 4, {"leader": 3}, asked={"fault": "slow"})
    assert spans([*nemesis("kill", 1, {}), *nemesis("slow", 2, {}), *heal]) == [
        ("kill", 1, None),
        ("slow", 2, 4),
    ]


def test_a_fault_or_heal_that_could_not_be_brought_about_changes_nothing() -> None:
    ops = [*nemesis("cut", 1, error="no leader"), *nemesis("kill", 2, {}), *nemesis("heal", 3, error="stuck")]
    assert spans(ops) == [("kill", 2, None)]


def test_a_history_that_breaks_off_has_windows_too() -> None:
    assert spans([*nemesis("kill", 1, {}), nemesis("heal", 2)[0]]) == [("kill", 1, None)]
    assert spans([nemesis("kill", 1, {})[1], nemesis("heal", 2)[1]]) == [("kill", 1, 2)]


def test_quantiles_are_latencies_that_were_and_rates_count_every_end() -> None:
    points = [Point("f", OpType.OK, 1, 0.1, 0.1 + each / 1000) for each in range(1, 101)]
    lines = {name: round(line[0][1]) for name, line in quantiles(points, 1).items()}
    assert lines == {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    points.append(Point("f", OpType.FAIL, 1, 1.0, 3.5))
    assert [count for _, count in rates(points, 1, 4)["f", OpType.OK]] == [100, 0, 0, 0]
    assert [count for _, count in rates(points, 1, 4)["f", OpType.FAIL]] == [0, 0, 0, 1]


def test_an_outage_of_writes_is_no_outage_of_reads() -> None:
    writes = [Point("create", OpType.OK, 1, 0.05, 0.06), Point("create", OpType.OK, 1, 0.21, 1.21)]
    row, reads = strips([*writes, Point("list", OpType.OK, 1, 0.61, 0.62)], 2.0)[:2]
    assert [(round(start, 1), round(end, 1), good) for start, end, good in row.spans] == [
        (0.0, 0.2, True),
        (0.2, 1.2, False),
        (1.2, 1.4, True),
    ]
    assert reads.label == "reads"
    assert [good for *_, good in reads.spans] == [True]


class Page(HTMLParser):
    """The data of a timeline, and the names of all elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.data: Any = None
        self._in_data = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        values = dict(attrs)
        self._in_data = values.get("id") == "run"
        if tag == "a":
            self.links.append(values.get("href") or "")
        if "src" in values:
            self.sources.append(values["src"] or "")

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data, self._in_data = json.loads(data), False


def test_every_operation_of_a_history_is_in_the_timeline(tmp_path: Path) -> None:
    history = small_history()
    write_timeline(tmp_path, history, {VALID_KEY: Verdict.VALID}, TEST)
    page = Page((tmp_path / "timeline.html").read_text())
    shown = [(page.data["fs"][op[1]], op[2], op[5], op[7]) for op in page.data["ops"]]
    assert shown == [
        (each.invoke.f, each.kind.value, each.invoke.index, each.invoke.process)
        for each in history.operations()
    ]
    assert page.data["windows"] == [["kill-one", "kill-one node 2", 500_000, 1_000_000]]
    # Process 3 is client 1 after it crashed: one column, on one node.
    assert page.data["columns"] == [{"node": 11, "client": 0}, {"node": 12, "client": 1}]
    assert page.data["gaps"] == []
    assert page.sources == []


def test_names_from_a_run_are_no_markup(tmp_path: Path) -> None:
    results: Results = {
        VALID_KEY: Verdict.INVALID,
        "c": {
            VALID_KEY: Verdict.INVALID,
            "summary": [HOSTILE],
            "anomalies": {HOSTILE: [{"index": 0, "x": HOSTILE}]},
        },
    }
    history, test = small_history(HOSTILE, HOSTILE), {**TEST, "workload": HOSTILE}
    write_timeline(tmp_path, history, results, test)
    write_index(tmp_path, history, results, test, [HOSTILE])
    for name, scripts in (("timeline.html", 2), ("index.html", 0)):
        html = (tmp_path / name).read_text()
        assert "alert(1)" in html
        assert "</script x" not in html
        assert Page(html).elements.count("script") == scripts
    assert Page((tmp_path / "timeline.html").read_text()).data["ops"][0][8] == HOSTILE


def test_a_large_timeline_keeps_what_is_near_violations_and_says_what_it_lacks() -> None:
    count = 3 * NEIGHBOURS
    history = History([op for each in range(4 * NEIGHBOURS) for op in client(0, "create", each * 10)])
    index = 2 * count
    results = {"c": {VALID_KEY: False, "anomalies": {"lost": [{"known_at": index}]}}}
    values = timeline_data(history, results, TEST, 2 * NEIGHBOURS)
    lines = {op[5] for op in values["ops"]}
    assert len(values["ops"]) == 2 * NEIGHBOURS
    assert values["total"] == 4 * NEIGHBOURS
    assert index in lines
    assert {index - 2 * NEIGHBOURS, index + 2 * (NEIGHBOURS - 2)} <= lines
    assert values["gaps"]
    assert values["violations"][0]["times"] == [history[index].time_ns // 1000]


def test_processes_have_their_own_columns_where_clients_are_unknown() -> None:
    overlapping = History([*client(0, "create", 0, None), *client(2, "create", 10)])
    assert len(timeline_data(overlapping, {}, {})["columns"]) == 2
    assert len(timeline_data(overlapping, {}, TEST)["columns"]) == 2


def test_each_plot_is_a_picture_and_a_drawing(tmp_path: Path) -> None:
    assert write_report(tmp_path, small_history("$a_{$"), None, TEST) == []
    for name in PLOTS:
        head = (tmp_path / f"{name}.png").read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", head[16:24])
        assert width > 800
        assert height > 150
        assert "kill-one" in (tmp_path / f"{name}.svg").read_text()


def test_an_empty_history_is_shown_too(tmp_path: Path) -> None:
    assert write_report(tmp_path, History(), None, {}) == []
    assert "Nothing was judged" in (tmp_path / "index.html").read_text()


def test_what_cannot_be_written_is_reported_and_the_rest_is_there(tmp_path: Path) -> None:
    (tmp_path / "rate.png").mkdir()
    (tmp_path / "timeline.html").mkdir()
    problems = write_report(tmp_path, small_history(), None, TEST)
    assert [problem.split(" could")[0] for problem in problems] == ["rate", "the timeline"]
    assert "rate could not be drawn" in (tmp_path / "index.html").read_text()
    assert (tmp_path / "availability.svg").is_file()


def test_the_index_links_what_is_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "nodes" / "11").mkdir(parents=True)
    (tmp_path / "nodes" / "11" / "output.log").write_text("")
    (tmp_path / "history.jsonl").write_text("")
    for name in ("rate.png", "rate.svg", "timeline.html"):
        (tmp_path / name).write_text("")
    write_index(tmp_path, small_history(), {VALID_KEY: Verdict.VALID}, TEST)
    page = Page((tmp_path / "index.html").read_text())
    assert {"history.jsonl", "nodes/11/output.log", "timeline.html", "rate.svg"} <= set(page.links)
    assert all((tmp_path / each).is_file() for each in [*page.links, *page.sources])


def test_the_command_that_repeats_a_run_has_its_options_and_seed() -> None:
    assert repeat_command({**TEST, "network": "netns", "quiet_s": 0.5}) == (
        "python -m tests.jepsen --workload w --nemesis kill-one --time 20 --nodes 3,5 --concurrency 2 "
        "--quiet 0.5 --seed 9"
    )
    assert repeat_command({"command": ["a", "b c"]}) == "a 'b c'"


def summary_of(results: Results, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_summary(console, results)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_summary_shows_lines_reasons_and_five_of_each_violation_in_80_columns() -> None:
    results: Results = {
        VALID_KEY: Verdict.UNKNOWN,
        "linear": {
            VALID_KEY: Verdict.UNKNOWN,
            "summary": ["[bold]3 keys[/] were checked " + "x" * 90],
            "reasons": ["key 4: out of time"],
            "anomalies": {"stale": [{"index": each, "why": "[/x]"} for each in range(7)]},
        },
        "strange": {VALID_KEY: Verdict.VALID, "keys": 12},
        "broken": {VALID_KEY: Verdict.UNKNOWN, "error": "the checker failed: KeyError: [1]"},
        "set": {VALID_KEY: Verdict.VALID, "lost": []},
    }
    said = summary_of(results)
    assert max(len(line) for line in said.splitlines()) <= 80
    for words in ("[bold]3 keys[/]", "key 4: out of time", "keys 12", "KeyError: [1]", "verdict: unknown"):
        assert words in said
    assert said.count("'why'") == 5
    assert "and 2 more" in said


def test_results_read_from_json_are_summed_up_alike() -> None:
    results: Results = {VALID_KEY: Verdict.INVALID, "a": {VALID_KEY: Verdict.UNKNOWN, "summary": ["line"]}}
    assert summary_of(as_json(results)) == summary_of(results)


def test_violations_know_their_lines_of_the_history() -> None:
    entry = {"element": 3, "known_at": 7, "ops": [{"index": 9}, 11], "node": 5, "deleted_at": None}
    (violation,) = violations_of({"set": {VALID_KEY: False, "lost": [entry]}})
    assert violation.indices == (7, 9, 11)


def test_the_bar_shows_time_left_outcomes_and_all_faults_that_last() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, _environ={"TERM": "xterm"})
    with Reporter(console, 90.0) as reporter:
        for op in [*nemesis("kill", 1, {"node": 2}), *nemesis("slow", 2, {"[x": 1}), *client(0, "create", 0)]:
            reporter.on_event(op)
        reporter.on_idle(29 * SECOND)
        assert reporter.faults() == "kill, slow"
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    for words in ("1:02 left", "ok 1 fail 0 info 0", "kill, slow", "nemesis: slow [x 1"):
        assert words in said


def test_without_a_fault_the_bar_says_so() -> None:
    assert Reporter(Console(file=io.StringIO()), 1.0).faults() == "no fault"


@pytest.mark.parametrize("results", [{}, {"x": 1}, {VALID_KEY: None}])
def test_results_without_a_verdict_are_no_crash(results: Results) -> None:
    assert "verdict: none" in summary_of(results)
