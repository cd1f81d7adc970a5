"""The runner notices what it is there to notice."""

from pathlib import Path

import pytest

from tests.scenarios.__main__ import main
from tests.scenarios.errors import ScenarioError
from tests.scenarios.runner import difference, rewrite, run_script
from tests.scenarios.script import read_script

SOLE_VOTER = """\
# A heading that stays.
cluster voters=1
start
----

# A comment that stays.
propose 1 x
expect committed x on 1
----
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "scenario.txt"
    path.write_text(text)
    return path


def test_rewriting_records_and_a_second_run_agrees(tmp_path: Path) -> None:
    path = written(tmp_path, SOLE_VOTER)
    assert rewrite(path)
    recorded = path.read_text()
    assert "1 appends 1@1 x\n1 high watermark 2\n" in recorded
    assert recorded.startswith("# A heading that stays.\n")
    assert "\n# A comment that stays.\n" in recorded
    assert difference(path) == ""
    assert not rewrite(path)


def test_an_edited_output_is_shown_as_a_diff(tmp_path: Path) -> None:
    path = written(tmp_path, SOLE_VOTER)
    rewrite(path)
    path.write_text(path.read_text().replace("1 high watermark 2", "1 high watermark 3"))
    found = difference(path)
    assert "-1 high watermark 3\n+1 high watermark 2" in found
    assert found.startswith("--- scenario.txt (recorded)\n+++ scenario.txt (now)")


def test_an_output_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    assert "+1 appends 1@1 x" in difference(written(tmp_path, SOLE_VOTER))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("cluster voters=1\nfly 1\n----\n", "scenario.txt:2", "unknown command 'fly'"),
        ("cluster voters=1\nstart\nexpect leader 2\n----\n", "scenario.txt:3", "expected the leader"),
        ("cluster voters=1\nstart\nexpect role 1 candidate\n----\n", "scenario.txt:3", "and it is leader"),
        ("cluster voters=1\nstart\nexpect joy\n----\n", "scenario.txt:3", "unknown expectation 'joy'"),
        ("cluster voters=1,2\nstart\ndrop 1->2 vote\n----\n", "scenario.txt:3", "no such message"),
        ("cluster voters=1 speed=9\n----\n", "scenario.txt:1", "not understood: speed=9"),
        ("cluster voters=1\nstart 2\n----\n", "scenario.txt:2", "there is no node 2"),
        ("# only a comment\ncluster voters=1\n", "scenario.txt:2", "commands without '----'"),
        ("cluster voters=1,2\nstart\nrequest 1 sing\n----\n", "scenario.txt:3", "unknown request 'sing'"),
    ],
)
def test_errors_say_where_and_what(tmp_path: Path, text: str, place: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError) as raised:
        run_script(read_script(path))
    assert place in str(raised.value)
    assert message in str(raised.value)


def test_a_failed_expectation_shows_what_came_before(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster voters=1\nstart\nexpect leader 2\n----\n")
    with pytest.raises(ScenarioError, match="1 becomes leader in epoch 1"):
        run_script(read_script(path))


def test_nothing_is_recorded_over_a_failed_expectation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "cluster voters=1\nstart\nexpect leader 2\n----\n"
    path = written(tmp_path, text)
    monkeypatch.setattr("sys.argv", ["scenarios", "--rewrite", str(path)])
    assert main() == 1
    assert path.read_text() == text
    assert "scenario.txt:3" in capsys.readouterr().err


def test_two_leaders_in_one_epoch_fail_without_being_expected(tmp_path: Path) -> None:
    """Votes made by hand elect a second leader of epoch 1, as only a broken voter could."""
    text = (
        "cluster voters=1,2,3\nstart\nelect 1\ncrash 2\ngiven 2 wiped=yes\npartition 1,3|2\nstart 2\ntimeout 2\n"
        "----\n\n"
    )
    path = written(tmp_path, text)
    run_script(read_script(path))
    path.write_text(
        text.replace("partition 1,3|2\n", "").replace(
            "----\n\n",
            "answer 2->3 prevote granted=yes leader=-1 epoch=0\nanswer 2->3 vote granted=yes leader=-1\n----\n",
        )
    )
    with pytest.raises(ScenarioError, match=r"unsafe: nodes \[1, 2\] led epoch 1"):
        run_script(read_script(path))
