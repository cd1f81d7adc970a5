"""Small pieces of HTML. Whatever comes from a run goes through `text`, `attribute` or `data`: none of it is markup."""

import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.jepsen.checkers.verdicts import Verdict

ASSETS = Path(__file__).with_name("assets")
INCOMPLETE = "incomplete"


def text(value: Any) -> str:
    return html.escape(str(value), quote=True)


def link(path: str, shown: Any = None) -> str:
    return f'<a href="{text(quote(path))}">{text(path if shown is None else shown)}</a>'


def data(value: Any) -> str:
    """JSON that may stand inside of a script element: nothing in it can end the element."""
    plain = json.dumps(value, separators=(",", ":"), default=str)
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def verdict_badge(verdict: Verdict | None) -> str:
    word = INCOMPLETE if verdict is None else verdict.value
    return f'<span class="verdict {word}">{word}</span>'


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Cells are markup already; heads are not."""
    head = "".join(f"<th>{text(each)}</th>" for each in heads)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<div class="wide"><table>{top}<tbody>\n{body}\n</tbody></table></div>'


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """One file that asks nothing of any network."""
    code = f"<script>\n{script}\n</script>" if script else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{text(title)}</title>\n'
        f"<style>\n{asset('page.css')}\n{style}</style>\n</head>\n<body>\n{body}\n{code}\n</body>\n</html>\n"
    )
