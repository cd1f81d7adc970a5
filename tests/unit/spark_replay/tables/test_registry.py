"""Each module of `spark_replay.tables` is a table, which registers itself by declaring TABLE."""

from collections.abc import Callable, Mapping
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql.types import StructType

from kquorum.spark_replay import tables
from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import SOURCE
from kquorum.spark_replay.tables.building.registry import SCANNED, TABLES, tables_of

PackageOf = Callable[[Mapping[str, str]], ModuleType]

_HEAD = """\
from pyspark.sql.types import StructType
from kquorum.spark_replay.tables.building.audit_table import AuditTable
"""


def _declared(place: int) -> str:
    return f"{_HEAD}TABLE = AuditTable(place={place}, schema=StructType([]), description='', row_kind='record')\n"


@pytest.fixture
def package_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> PackageOf:
    def make(modules: Mapping[str, str]) -> ModuleType:
        name = f"tables_of_{request.node.name}"
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        for module, text in modules.items():
            (tmp_path / name / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        invalidate_caches()
        return import_module(name)

    return make


def test_every_module_of_the_room_is_a_table() -> None:
    modules = {path.stem for path in Path(tables.__path__[0]).glob("*.py")} - {"__init__"}
    assert set(TABLES) == modules
    assert list(TABLES) == sorted(TABLES, key=lambda name: TABLES[name].place)


def test_every_table_begins_with_its_log() -> None:
    assert [name for name, table in TABLES.items() if table.schema.fields[0] != SOURCE] == []


def test_the_pass_over_the_files_writes_three_tables() -> None:
    assert SCANNED == {"record": "records", "batch": "batches", "damage": "damage"}


def test_the_order_is_that_of_the_places(package_of: PackageOf) -> None:
    package = package_of({"a_late": _declared(20), "b_early": _declared(10)})
    assert list(tables_of(package)) == ["b_early", "a_late"]


def test_a_module_without_a_table_is_refused_by_name(package_of: PackageOf) -> None:
    package = package_of({"helper": "x = 1\n"})
    with pytest.raises(TypeError, match=r"helper declares no TABLE = AuditTable\(\.\.\.\)"):
        tables_of(package)


def test_two_tables_of_one_place_are_refused_by_name(package_of: PackageOf) -> None:
    package = package_of({"one": _declared(7), "two": _declared(7)})
    with pytest.raises(ValueError, match="the tables one and two have the same place, 7"):
        tables_of(package)


def test_a_table_has_one_maker() -> None:
    with pytest.raises(AssertionError, match="this one has 0"):
        AuditTable(place=1, schema=StructType([]), description="")
