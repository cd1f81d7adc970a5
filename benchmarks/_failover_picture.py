"""Lost leaders as a picture: of all losses of one kind, the share that was over after so many ms.

Two panels with an axis each: an announced departure takes milliseconds, an unannounced one a fetch timeout.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks._failover_losses import Loss, by_setting


@dataclass(frozen=True, slots=True)
class Panel:
    """`is_limited` by the timeouts: a leader that says that it goes is not waited for."""

    title: str
    ways: tuple[str, ...]
    width: int
    is_limited: bool


PANELS = (
    Panel("Announced", ("stop", "transfer"), 290, is_limited=False),
    Panel("Lost without a word", ("kill", "pause", "isolate"), 520, is_limited=True),
)
# These can be told apart by all eyes (Okabe and Ito).
_COLOURS = {
    "kill": "#d55e00",
    "pause": "#0072b2",
    "isolate": "#009e73",
    "stop": "#cc79a7",
    "transfer": "#e69f00",
}
_PANEL_HEIGHT, _GAP = 260, 80
_LEFT, _TOP, _BELOW, _LEGEND_LINE = 60, 56, 56, 18
_TICKS_MOST = 7
_STYLE = (
    "text { font: 12px sans-serif; fill: #333; } .title { font-weight: bold; } .grid { stroke: #ddd; } "
    ".limit { stroke: #555; stroke-dasharray: 2 3; } .curve { fill: none; stroke-width: 2; }"
)


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of one setting, sorted, and how they are drawn."""

    label: str
    colour: str
    dashes: str
    times_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """From the first tick to the last, across a panel that begins at `left`."""

    left: float
    width: float
    start_ms: float
    end_ms: float
    step_ms: float

    def x(self, ms: float) -> float:
        share = (ms - self.start_ms) / (self.end_ms - self.start_ms)
        return self.left + min(max(share, 0.0), 1.0) * self.width

    def ticks(self) -> list[float]:
        count = round((self.end_ms - self.start_ms) / self.step_ms)
        return [self.start_ms + number * self.step_ms for number in range(count + 1)]


def picture(losses: Iterable[Loss]) -> str:
    """An SVG document; with nothing to show, an empty one."""
    groups = sorted(by_setting(losses).items())
    lines: list[str] = []
    left, legend_lines = _LEFT, 0
    for panel in PANELS:
        shown = [each for setting, each in groups if setting[0] in panel.ways]
        if shown:
            lines += _panel(left, panel, [_curve(each) for each in shown], [each[0] for each in shown])
            legend_lines = max(legend_lines, len(shown))
            left += panel.width + _GAP
    height = _TOP + _PANEL_HEIGHT + _BELOW + legend_lines * _LEGEND_LINE
    size = f'width="{left}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left} {height}" {size}>'
    return (
        "\n".join([head, f"<style>{_STYLE}</style>", f'<rect {size} fill="#fff"/>', *lines, "</svg>"]) + "\n"
    )


def _curve(losses: Sequence[Loss]) -> Curve:
    first = losses[0]
    timeouts = f"{first.election_ms} / {first.fetch_ms} ms"
    label = f"{first.way}, {first.controllers} controllers, {timeouts} ({len(losses)} times)"
    dashes = "" if first.controllers == 3 else "6 4"
    return Curve(label, _COLOURS[first.way], dashes, tuple(sorted(loss.to_commit_ms for loss in losses)))


def _limits(examples: Sequence[Loss]) -> dict[float, str]:
    """Timeouts, by when they end."""
    fetch = {float(loss.fetch_ms): "fetch timeout" for loss in examples}
    return {float(loss.fetch_ms + loss.election_ms): "+ election timeout" for loss in examples} | fetch


def axis_for(left: float, width: float, values_ms: Sequence[float]) -> Axis:
    """Beyond all values at either end, but not below 0; ticks of 1, 2 or 5."""
    low, high = min(values_ms), max(values_ms)
    low = 0.0 if low < high / 4 else low
    step = _round_step(max((high - low) / (_TICKS_MOST - 3), 1.0))
    start = max(math.ceil(low / step) - 1, 0) * step
    return Axis(left, width, start, (math.floor(high / step) + 1) * step, step)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _panel(left: float, panel: Panel, curves: Sequence[Curve], examples: Sequence[Loss]) -> Iterator[str]:
    limits = _limits(examples) if panel.is_limited else {}
    axis = axis_for(left, panel.width, [*limits, *(ms for curve in curves for ms in curve.times_ms)])
    bottom = _TOP + _PANEL_HEIGHT
    yield _text(left, _TOP - 30, f"{panel.title}: replaced after so many ms", "start", "title")
    for percent in (0, 25, 50, 75, 100):
        y = _y(percent / 100)
        yield f'<line class="grid" x1="{left:.1f}" x2="{left + panel.width:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(left - 6, y + 4, f"{percent} %", "end")
    for tick in axis.ticks():
        x = axis.x(tick)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield _text(x, bottom + 18, f"{tick:,.0f}", "middle")
    for ms, name in limits.items():
        x = axis.x(ms)
        yield f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield _text(x, _TOP - 8, name, "middle")
    for place, curve in enumerate(curves):
        yield _path(axis, curve)
        yield from _legend(left, bottom + 44 + place * _LEGEND_LINE, curve)


def _path(axis: Axis, curve: Curve) -> str:
    """Steps: each time lifts the share by one of them all."""
    points = [f"M {axis.x(curve.times_ms[0]):.1f} {_y(0):.1f}"]
    for number, ms in enumerate(curve.times_ms, start=1):
        points += [f"H {axis.x(ms):.1f}", f"V {_y(number / len(curve.times_ms)):.1f}"]
    return f'<path {_stroke(curve)} d="{" ".join(points)}"><title>{escape(curve.label)}</title></path>'


def _legend(left: float, y: float, curve: Curve) -> Iterator[str]:
    yield f'<path {_stroke(curve)} d="M {left:.1f} {y - 4:.1f} h 28"/>'
    yield _text(left + 36, y, curve.label, "start")


def _stroke(curve: Curve) -> str:
    return f'class="curve" stroke="{curve.colour}" stroke-dasharray="{curve.dashes}"'


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(text)}</text>'


def _y(share: float) -> float:
    return _TOP + (1 - share) * _PANEL_HEIGHT
