"""The tables of an audit as Delta tables, where the package `delta-spark` is installed and made for this Spark.

An audit is written as Parquet and then converted in place: Delta adds its log to the files that are there.
Delta's own code is in jars that the package lacks. Spark gets them from a folder, each checked against the SHA-256 that
is listed here, and is never asked to fetch any.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from kquorum.spark_replay.audit_manifest import read_manifest, remove_manifest, write_manifest
from kquorum.spark_replay.tables.building.registry import TABLES

DELTA: Final = "delta"
_EXTENSIONS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta's own state of a small table: 50 tasks for each of 17 tables would be most of the time.
    "spark.databricks.delta.snapshotPartitions": "1",
}
# Their jars were made for it; the packages themselves allow every later one.
_SPARK: Final = "4.0"
_BOUND: Final = re.compile(r"(<=|>=|==|!=|<|>)\s*([\d.]+)")


class DeltaMissing(Exception):
    """Delta tables can be neither written nor read here; the message names what to install."""


@dataclass(frozen=True, slots=True)
class DeltaJar:
    """A jar of Delta's: where a Maven repository has it, and its checksum."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Of its file."""
        return self.path.rpartition("/")[2]

    @property
    def coordinates(self) -> str:
        """Its name in Maven: group, artifact and version."""
        *group, artifact, version, _ = self.path.split("/")
        return f"{'.'.join(group)}:{artifact}:{version}"


# By the version of delta-spark. Spark itself brings what they need besides (Scala, ANTLR).
JARS: Final[dict[str, tuple[DeltaJar, ...]]] = {
    "4.0.0": (
        DeltaJar(
            "io/delta/delta-spark_2.13/4.0.0/delta-spark_2.13-4.0.0.jar",
            "538511702aae0ef6973a6a70af3d4543c9009f8edbed786a00737e2d3cd7f04e",
        ),
        DeltaJar(
            "io/delta/delta-storage/4.0.0/delta-storage-4.0.0.jar",
            "9bdb9fb450f1e119eba53feb427f331b0d09072d26485b8273883ad72c9a2e1d",
        ),
    ),
    "4.0.1": (
        DeltaJar(
            "io/delta/delta-spark_2.13/4.0.1/delta-spark_2.13-4.0.1.jar",
            "a1e76860b19fe1e6b205a4ea7a9099a2f9575d39bb71d49b3e679b299d0efb91",
        ),
        DeltaJar(
            "io/delta/delta-storage/4.0.1/delta-storage-4.0.1.jar",
            "ecc42c5aaa51c423312d9e4e48aa4a12b34740bf2c37de0e8f279277ec3d12e4",
        ),
    ),
}


def delta_settings(folder: Path) -> dict[str, str]:
    """What a Spark session needs for Delta tables, with Delta's jars from `folder` unless they lie among Spark's own.
    Raises DeltaMissing."""
    jars = delta_jars()
    missing = [jar for jar in jars if not (folder / jar.name).is_file()]
    if missing:
        raise DeltaMissing(
            f"Delta tables need {_listed(jar.name for jar in missing)} in {folder}: put them there (Maven Central has "
            f"them as {_listed(jar.coordinates for jar in missing)}), or let `kquorum audit build --format delta "
            "--fetch-jars` fetch them"
        )
    for jar in jars:
        check_jar(jar, (folder / jar.name).read_bytes(), str(folder / jar.name))
    if not jars:
        return dict(_EXTENSIONS)
    return {**_EXTENSIONS, "spark.jars": ",".join((folder / jar.name).resolve().as_uri() for jar in jars)}


def check_jar(jar: DeltaJar, content: bytes, place: str) -> None:
    """Raises DeltaMissing where the content, which is from `place`, is not the jar's."""
    if hashlib.sha256(content).hexdigest() != jar.sha256:
        raise DeltaMissing(f"{place} is not the jar with the SHA-256 {jar.sha256}: remove or replace it")


