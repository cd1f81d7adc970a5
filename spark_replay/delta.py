"""The tables of an audit as Delta tables, where the package `delta-spark` is installed and made for this Spark.

An audit is written as Parquet and then converted in place: Delta adds its log to the files that are there.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from spark_replay.audit_folder import read_manifest, remove_manifest, write_manifest
from spark_replay.schemas import TABLES

DELTA: Final = "delta"
_EXTENSIONS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta's own state of a small table: 50 tasks for each of 17 tables would be most of the time.
    "spark.databricks.delta.snapshotPartitions": "1",
}
_BOUND: Final = re.compile(r"(<=|>=|==|!=|<|>)\s*([\d.]+)")


class DeltaMissing(Exception):
    """Delta tables can be neither written nor read here; the message says what to install."""


def delta_settings() -> dict[str, str]:
    """What a Spark session needs for Delta tables. Raises DeltaMissing.

    Delta's jars come from Maven Central when the session starts, unless they lie among Spark's own jars.
    """
    try:
        version = metadata.version("delta-spark")
    except metadata.PackageNotFoundError:
        raise DeltaMissing(
            f"Delta tables need the package delta-spark in the version made for pyspark {pyspark.__version__}: "
            "pip install delta-spark"
        ) from None
    _check_fits(version)
    if _jars_are_there():
        return dict(_EXTENSIONS)
    return {**_EXTENSIONS, "spark.jars.packages": _coordinates()}


def convert(
    spark: SparkSession,
    folder: Path,
    *,
    progress: Callable[[str], None] = lambda name: None,  # noqa: ARG005
) -> None:
    """Make Delta tables of the Parquet tables of a finished audit, and say so in its manifest.

    `progress` is told the name of each.
    """
    manifest = read_manifest(folder)
    remove_manifest(folder)
    for name in manifest.rows:
        progress(name)
        _convert_table(spark, folder / name, name)
    write_manifest(folder, replace(manifest, table_format=DELTA))


def forget(folder: Path) -> None:
    """Make plain folders of what Delta tables an earlier audit left, before they are written anew as Parquet."""
    logs = [log for name in TABLES if (log := folder / name / "_delta_log").is_dir()]
    if logs:
        remove_manifest(folder)
    for log in logs:
        shutil.rmtree(log)


def _convert_table(spark: SparkSession, folder: Path, name: str) -> None:
    if not any(folder.rglob("*.parquet")):
        spark.createDataFrame([], TABLES[name]).write.format(DELTA).mode("overwrite").save(str(folder))
        return
    columns = _partition_columns(folder)
    schema = ", ".join(f"{each} {TABLES[name][each].dataType.simpleString()}" for each in columns)
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
    jars = Path(pyspark.__file__).parent / "jars"
    return any(jars.glob("delta-spark_*.jar"))


def _coordinates() -> str:
    """Of the jars in Maven Central; the package knows under which name they were published for this Spark."""
    builder = import_module("delta").configure_spark_with_delta_pip(SparkSession.Builder())
    options: dict[str, str] = builder._options
    return options["spark.jars.packages"]
