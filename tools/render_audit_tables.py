"""Write docs/audit-tables.md from the schemas: `python -m tools.render_audit_tables`. A test holds it fresh."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from kquorum.spark_replay.data.data_table import DataTable
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.registry import TABLES

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "audit-tables.md"

_HEAD = """\
# The tables of an audit

Written by `python -m tools.render_audit_tables` from the modules of `spark_replay/tables`; change those, not this page.

`kquorum audit DIR --out OUT` writes each of these as a folder of Parquet files, with the meanings below as comments of
the columns. Offsets are log offsets and inclusive unless a column says exclusive; `*_ms` are milliseconds since the
epoch (UTC); uuids are in Kafka's text form. Every table begins with `source`, as one audit may read several logs.

Tables called `..._history` hold intervals. What held at offset N, and what held at a time:

```sql
SELECT * FROM partition_history WHERE valid_from_offset <= N AND coalesce(valid_to_offset > N, true);
SELECT * FROM partition_history WHERE valid_from <= T AND coalesce(valid_to > T, true);
```

Where the log no longer begins at offset 0, the state begins with the oldest whole snapshot that the log goes on from:
its rows have the offset of the last record in the snapshot, and no `batch_base_offset`. Records of metadata
transactions that were aborted, or are still open, are in `records` and in no table of the state.

`brokers` and `topics` are the state at the end of the log; `brokers_history` and `topics_history` tell how it came
about.
"""


_DATA_HEAD = """
# The tables of the partitions' logs

Written from the modules of `spark_replay/data/tables`. `kquorum audit data LOGDIR... --out OUT` writes these, into a
folder of their own or beside the tables above. `source` is the log directory of a broker: several replicas of one
partition lie side by side.
"""


def render() -> str:
    return "\n".join([_HEAD, *_pages(TABLES), _DATA_HEAD, *_pages(DATA_TABLES)]) + "\n"


def _pages(tables: Mapping[str, AuditTable] | Mapping[str, DataTable]) -> Iterator[str]:
    yield "| table | what it holds |\n|---|---|"
    yield from (f"| [`{name}`](#{name}) | {table.description} |" for name, table in tables.items())
    for name, table in tables.items():
        yield f"\n## {name}\n\n{table.description}\n\n| column | type | meaning |\n|---|---|---|"
        yield from (line for field in table.schema.fields for line in _lines(field, ""))


def _lines(field: StructField, prefix: str) -> Iterator[str]:
    """A column, and the fields of the structures in it."""
    name = prefix + field.name
    yield f"| `{name}` | {_type(field.dataType)} | {field.metadata['comment']} |"
    inner, path = field.dataType, name
    if isinstance(inner, ArrayType):
        inner, path = inner.elementType, f"{name}[]"
    if isinstance(inner, StructType):
        for each in inner.fields:
            yield from _lines(each, f"{path}.")


def _type(data_type: DataType) -> str:
    if isinstance(data_type, ArrayType):
        return f"array of {_type(data_type.elementType)}"
    return str(data_type.typeName())


def main() -> int:
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
