"""docs/audit-tables.md says what the schemas say, and no column goes without a meaning."""

from collections.abc import Iterator

from pyspark.sql.types import ArrayType, StructField, StructType

from kquorum.spark_replay.tables.building.registry import TABLES
from tools import render_audit_tables


def fields_of(schema: StructType) -> Iterator[StructField]:
    for field in schema.fields:
        yield field
        inner = field.dataType.elementType if isinstance(field.dataType, ArrayType) else field.dataType
        if isinstance(inner, StructType):
            yield from fields_of(inner)


def test_the_page_is_fresh() -> None:
    page = render_audit_tables.PAGE.read_text() if render_audit_tables.PAGE.is_file() else ""
    assert page == render_audit_tables.render(), "run 'python -m tools.render_audit_tables'"


def test_every_column_says_what_it_means() -> None:
    dumb = [
        f"{name}.{field.name}"
        for name, table in TABLES.items()
        for field in fields_of(table.schema)
        if len(field.metadata.get("comment", "")) < 4 or "|" in field.metadata["comment"]
    ]
    assert dumb == []
