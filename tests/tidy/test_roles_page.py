"""docs/raft-roles.md is what the code's own table of transitions says."""

import re
from dataclasses import dataclass
from typing import Literal

from kquorum.raft import roles
from tools import render_roles

_PICTURE_LINE = re.compile(r'    (\[\*\]|[a-z]+) --> [a-z]+ : [^:;#\n]+|    state "any role" as any')


def picture_of(page: str) -> list[str]:
    return page.split("```mermaid\n")[1].split("\n```", maxsplit=1)[0].splitlines()


def test_the_page_is_fresh() -> None:
    page = render_roles.PAGE.read_text() if render_roles.PAGE.is_file() else ""
    assert page == render_roles.render(roles.TRANSITIONS), "run 'python -m tools.render_roles'"


def test_the_page_knows_every_role_of_the_code() -> None:
    rendered = {role.__name__.lower() for role in render_roles.ROLES}
    assert rendered == set(roles.ROLES)
    assert set(render_roles.ROLES) == set(roles.Role.__args__)


def test_every_legal_move_is_in_the_table_the_matrix_and_the_picture() -> None:
    page = render_roles.render(roles.TRANSITIONS)
    picture = picture_of(page)
    for move in roles.TRANSITIONS:
        assert f"| {move.source} | {move.target} | {move.epoch} |" in page
        arrows = (f"    {move.source} --> {move.target} : ", f"    any --> {move.target} : ")
        assert any(line.startswith(arrows) for line in picture), move
    matrix = page.split("## At a glance")[1]
    epochs = re.findall(r"\b(?:same|higher)\b", matrix)
    assert len(epochs) == len(roles.TRANSITIONS), "one entry for each move and none besides"


def test_the_picture_is_one_that_mermaid_can_draw() -> None:
    head, *lines = picture_of(render_roles.render(roles.TRANSITIONS))
    assert head == "stateDiagram-v2"
    assert [line for line in lines if not _PICTURE_LINE.fullmatch(line)] == []


@dataclass(frozen=True)
class Move:
    source: str
    target: str
    epoch: Literal["same", "higher"]
    trigger: str


def test_a_trigger_cannot_break_the_picture_or_the_table() -> None:
    page = render_roles.render([Move("leader", "resigned", "same", "a: b; #1 | c")])
    assert "    leader --> resigned : a - b, no. 1 | c" in page
    assert "| leader | resigned | same | a: b; #1 \\| c |" in page
