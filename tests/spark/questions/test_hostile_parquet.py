"""Parquet files of audit tables that another program wrote or damaged: a question answers or fails with one line."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquorum.cli.main import run
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def garbage(path: Path) -> None:
    path.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def other_types(path: Path) -> None:
    table = pq.read_table(path)
    columns = {name: pa.array([[{"a": "x" * 1_000}]] * table.num_rows) for name in table.column_names}
    pq.write_table(pa.table(columns), path)


FORGERIES: dict[str, Callable[[Path], None]] = {"garbage": garbage, "empty": emptied, "types": other_types}


@pytest.mark.slow
@pytest.mark.usefixtures("shared_session")
def test_hostile_parquet_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "made"
    assert run(["audit", "build", str(write_sample(tmp_path / "log", torn=False)), "--out", str(made)]) in (
        0,
        3,
    )
    for name, forge in FORGERIES.items():
        shutil.copytree(made, tmp_path / name)
        for path in (tmp_path / name).rglob("*.parquet"):
            forge(path)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        for question in (("as-of",), ("who",), ("unavailable",)):
            capsys.readouterr()
            status = run(["audit", question[0], str(tmp_path / name)])
            captured = capsys.readouterr()
            # Spark takes a file without bytes for one without rows.
            assert status != 0 or forge is emptied, name
            told = [line for line in captured.err.splitlines() if line.startswith("error: ")]
            assert len(told) == (status != 0), captured.err
            assert "internal error" not in captured.err
            assert "Traceback" not in captured.err
            assert len(captured.err) < 4_000