def delta_jars() -> tuple[DeltaJar, ...]:
    """The jars that Spark needs for Delta tables; none if Spark has them already. Raises DeltaMissing if the package is
    not installed, does not fit, or has jars that are not listed here."""
    try:
        version = metadata.version("delta-spark")
    except metadata.PackageNotFoundError:
        raise DeltaMissing(
            f"Delta tables need the package delta-spark in the version made for pyspark {pyspark.__version__}: "
            "pip install delta-spark"
        ) from None
    _check_fits(version)
    if _jars_are_there():
        return ()
    if version not in JARS:
        raise DeltaMissing(
            f"the jars of delta-spark {version} are not listed here with their checksums: install one of "
            f"{', '.join(JARS)} with pyspark {_SPARK}, or put its jars into {_spark_jars()}"
        )
    if _number(pyspark.__version__)[:2] != _number(_SPARK):
        raise DeltaMissing(
            f"the jars of delta-spark {version} are made for pyspark {_SPARK}, and pyspark is "
            f"{pyspark.__version__}: install a pair that fits"
        )
    return JARS[version]


def convert(
    spark: SparkSession,
    folder: Path,
    *,
    progress: Callable[[str], None] = lambda name: None,  # noqa: ARG005
) -> None:
    """Make Delta tables of the Parquet tables of a finished audit, and say so in its manifest.

    `progress` gets the name of each.
    """
    manifest = read_manifest(folder)
    remove_manifest(folder)
    for name in manifest.rows:
        progress(name)
        _convert_table(spark, folder / name, name)
    write_manifest(folder, replace(manifest, table_format=DELTA))


def forget(folder: Path) -> None:
    """Make plain folders of what Delta tables an earlier audit left, before they are written again as Parquet."""
    logs = [log for name in TABLES if (log := folder / name / "_delta_log").is_dir()]
    if logs:
        remove_manifest(folder)
    for log in logs:
        shutil.rmtree(log)


def _convert_table(spark: SparkSession, folder: Path, name: str) -> None:
    if not any(folder.rglob("*.parquet")):
        spark.createDataFrame([], TABLES[name].schema).write.format(DELTA).mode("overwrite").save(str(folder))
        return
    columns = _partition_columns(folder)
    schema = ", ".join(f"{each} {TABLES[name].schema[each].dataType.simpleString()}" for each in columns)
    identifier = "parquet.`" + str(folder.resolve()).replace("`", "``") + "`"
    import_module("delta.tables").DeltaTable.convertToDelta(spark, identifier, *([schema] if columns else []))


def _partition_columns(folder: Path) -> list[str]:
    """The columns that the table's folders are named by (`source=...`)."""
    inside = [path for path in folder.iterdir() if path.is_dir() and "=" in path.name]
    if not inside:
        return []
    return [inside[0].name.partition("=")[0], *_partition_columns(inside[0])]


def _check_fits(version: str) -> None:
    """The package says for which versions of pyspark its jars were made; pip does not insist."""
    wanted = [each for each in metadata.requires("delta-spark") or [] if each.startswith("pyspark")]
    here = _number(pyspark.__version__)
    for bound in wanted:
        for sign, limit in _BOUND.findall(bound):
            if not _holds(here, sign, _number(limit)):
                raise DeltaMissing(
                    f"delta-spark {version} is made for {bound}, and pyspark is {pyspark.__version__}: install a pair "
                    "that fits"
                )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _holds(here: tuple[int, ...], sign: str, limit: tuple[int, ...]) -> bool:
    size = max(len(here), len(limit))
    left, right = ((*each, *[0] * (size - len(each))) for each in (here, limit))
    return {
        "<=": left <= right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
    }[sign]


def _jars_are_there() -> bool:
    return any(_spark_jars().glob("delta-spark_*.jar"))


def _spark_jars() -> Path:
    return Path(pyspark.__file__).parent / "jars"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names)
