"""HTML that cannot be broken by what stands in a log: every text is escaped unless it is `Markup` already."""

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

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
