"""Pictures on the time axis: every position is a percentage, so that nothing is scaled but the bars themselves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kquorum.spark_replay.report.html import Content, Markup, joined, tag, void
from kquorum.spark_replay.report.times import ticks
from kquorum.spark_replay.report.window import Window

# Thinner than this nothing can be seen or pointed at.
_LEAST_WIDTH = 0.18
_LEAST_HEIGHT = 1.5

# A column of a picture: its bucket, its parts as (style, value) from the bottom up, and what to say about it.
Stack = tuple[int, Sequence[tuple[str, int]], str]


@dataclass(frozen=True, slots=True)
class Axis:
    """Where the times of a window lie across the page."""

    window: Window

    def share(self, at_ms: int) -> float:
        """In percent, cut to the window."""
        length = max(self.window.duration_ms, 1)
        return min(max((at_ms - self.window.start_ms) / length * 100, 0.0), 100.0)

    def bar(
        self, start_ms: int, end_ms: int, title: str, *, style: str, top: float = 0, height: float = 14
    ) -> Markup:
        left = self.share(start_ms)
        width = max(self.share(end_ms) - left, _LEAST_WIDTH)
        left = min(left, 100 - width)
        return tag(
            "rect",
            tag("title", title),
            x=percent(left),
            width=percent(width),
            y=number(top),
            height=number(height),
            class_=style,
        )

    def columns(self, stacks: Iterable[Stack], *, highest: int, height: float, share: float = 0.86) -> Markup:
        """One column for each stack, `highest` being as tall as the row and `share` of a bucket wide."""
        return joined(self._column(*stack, highest=highest, height=height, share=share) for stack in stacks)

    def _column(
        self,
        bucket: int,
        parts: Sequence[tuple[str, int]],
        title: str,
        *,
        highest: int,
        height: float,
        share: float,
    ) -> Markup:
        window = self.window
        start = self.share(window.bucket_start(bucket))
        end = self.share(window.bucket_start(bucket + 1))
        width = max((end - start) * share, _LEAST_WIDTH)
        bottom, drawn = height, []
        for style, value in parts:
            size = max(value / highest * height, _LEAST_HEIGHT)
            bottom = max(bottom - size, 0)
            drawn.append(
                void(
                    "rect",
                    x=percent(min(start, 100 - width)),
                    width=percent(width),
                    y=number(bottom),
                    height=number(size),
                    class_=style,
                )
            )
        return tag("g", tag("title", title), *drawn)

    def labels(self) -> Markup:
        """The row of times; every other one is left out where the page is narrow."""
        texts = [
            tag("text", label, x=percent(self.share(at_ms)), y="12", class_="minor" if index % 2 else None)
            for index, (at_ms, label) in enumerate(ticks(self.window))
            if self.share(at_ms) < 97
        ]
        return picture("Times in UTC", *texts, height=16, style="ticks")

    def lines(self) -> Markup:
        """A line down the whole picture at each tick."""
        return joined(
            void("line", x1=percent(at), x2=percent(at), y1="0", y2="100%")
            for at in (self.share(at_ms) for at_ms, _ in ticks(self.window))
        )


def picture(label: str, *content: Content, height: int, style: str = "plot") -> Markup:
    return tag("svg", *content, class_=style, role="img", aria_label=label, width="100%", height=height)


def lane(name: Content, drawn: Markup, note: Content = "") -> Markup:
    """A row of the picture: its name at the left, or above where the page is narrow."""
    noted = (tag("span", note, class_="note"),) if note else ()
    return tag("div", tag("div", tag("span", name), *noted, class_="name"), drawn, class_="lane")


def swatch(style: str, label: Content) -> Markup:
    """An entry of a legend."""
    box = void("rect", width="10", height="10", class_=style)
    return tag("li", tag("svg", box, width="10", height="10", aria_hidden="true"), " ", label)


def legend(entries: Iterable[tuple[str, Content]]) -> Markup:
    return tag("ul", *(swatch(style, label) for style, label in entries), class_="legend")


def percent(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + "%"


def number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
