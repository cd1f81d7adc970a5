"""Histories in EDN, line for line, and read back by a small reader."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.jepsen.core.edn import Keyword, edn_of, register_value, version_value, write_history_edn
from tests.jepsen.core.history import NEMESIS, History, Op, OpType

TOKEN = re.compile(r'#\{|##?-?\w+|[\[\]{}]|"(?:\\.|[^"\\])*"|:[^\s,\[\]{}"]+|[^\s,\[\]{}"]+')
UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}
ATOMS = {"nil": None, "true": True, "false": False, "##Inf": math.inf, "##-Inf": -math.inf}
CLOSING = {"[": "]", "{": "}", "#{": "}"}


def read_edn(text: str) -> Any:
    """Of EDN what histories need; a keyword is a Keyword."""
    tokens = iter(TOKEN.findall(text))
    value = _value(next(tokens), tokens)
    assert next(tokens, None) is None, f"more than one value: {text}"
    return value


def _value(token: str, tokens: Iterator[str]) -> Any:
    if token in CLOSING:
        inside = list(_until(CLOSING[token], tokens))
        if token == "[":
            return inside
        return frozenset(inside) if token == "#{" else dict(zip(inside[::2], inside[1::2], strict=True))
    if token in ATOMS:
        return ATOMS[token]
    if token[0] == '"':
        return re.sub(r"\\(u....|.)", _unescaped, token[1:-1], flags=re.DOTALL)
    if token[0] == ":":
        return Keyword(token[1:])
    return int(token.removesuffix("N")) if re.fullmatch(r"-?\d+N?", token) else float(token)


def _until(closing: str, tokens: Iterator[str]) -> Iterator[Any]:
    for token in tokens:
        if token == closing:
            return
        yield _value(token, tokens)
    raise AssertionError(f"no {closing}")


def _unescaped(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found[1:], 16)) if len(found) == 5 else UNESCAPED[found]


def written(tmp_path: Path, *ops: Op, **more: Any) -> list[str]:
    write_history_edn(History(ops), tmp_path / "history.edn", **more)
    return (tmp_path / "history.edn").read_text(encoding="utf-8").splitlines()


def op(kind: OpType, f: str, value: Any, process: int = 0, **more: Any) -> Op:
    return Op(type=kind, f=f, value=value, process=process, time_ns=5, **more)


def test_an_operation_is_one_line_with_jepsens_keys(tmp_path: Path) -> None:
    lines = written(
        tmp_path,
        op(OpType.INVOKE, "read", None),
        op(OpType.OK, "read", {"key": "k", "version": 1, "value": [1, None, True]}, final=True, node=11),
        op(OpType.FAIL, "write-at", 'a "quoted"\nword', 7, error="timed out"),
    )
    assert lines == [
        "{:index 0, :type :invoke, :process 0, :f :read, :value nil, :time 5}",
        "{:index 1, :type :ok, :process 0, :f :read, :value "
        '{:key "k", :version 1, :value [1 nil true]}, :time 5, :node 11, :final true}',
        '{:index 2, :type :fail, :process 7, :f :write-at, :value "a \\"quoted\\"\\nword", :time 5, '
        ':error "timed out"}',
    ]


def test_the_nemesis_is_a_keyword_and_its_operations_are_info(tmp_path: Path) -> None:
    lines = written(
        tmp_path, op(OpType.INVOKE, "kill", None, NEMESIS), op(OpType.INFO, "kill", {"1": "killed"}, NEMESIS)
    )
    assert lines == [
        "{:index 0, :type :info, :process :nemesis, :f :kill, :value nil, :time 5}",
        '{:index 1, :type :info, :process :nemesis, :f :kill, :value {"1" "killed"}, :time 5}',
    ]


def test_registers_of_keys_have_tuples_as_knossos_wants_them(tmp_path: Path) -> None:
    lines = written(
        tmp_path,
        op(OpType.INVOKE, "read", {"key": "k"}, 0),
        op(OpType.OK, "read", {"key": "k", "value": 3}, 0),
        op(OpType.INVOKE, "cas", {"key": "k", "value": [3, 4]}, 0),
        op(OpType.INFO, "cas", None, 0),
        op(OpType.INFO, "kill", {"key": "k", "value": 1}, NEMESIS),
        value_of=register_value,
    )
    values = [read_edn(line)[Keyword("value")] for line in lines]
    assert values[:4] == [["k", None], ["k", 3], ["k", [3, 4]], None]
    assert values[4] == {Keyword("key"): "k", Keyword("value"): 1}, "the nemesis' values are its own"


def test_a_versioned_register_is_a_cas_register_of_its_version() -> None:
    asked = {"key": "k", "expected": 3, "value": "x"}
    assert version_value(op(OpType.INVOKE, "cas", asked)) == ["k", [3, 4]]
    assert version_value(op(OpType.OK, "cas", {**asked, "version": 5}), step=2) == ["k", [3, 5]]
    assert version_value(op(OpType.INVOKE, "read", {"key": "k"})) == ["k", None]
    assert version_value(op(OpType.OK, "read", {"key": "k", "version": 4, "value": "x"})) == ["k", 4]
    assert version_value(op(OpType.INFO, "read", None)) is None


def test_a_key_that_is_no_keyword_stays_what_it_is() -> None:
    assert edn_of({"a b": 1, "0": 2, 3: 4, "é": 5, "": 6}) == '{"a b" 1, "0" 2, 3 4, "é" 5, "" 6}'
    assert edn_of({"topic-0": 1, "valid?": 2}) == "{:topic-0 1, :valid? 2}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**63 - 1, "9223372036854775807"),
        (2**63, "9223372036854775808N"),
        (-(2**63), "-9223372036854775808"),
        (1.5, "1.5"),
        (math.inf, "##Inf"),
        (math.nan, "##NaN"),
        ("\x00\x1f\t", '"\\u0000\\u001f\\t"'),
        ('a\\"b', '"a\\\\\\"b"'),
        (frozenset({2, 1}), "#{1 2}"),
        ((), "[]"),
    ],
)
def test_each_kind_of_value_has_its_form(value: Any, text: str) -> None:
    assert edn_of(value) == text


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form"):
        edn_of([object()])


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    text = edn_of(value)
    assert "\n" not in text
    assert repr(read_edn(text)) == repr(value)
