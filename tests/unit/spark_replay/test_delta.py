"""Which Delta fits which Spark is said before Spark starts; the tables themselves where Delta is installed."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pyspark
import pytest

from cli.main import run
from spark_replay.delta import DeltaMissing, delta_settings, forget
from tests.support.sample_logs import write_sample


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Versions of delta-spark and of pyspark, and what the first wants of the second."""

    def install(version: str, wanted: str, pyspark_version: str) -> None:
        monkeypatch.setattr(metadata, "version", lambda name: version)
        monkeypatch.setattr(metadata, "requires", lambda name: [wanted, "importlib_metadata>=1.0.0"])
        monkeypatch.setattr(pyspark, "__version__", pyspark_version)
        monkeypatch.setattr("spark_replay.delta._jars_are_there", lambda: True)

    return install


@pytest.mark.parametrize(
    ("wanted", "pyspark_version", "fits"),
    [
        ("pyspark<4.1,>=4.0.0", "4.0.0", True),
        ("pyspark<4.1,>=4.0.0", "4.0.2", True),
        ("pyspark<4.1,>=4.0.0", "4.1.0", False),
        ("pyspark<4.1,>=4.0.0", "3.5.6", False),
        ("pyspark<=4.2.0,>=4.0.1", "4.2.0", True),
        ("pyspark<=4.2.0,>=4.0.1", "4.3.0", False),
        ("pyspark (==4.3.0)", "4.3", True),
        ("pyspark!=4.3.0", "4.3.0", False),
    ],
)
def test_a_delta_that_is_made_for_another_spark_is_refused(
    installed: Callable[[str, str, str], None], wanted: str, pyspark_version: str, fits: bool
) -> None:
    installed("4.4.1", wanted, pyspark_version)
    if fits:
        assert delta_settings()["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
        return
    with pytest.raises(DeltaMissing, match=f"delta-spark 4.4.1 is made for .*pyspark is {pyspark_version}"):
        delta_settings()


def test_without_the_package_the_remedy_is_said_in_one_line_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr("cli.audit.build_run.check_java", lambda: None)
    monkeypatch.setattr("cli.audit.spark.check_java", lambda: None)
    log = write_sample(tmp_path / "sample")
    assert run(["audit", "build", str(log), "--out", str(tmp_path / "out"), "--format", "delta"]) == 7
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "pip install delta-spark" in error
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".kquorum-audit"]


def test_what_delta_left_is_gone_before_tables_are_replaced(tmp_path: Path) -> None:
    for name in ("records/_delta_log", "topics/_delta_log", "topics/source=a"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "audit.json").touch()
    forget(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["records", "source=a", "topics"]
