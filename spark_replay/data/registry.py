"""The tables of the partitions' logs: every module of `spark_replay.data.tables`, in the order of `DataTable.place`."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from kquorum.spark_replay.data import tables
from kquorum.spark_replay.data.data_table import DataTable


def _found() -> dict[str, DataTable]:
    found: dict[str, DataTable] = {}
    for module in iter_modules(tables.__path__):
        table = getattr(import_module(f"{tables.__name__}.{module.name}"), "TABLE", None)
        if not isinstance(table, DataTable):
            raise TypeError(f"{tables.__name__}.{module.name} declares no TABLE = DataTable(...)")
        found[module.name] = table
    return dict(sorted(found.items(), key=lambda item: item[1].place))


DATA_TABLES: Final[Mapping[str, DataTable]] = _found()
