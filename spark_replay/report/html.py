"""HTML and SVG that cannot be broken by what stands in a log: every text is escaped unless it is `Markup` already."""

import html
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.spark_replay.report.times import Window, ticks

LONGEST_TEXT: Final = 1000
_CUT: Final = "\u2026"
# Characters that change how the text around them is shown (bidirectional overrides), and line separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | int | Markup


def escaped(text: Content) -> Markup:
    """HTML for any text; what cannot be seen is shown by its number, and what is very long is cut."""
    if isinstance(text, Markup):
        return text
    shown = str(text)
    if len(shown) > LONGEST_TEXT:
        shown = shown[: LONGEST_TEXT - 1] + _CUT
    if not shown.isascii() or not shown.isprintable():
        shown = "".join(map(_visible, shown))
    return Markup(html.escape(shown, quote=True))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def tag(name: str, /, *children: Content, **attributes: Content | None) -> Markup:
    """An element; a trailing `_` of an attribute's name is dropped, other `_` are hyphens; None leaves it out."""
    return Markup(f"<{name}{_attributes(attributes)}>{joined(children)}</{name}>")


def void(name: str, /, **attributes: Content | None) -> Markup:
    """An element without content: `meta` in HTML, any in SVG."""
    return Markup(f"<{name}{_attributes(attributes)}/>")


def joined(children: Iterable[Content], between: Content = "") -> Markup:
    return Markup(escaped(between).join(map(escaped, children)))


def _attributes(attributes: dict[str, Content | None]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[Content]], *, caption: str = "") -> Markup:
    """A table that scrolls by itself where it is too wide. Columns whose name begins with `#` hold numbers."""
    numeric = [name.startswith("#") for name in columns]
    heads = (
        tag("th", name.lstrip("#"), scope="col", class_="number" if is_number else None)
        for name, is_number in zip(columns, numeric, strict=True)
    )
    body = (
        tag(
            "tr",
            *(
                tag("td", cell, class_="number" if is_number else None)
                for cell, is_number in zip(row, numeric, strict=True)
            ),
        )
        for row in rows
    )
    inner = (tag("thead", tag("tr", *heads)), tag("tbody", *body))
    titled = (tag("caption", caption),) if caption else ()
    return tag(
        "div",
        tag("table", *titled, *inner),
        class_="scrolls",
        tabindex="0",
        role="region",
        aria_label=caption or "table",
    )


def folded(summary: Content, *content: Content, is_open: bool = False) -> Markup:
    """What unfolds when it is asked for."""
    return tag("details", tag("summary", summary), *content, open="" if is_open else None)


def section(identifier: str, title: str, *content: Content, lead: Content = "") -> Markup:
    intro = (tag("p", lead, class_="lead"),) if lead else ()
    return tag(
        "section",
        tag("h2", title, id=f"{identifier}-title"),
        *intro,
        *content,
        id=identifier,
        aria_labelledby=f"{identifier}-title",
    )


# Pictures on the time axis: every position is a percentage, so that nothing is scaled but the bars themselves.

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
