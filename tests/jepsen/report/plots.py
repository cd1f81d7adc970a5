"""The plots of a run, each as PNG and SVG: latency of every operation, its quantiles, rates, and availability."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import History, OpType
from tests.jepsen.report.plot_frame import COLOURS, Frame, style
from tests.jepsen.report.series import Point, bucket_s, is_read, points_of, quantiles, rates, strips
from tests.jepsen.report.windows import Window, fault_windows

LATENCY_RAW, LATENCY_QUANTILES = "latency-raw", "latency-quantiles"
RATE, AVAILABILITY = "rate", "availability"
PLOTS = (LATENCY_RAW, LATENCY_QUANTILES, RATE, AVAILABILITY)

_KINDS = (OpType.OK, OpType.FAIL, OpType.INFO)
_MARKERS = {OpType.OK: "o", OpType.FAIL: "x", OpType.INFO: "^"}
_DASHES: Mapping[OpType, Any] = {OpType.OK: "-", OpType.FAIL: (0, (4, 1.5)), OpType.INFO: (0, (1, 1))}
_SHADES = {"p50": "#0072B2", "p95": "#009E73", "p99": "#E69F00", "max": "#555555"}
_SUCCEEDED, _NOT_SUCCEEDED, _NOTHING_TRIED = "#0072B2", "#D55E00", "#e4e4e4"
# An SVG of more single points is slow in any viewer; they become a picture within it.
_VECTOR_POINTS_MAX = 5_000
_PANELS_MAX = 6

Draw = Callable[[Sequence[Point], Sequence[Window], float], Frame]


def write_plots(folder: Path, history: History, reads: Iterable[str] | None = None) -> list[str]:
    """Each plot by itself, so that one that fails takes no other with it; answers what went wrong."""
    points = points_of(history)
    windows = fault_windows(history)
    until_s = history.last_time_ns / SECOND_NS
    named = None if reads is None else frozenset(reads)
    judge_read = is_read if named is None else named.__contains__
    drawings: Mapping[str, Draw] = {
        LATENCY_RAW: latency_raw,
        LATENCY_QUANTILES: latency_quantiles,
        RATE: rate,
        AVAILABILITY: partial(availability, reads=judge_read),
    }
    problems = []
    for name, draw in drawings.items():
        try:
            with style():
                draw(points, windows, until_s).save(folder, name)
        except Exception as error:  # noqa: BLE001 - a broken picture must not cost the run its verdict
            problems.append(f"{name} could not be drawn: {type(error).__name__}: {error}")
    return problems


def latency_raw(points: Sequence[Point], windows: Sequence[Window], until_s: float) -> Frame:
    """Colour says what was asked, the marker how it ended, the place when it was asked."""
    frame = Frame("latency of each operation, at its invocation", windows, until_s, 1, 4.2)
    (panel,) = frame.panels
    as_picture = len(points) > _VECTOR_POINTS_MAX
    for place, f in enumerate(_fs(points)):
        for kind in _KINDS:
            chosen = [point for point in points if point.f == f and point.kind is kind]
            if not chosen:
                continue
            panel.scatter(
                [point.start_s for point in chosen],
                [point.latency_ms for point in chosen],
                s=9 if kind is OpType.OK else 22,
                marker=_MARKERS[kind],
                color=_colour(place),
                alpha=0.55 if kind is OpType.OK else 0.9,
                linewidths=0 if kind is OpType.OK else 1,
                label=f"{f} {kind.value} ({len(chosen)})",
                rasterized=as_picture,
                zorder=2 + _KINDS.index(kind),
            )
    _latency_axis(panel)
    frame.legend(panel, markerscale=1.6)
    return frame


def latency_quantiles(points: Sequence[Point], windows: Sequence[Window], until_s: float) -> Frame:
    """A panel for each f; of those past the sixth, one for all the rest."""
    names = _fs(points)
    alone = names if len(names) <= _PANELS_MAX else names[: _PANELS_MAX - 1]
    groups = {f: [point for point in points if point.f == f] for f in alone}
    if len(alone) < len(names):
        groups["the others"] = [point for point in points if point.f not in alone]
    width_s = bucket_s(until_s)
    title = f"latency in buckets of {width_s} s, all outcomes, at the invocation"
    frame = Frame(title, windows, until_s, max(1, len(groups)), 1.6 if len(groups) > 1 else 3.5)
    for panel, (f, group) in zip(frame.panels, groups.items(), strict=False):
        for name, line in quantiles(group, width_s).items():
            # In a bucket of few operations they are equal: the dots let what lies below be seen.
            dashes: Any = (0, (1, 1.5)) if name == "max" else "-"
            panel.plot(*_columns(line), color=_SHADES[name], linestyle=dashes, label=name, linewidth=1.4)
        _latency_axis(panel, f"{f}\nms")
    frame.legend(frame.panels[0])
    return frame


def rate(points: Sequence[Point], windows: Sequence[Window], until_s: float) -> Frame:
    width_s = bucket_s(until_s)
    frame = Frame(f"operations a second, in buckets of {width_s} s, as they ended", windows, until_s, 1, 3.6)
    (panel,) = frame.panels
    names = _fs(points)
    for (f, kind), line in rates(points, width_s, until_s).items():
        panel.plot(
            *_columns(line),
            color=_colour(names.index(f)),
            linestyle=_DASHES[kind],
            linewidth=1.4,
            label=f"{f} {kind.value}",
        )
    panel.set_ylim(bottom=0)
    panel.set_ylabel("operations a second")
    panel.grid(axis="y", alpha=0.25)
    frame.legend(panel, handlelength=3)
    return frame


def availability(
    points: Sequence[Point],
    windows: Sequence[Window],
    until_s: float,
    reads: Callable[[str], bool] = is_read,
) -> Frame:
    rows = strips(points, until_s, reads)
    frame = Frame("when operations succeeded", windows, until_s, 1, 0.5 + 0.28 * max(1, len(rows)))
    (panel,) = frame.panels
    for place, row in enumerate(rows):
        panel.broken_barh([(0, until_s)], (place - 0.36, 0.72), facecolors=_NOTHING_TRIED, zorder=1)
        for good, colour in ((True, _SUCCEEDED), (False, _NOT_SUCCEEDED)):
            bars = [(start_s, end_s - start_s) for start_s, end_s, each in row.spans if each is good]
            panel.broken_barh(bars, (place - 0.36, 0.72), facecolors=colour, zorder=2)
    for colour, label in (
        (_SUCCEEDED, "some succeeded"),
        (_NOT_SUCCEEDED, "tried, none succeeded"),
        (_NOTHING_TRIED, "none tried"),
    ):
        panel.broken_barh([], (0, 1), facecolors=colour, label=label)
    panel.set_yticks(range(len(rows)), [row.label for row in rows])
    panel.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    frame.legend(panel)
    return frame


def _fs(points: Iterable[Point]) -> list[str]:
    return sorted({point.f for point in points})


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _columns(line: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in line], [y for _, y in line]


def _latency_axis(panel: Any, label: str = "latency, ms") -> None:
    panel.set_yscale("log")
    panel.set_ylabel(label)
    panel.grid(axis="y", alpha=0.25)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    low, high = panel.get_ylim()
    # Within a decade the major ticks alone would say too little.
    narrow = math.log10(high / low) < 1.5
    panel.yaxis.set_minor_formatter(
        lambda value, _: f"{value:g}" if narrow and f"{value:e}"[0] in "25" else ""
    )
