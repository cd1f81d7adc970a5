"""The report on lost leaders, of losses that are made up."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks._failover_losses import Loss, UnreadableLossesError, open_losses, read_losses
from benchmarks._failover_picture import axis_for, picture
from tests.jepsen import failover_report

SVG = "{http://www.w3.org/2000/svg}"


def a_loss(
    way: str = "kill", to_commit_ms: float = 2200.0, *, controllers: int = 3, **others: object
) -> Loss:
    values: dict[str, object] = {
        "way": way,
        "controllers": controllers,
        "election_ms": 1000,
        "fetch_ms": 2000,
        "to_commit_ms": to_commit_ms,
        "without_writes_ms": to_commit_ms,
        "epochs": 1,
        "later_epochs": 0,
        "late_writes": 0,
        "write_ms": 4.0,
        "leader_id": 1,
        "next_leader_id": 2,
        "load": 1.5,
        "at_ms": round(to_commit_ms),
    }
    return Loss(**(values | others))  # type: ignore[arg-type]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n ").split("|")]


def test_a_row_holds_quantiles_elections_and_load() -> None:
    times = [a_loss(to_commit_ms=2000 + number) for number in range(1, 98)]
    slow = [
        a_loss(to_commit_ms=3300, epochs=2, load=7.25),
        a_loss(to_commit_ms=3400, epochs=2),
        a_loss(to_commit_ms=5000, epochs=3),
    ]
    heading, _, row = failover_report.table([*slow, *times]).splitlines()
    found = dict(zip(cells(heading), cells(row), strict=True))
    assert (found["p50"], found["p90"], found["p99"], found["max"]) == (
        "2,050 ms",
        "2,090 ms",
        "3,400 ms",
        "5,000 ms",
    )
    assert (found["first election"], found["second"], found["later"]) == ("97", "2", "1")
    assert (found["faults"], found["controllers"], found["p50 in fetch timeouts"]) == ("100", "3", "1.02")
    assert (found["load, p50"], found["most"]) == ("1.5", "7.2")


def test_each_way_and_size_has_a_row_of_its_own_unannounced_losses_first() -> None:
    ways = ("stop", "isolate", "pause", "kill")
    losses = [*(a_loss(way) for way in ways), a_loss("kill", 7), a_loss("kill", controllers=5)]
    rows = [cells(line)[:2] for line in failover_report.table(losses).splitlines()[2:]]
    assert rows == [["kill", "3"], ["kill", "5"], ["pause", "3"], ["isolate", "3"], ["stop", "3"]]


def test_a_loss_that_is_in_two_files_counts_once() -> None:
    one, two, three = (a_loss(to_commit_ms=number) for number in (1, 2, 3))
    assert failover_report.merged([[one, three], [two, one]]) == [one, two, three]


def test_the_remarks_tell_what_should_not_have_been() -> None:
    told = failover_report.remarks([a_loss(), a_loss(late_writes=3), a_loss(later_epochs=2)])
    assert "Leaders lost: 3. Writes that the lost leader acknowledged after its loss began: 3." in told
    assert "return of a lost leader: 2." in told


def paths_of(document: str) -> list[str]:
    """The curves: of all the paths, those with a title."""
    root = ET.fromstring(document)
    return [path.attrib["d"] for path in root.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]


def test_a_curve_climbs_one_step_for_each_loss_and_ends_at_all_of_them() -> None:
    document = picture([a_loss(to_commit_ms=ms) for ms in (2100, 2050, 2900, 2200)])
    (path,) = paths_of(document)
    heights = [float(part) for part in path.split(" V ")[1:] for part in part.split()[:1]]
    assert len(heights) == 4
    assert heights == sorted(heights, reverse=True)
    root = ET.fromstring(document)
    hundred = next(text for text in root.iter(f"{SVG}text") if text.text == "100 %")
    assert heights[-1] == pytest.approx(float(hundred.attrib["y"]) - 4)
    steps = [float(part.split()[0]) for part in path.split(" H ")[1:]]
    assert steps == sorted(steps)


def test_the_timeouts_in_force_are_drawn_where_a_leader_was_lost_without_a_word() -> None:
    def limits(way: str) -> list[str]:
        root = ET.fromstring(picture([a_loss(way, 2222), a_loss(way, 2050)]))
        return [line.attrib["x1"] for line in root.iter(f"{SVG}line") if line.attrib["class"] == "limit"]

    assert len(limits("pause")) == 2
    assert limits("stop") == []


@pytest.mark.parametrize(
    ("values", "start", "end", "step"),
    [((20.0, 230.0), 0, 300, 100), ((2000.0, 3000.0, 3680.0), 1500, 4000, 500), ((5.0,), 4, 6, 1)],
)
def test_an_axis_holds_all_values_between_round_ticks(
    values: tuple[float, ...], start: float, end: float, step: float
) -> None:
    axis = axis_for(10.0, 100.0, values)
    assert (axis.start_ms, axis.end_ms, axis.step_ms) == (start, end, step)
    assert axis.ticks()[0] == start
    assert axis.ticks()[-1] == end
    assert axis.x(end) == 110.0


def test_a_line_that_was_cut_off_is_left_out_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    path.write_text(a_loss().as_line() + a_loss("stop").as_line()[:40])
    assert read_losses(path) == [a_loss()]
    with open_losses(path) as losses:
        losses.add(a_loss("pause"))
        assert read_losses(path) == [a_loss(), a_loss("pause")]
        assert losses.count(a_loss("pause", 1.0).setting) == 1


@pytest.mark.parametrize("line", ["{", "[]", '{"way": "kill"}', a_loss(epochs="two").as_line().strip()])
def test_a_line_of_something_else_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "losses.jsonl"
    path.write_text(a_loss().as_line() + line + "\n")
    with pytest.raises(UnreadableLossesError, match=r"losses.jsonl:2: not a measured loss"):
        read_losses(path)


def test_the_command_draws_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, loss in (("a", a_loss()), ("b", a_loss("isolate"))):
        (tmp_path / name).write_text(loss.as_line())
    svg = tmp_path / "failover.svg"
    failover_report.main([str(tmp_path / "a"), str(tmp_path / "b"), "--picture", str(svg)])
    assert len(paths_of(svg.read_text())) == 2
    assert "| isolate | 3 |" in capsys.readouterr().out


def test_what_a_busy_machine_measured_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, svg = tmp_path / "losses.jsonl", tmp_path / "failover.svg"
    path.write_text(
        "".join(a_loss(at_ms=number, load=load).as_line() for number, load in enumerate((1, 4, 9)))
    )
    failover_report.main([str(path), "--load-below", "4", "--picture", str(svg)])
    told = capsys.readouterr().out
    assert "Leaders lost: 1." in told
    assert "Left out: 2 at a load of 4 or more." in told
    failover_report.main([str(path), "--picture", str(svg)])
    assert "Left out" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"), [("", "hold no loss of a leader"), ("nonsense\n", ":1: not a measured loss")]
)
def test_files_without_losses_are_refused_in_a_line(tmp_path: Path, text: str, told: str) -> None:
    path, svg = tmp_path / "losses.jsonl", tmp_path / "failover.svg"
    path.write_text(text)
    with pytest.raises(SystemExit, match=told):
        failover_report.main([str(path), "--picture", str(svg)])
    assert not svg.exists()
