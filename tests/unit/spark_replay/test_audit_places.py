"""Which paths Spark is given, which files count as a table's, and which version a stream shows next."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquorum.spark_replay.audit_manifest import shown_files
from kquorum.spark_replay.folder_lock import FolderTaken, locked
from kquorum.spark_replay.stream.log_stream import LogStream
from kquorum.spark_replay.stream.refresh import _next_version
from kquorum.spark_replay.stream.state import NoStream, StreamState, stream_folder, write_state
from kquorum.spark_replay.table_files import hadoop_path
from tests.support.sample_logs import write_sample


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("q[1]", r"q\[1\]"),
        ("a{b,c}*?", r"a\{b,c\}\*\?"),
        ("b\\c", r"b\\c"),
        ("my audit %20#ü", "my audit %20#ü"),
    ],
)
def test_signs_of_a_pattern_are_escaped(name: str, told: str) -> None:
    assert hadoop_path(Path("/x") / name) == f"/x/{told}"


def test_hidden_files_are_no_tables(tmp_path: Path) -> None:
    for name in ("a.parquet", ".b.parquet", "source=x/.c.parquet", "source=x/d.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in shown_files(tmp_path)] == ["a.parquet"]
    assert sorted(path.name for path in shown_files(tmp_path, is_deep=True)) == ["a.parquet", "d.parquet"]


def test_a_version_that_is_shown_is_not_made_again(tmp_path: Path) -> None:
    state = StreamState(input="log", version=1)
    (stream_folder(tmp_path) / "versions").mkdir(parents=True)
    assert _next_version(tmp_path, state) == 2
    (stream_folder(tmp_path) / "versions" / "2").mkdir()
    assert _next_version(tmp_path, state) == 3
    (stream_folder(tmp_path) / "now").symlink_to(Path("versions") / "7")
    assert _next_version(tmp_path, state) == 8


def test_a_lock_is_one_holders(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"), pytest.raises(FolderTaken), locked(tmp_path / "lock"):
        pass
    with locked(tmp_path / "lock"):
        pass


def test_a_stream_that_lost_its_state_reads_nothing_and_says_so(tmp_path: Path) -> None:
    commits = stream_folder(tmp_path) / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()
    stream = LogStream(cast("Any", None), write_sample(tmp_path / "log"), tmp_path)
    with pytest.raises(NoStream, match=r"has lost its state\.json"):
        stream.read()


def test_the_checkpoint_lies_in_the_folder_whatever_its_name(tmp_path: Path) -> None:
    out = tmp_path / "my audit %#ü"
    options = dict[str, str]()
    stream = LogStream(cast("Any", _spark(options)), write_sample(tmp_path / "log"), out)
    write_state(out, StreamState(input=str(tmp_path / "log")))
    stream._query(availableNow=True)
    assert options["checkpointLocation"] == str(stream_folder(out) / "checkpoint")


def _spark(options: dict[str, str]) -> Any:
    """A session whose streams only take down their options."""
    fluent: Any = SimpleNamespace(
        register=lambda source: None,
        format=lambda name: fluent,
        load=lambda path: fluent,
        foreachBatch=lambda write: fluent,
        trigger=lambda **when: fluent,
        start=lambda: fluent,
    )

    def option(name: str, value: str) -> Any:
        options[name] = value
        return fluent

    fluent.option = option
    fluent.writeStream = fluent
    return SimpleNamespace(dataSource=fluent, readStream=fluent)
