"""The tables of an audit: every module of `spark_replay.tables`, in the order of `AuditTable.place`.

Offsets in the tables are log offsets and inclusive unless a column says exclusive; `*_ms` are milliseconds since the
epoch; uuids are in Kafka's text form. Every table begins with `source`, the log it came from.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Final

from kquorum.spark_replay import tables
from kquorum.spark_replay.tables.building.audit_table import AuditTable


def tables_of(package: ModuleType) -> dict[str, AuditTable]:
    """The TABLE of each module of `package`, by the module's name. Raises TypeError for a module without one, and
    ValueError if two tables have the same place."""
    found: dict[str, AuditTable] = {}
    for module in iter_modules(package.__path__):
        if module.ispkg:
            continue
        table = getattr(import_module(f"{package.__name__}.{module.name}"), "TABLE", None)
        if not isinstance(table, AuditTable):
            raise TypeError(f"{package.__name__}.{module.name} declares no TABLE = AuditTable(...)")
        found[module.name] = table
    ordered = dict(sorted(found.items(), key=lambda item: item[1].place))
    names_by_place: dict[int, str] = {}
    for name, table in ordered.items():
        if other := names_by_place.get(table.place):
            raise ValueError(f"the tables {other} and {name} have the same place, {table.place}")
        names_by_place[table.place] = name
    return ordered


TABLES: Final[Mapping[str, AuditTable]] = tables_of(tables)
# What the pass over the files writes, by kind of row.
SCANNED: Final[Mapping[str, str]] = {
    table.row_kind: name for name, table in TABLES.items() if table.row_kind is not None
}
