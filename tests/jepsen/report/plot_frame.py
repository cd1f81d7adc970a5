"""A figure as all plots of a run have it: faults in a strip above, shaded in the plots below, the legend beside."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.report.windows import Window

FORMATS = ("png", "svg")
# Okabe and Ito's colours, which most eyes can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A6A00", "#555555")
_FAULT_COLOURS = ("#d9534f", "#8e6bbf", "#c58a1b", "#3a8a8a", "#a0527a", "#6b7a2f", "#4f6fb3", "#7f7f7f")
_WIDTH_INCHES = 11.0
_DPI = 110
_FAULT_ROW_INCHES = 0.2
# The keys are matplotlib's; its types list all of them in one Literal.
_STYLE: Any = {
    "text.parse_math": False,  # names of operations are not formulas
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "svg.hashsalt": "run",
    "svg.fonttype": "none",
}


@contextmanager
def style() -> Iterator[None]:
    """All of a figure is made and saved in it: each text takes from it how it reads its letters."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name in letters that the font lacks is still a plot
        yield


class Frame:
    """Panels under each other that share the time; `panels` are matplotlib's Axes."""

    def __init__(
        self, title: str, windows: Sequence[Window], until_s: float, panels: int, panel_inches: float
    ) -> None:
        self._windows = windows
        self._until_s = max(until_s, 0.001)
        self._faults = sorted({window.f for window in windows})
        strip_inches = _FAULT_ROW_INCHES * len(self._faults)
        heights = [strip_inches] * bool(self._faults) + [panel_inches] * panels
        self.figure = Figure(figsize=(_WIDTH_INCHES, sum(heights) + 1.1), layout="constrained")
        FigureCanvasAgg(self.figure)
        grid = self.figure.subplots(
            len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        axes = list(grid[:, 0])
        self.panels: list[Any] = axes[bool(self._faults) :]
        axes[0].set_title(title, loc="left")
        if self._faults:
            self._draw_strip(axes[0])
        self._shade()
        self.panels[-1].set_xlabel("seconds since the start of the run")
        self.panels[-1].set_xlim(0, self._until_s)

    def legend(self, panel: Any, **options: Any) -> None:
        """Outside of the data."""
        if panel.get_legend_handles_labels()[1]:
            panel.legend(loc="upper left", bbox_to_anchor=(1.005, 1.0), frameon=False, **options)

    def save(self, folder: Path, name: str) -> None:
        for kind in FORMATS:
            metadata = {"Date": None} if kind == "svg" else None
            self.figure.savefig(folder / f"{name}.{kind}", dpi=_DPI, metadata=metadata)

    def _colour(self, f: str) -> str:
        return _FAULT_COLOURS[self._faults.index(f) % len(_FAULT_COLOURS)]

    def _draw_strip(self, strip: Any) -> None:
        """A row for each fault, so that overlapping ones can be told apart."""
        for row, f in enumerate(self._faults):
            bars = [self._bar(window) for window in self._windows if window.f == f]
            strip.broken_barh(bars, (row - 0.35, 0.7), facecolors=self._colour(f))
        strip.set_yticks(range(len(self._faults)), [name[:28] for name in self._faults])
        strip.set_ylim(len(self._faults) - 0.5, -0.5)
        strip.tick_params(axis="both", length=0, labelbottom=False)
        for spine in strip.spines.values():
            spine.set_visible(False)

    def _bar(self, window: Window) -> tuple[float, float]:
        start_s = window.start_ns / SECOND_NS
        return start_s, max(window.until_ns(round(self._until_s * SECOND_NS)) / SECOND_NS - start_s, 0.001)

    def _shade(self) -> None:
        for panel in self.panels:
            for window in self._windows:
                start_s, length_s = self._bar(window)
                colour = self._colour(window.f)
                panel.axvspan(start_s, start_s + length_s, color=colour, alpha=0.13, linewidth=0, zorder=0)
