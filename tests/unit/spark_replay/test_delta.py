"""Which Delta fits which Spark, and which jars it needs, is said before Spark starts; the tables themselves where Delta
is installed."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pyspark
import pytest

from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.spark_replay.delta import JARS, DeltaJar, DeltaMissing, delta_jars, delta_settings, forget
from tests.support.sample_logs import write_sample


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Versions of delta-spark and of pyspark, and what the first wants of the second."""

    def install(version: str, wanted: str, pyspark_version: str) -> None:
        monkeypatch.setattr(metadata, "version", lambda name: version)
        monkeypatch.setattr(metadata, "requires", lambda name: [wanted, "importlib_metadata>=1.0.0"])
        monkeypatch.setattr(pyspark, "__version__", pyspark_version)
        monkeypatch.setattr("kquorum.spark_replay.delta._jars_are_there", lambda: True)

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
        assert (
            delta_settings(Path("no folder"))["spark.sql.extensions"]
            == "io.delta.sql.DeltaSparkSessionExtension"
        )
        return
    with pytest.raises(DeltaMissing, match=f"delta-spark 4.4.1 is made for .*pyspark is {pyspark_version}"):
        delta_settings(Path("no folder"))


def test_without_the_package_the_remedy_is_said_in_one_line_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr("kquorum.cli.commands.audit.build.check_java", lambda: None)
    monkeypatch.setattr("kquorum.cli.commands.audit.spark.check_java", lambda: None)
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


class _Registry(SimpleHTTPRequestHandler):
    """A registry of jars that remembers what was asked for."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Delta 4.0.1 and Spark 4.0.1 are installed, with two jars that a server has. Gives what the server is asked."""
    jars = []
    for name in ("delta-spark", "delta-storage"):
        path = f"io/delta/{name}/4.0.1/{name}-4.0.1.jar"
        (tmp_path / "central" / path).parent.mkdir(parents=True)
        (tmp_path / "central" / path).write_bytes(name.encode())
        jars.append(DeltaJar(path, hashlib.sha256(name.encode()).hexdigest()))
    monkeypatch.setattr(metadata, "version", lambda name: "4.0.1")
    monkeypatch.setattr(metadata, "requires", lambda name: ["pyspark (>=4.0.0)"])
    monkeypatch.setattr(pyspark, "__version__", "4.0.1")
    monkeypatch.setattr("kquorum.spark_replay.delta._jars_are_there", lambda: False)
    monkeypatch.setitem(JARS, "4.0.1", tuple(jars))
    monkeypatch.setattr("kquorum.cli.commands.audit.build.check_java", lambda: None)
    monkeypatch.setattr("kquorum.cli.commands.audit.spark.check_java", lambda: None)
    monkeypatch.setenv("KQUORUM_DELTA_JARS", str(tmp_path / "jars"))
    asked: list[str] = []
    handler = type("Handler", (_Registry,), {"asked": asked})
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(handler, directory=str(tmp_path / "central"))
    ) as server:
        monkeypatch.setattr(
            "kquorum.cli.commands.audit.spark.CENTRAL", f"http://127.0.0.1:{server.server_port}"
        )
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield asked
        server.shutdown()
        serving.join()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The settings with which Spark would have been started; it is not, and the command fails there."""
    seen: list[dict[str, str]] = []

    def start(*args: object, settings: dict[str, str], **others: object) -> None:
        seen.append(settings)
        raise CliError("Spark would start here")

    monkeypatch.setattr("kquorum.cli.commands.audit.spark.start_session", start)
    return seen


def built(tmp_path: Path, *options: str) -> int:
    log = tmp_path / "sample"
    if not log.exists():
        write_sample(log)
    return run(["audit", "build", str(log), "--out", str(tmp_path / "out"), *options])


def test_without_the_option_no_jar_is_fetched_and_the_message_names_them(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    registry: list[str],
    started: list[dict[str, str]],
) -> None:
    assert built(tmp_path, "--format", "delta") == 7
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for part in (
        "delta-spark-4.0.1.jar and delta-storage-4.0.1.jar",
        f"in {tmp_path / 'jars'}",
        "io.delta:delta-spark:4.0.1 and io.delta:delta-storage:4.0.1",
        "--fetch-jars",
    ):
        assert part in error
    assert registry == []
    assert started == []


def test_with_the_option_the_jars_are_fetched_once_and_spark_gets_them_from_the_folder(
    tmp_path: Path, registry: list[str], started: list[dict[str, str]]
) -> None:
    assert built(tmp_path, "--format", "delta", "--fetch-jars") == 1
    fetched = sorted((tmp_path / "jars").iterdir())
    assert [path.read_bytes() for path in fetched] == [b"delta-spark", b"delta-storage"]
    assert len(registry) == 2
    assert started[0]["spark.jars"] == ",".join(path.as_uri() for path in fetched)
    assert not [key for key in started[0] if "packages" in key]
    assert built(tmp_path, "--format", "delta") == 1
    assert len(registry) == 2
    assert started[1] == started[0]


def test_a_jar_that_is_not_the_one_with_the_checksum_is_not_kept(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    registry: list[str],
    started: list[dict[str, str]],
) -> None:
    jar = tmp_path / "central" / JARS["4.0.1"][1].path
    jar.write_bytes(b"another")
    assert built(tmp_path, "--format", "delta", "--fetch-jars") == 1
    error = capsys.readouterr().err
    assert jar.name in error
    assert JARS["4.0.1"][1].sha256 in error
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["delta-spark-4.0.1.jar"]
    assert started == []


def test_a_jar_of_the_folder_is_checked_before_spark_gets_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    registry: list[str],
    started: list[dict[str, str]],
) -> None:
    assert built(tmp_path, "--format", "delta", "--fetch-jars") == 1
    changed = tmp_path / "jars" / "delta-storage-4.0.1.jar"
    changed.write_bytes(b"another")
    capsys.readouterr()
    assert built(tmp_path, "--format", "delta") == 7
    assert f"{changed} is not the jar with the SHA-256" in capsys.readouterr().err
    assert len(started) == 1


def test_a_registry_that_does_not_have_the_jar_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], registry: list[str]
) -> None:
    jar = JARS["4.0.1"][0].path
    (tmp_path / "central" / jar).unlink()
    assert built(tmp_path, "--format", "delta", "--fetch-jars") == 6
    error = capsys.readouterr().err
    assert error.count("error: ") == 1
    assert f"/{jar} cannot be fetched" in error


def test_jars_are_fetched_for_delta_tables_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], registry: list[str]
) -> None:
    assert built(tmp_path, "--fetch-jars") == 2
    assert "--fetch-jars is for --format delta" in capsys.readouterr().err
    assert registry == []


def test_a_release_of_delta_whose_jars_are_not_listed_is_refused(
    registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "4.9.9")
    with pytest.raises(DeltaMissing, match=r"delta-spark 4\.9\.9 .* 4\.0\.0, 4\.0\.1"):
        delta_jars()


def test_jars_made_for_another_spark_are_refused_though_the_package_allows_it(
    registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    with pytest.raises(DeltaMissing, match=r"made for pyspark 4\.0, and pyspark is 4\.3\.0"):
        delta_jars()


def test_each_listed_jar_has_a_place_and_a_checksum() -> None:
    assert JARS
    for version, jars in JARS.items():
        assert {jar.path.split("/")[2].partition("_")[0] for jar in jars} == {"delta-spark", "delta-storage"}
        for jar in jars:
            assert jar.path.endswith(f"/{version}/{jar.name}")
            assert len(bytes.fromhex(jar.sha256)) == 32
