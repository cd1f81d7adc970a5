"""Queries that come from a prompt or from the standard input."""

from pathlib import Path

import pytest

from kquorum.cli.commands.audit.questions.sql_prompt import history_file, queries_in, words_for


def test_a_query_ends_with_a_semicolon_at_the_end_of_a_line() -> None:
    lines = ["SELECT 1;\n", "SELECT ';'\n", "  FROM a; \n", "\n", "SELECT 3"]
    assert list(queries_in(lines)) == ["SELECT 1;\n", "SELECT ';'\n  FROM a; \n", "\nSELECT 3"]
    assert list(queries_in(["SELECT 1;\n", "\n"])) == ["SELECT 1;\n"]


def test_tables_and_their_columns_are_completed() -> None:
    words = words_for({"brokers": ["source", "broker_id"], "topics": ["source"]})
    assert {"brokers", "broker_id", "SELECT"} <= set(words)
    assert words.count("source") == 1


def test_the_history_lies_in_the_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "kquorum" / "audit-sql-history"
