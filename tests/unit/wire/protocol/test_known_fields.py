"""Names that only other versions of a struct have, known without importing those versions."""

import dataclasses
import subprocess
import sys
from importlib import import_module

import pytest
from kio.schema.index import schema_name_map

from tests.support.kio.known_fields import FORMER_FIELDS, field_names
from tests.support.tree import ROOT

# Answers of an old version are built from a superset of its fields, in the loop.
_BUILD_AN_OLD_ANSWER = """
import sys
from kquorum.wire.protocol.apis import supported_versions
from tests.support.kio.classes import response_class
from tests.support.kio.entities import build

topic = {"topic": "t", "topic_id": None, "partitions": ()}
newest = supported_versions(1)[1]
build(response_class(1, 13), {"error_code": 0, "session_id": 0, "responses": (topic,), "node_endpoints": ()})
print(*sorted({name.split(".")[3] for name in sys.modules if name.startswith("kio.schema.fetch.v")}), f"v{newest}")
"""


def test_an_answer_imports_no_version_but_its_own_and_the_newest() -> None:
    command = [sys.executable, "-c", _BUILD_AN_OLD_ANSWER]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert set(told) == {"v13", told[-1]}


@pytest.mark.slow
def test_the_table_of_former_fields_is_that_of_the_schemas() -> None:
    found = {}
    for package, versions in schema_name_map.items():
        kinds = {
            names.partition(":")[0].rpartition(".")[2]
            for each in versions.values()
            for names in each.values()
        }
        for kind in kinds:
            found.update(_former_fields(package, kind, sorted(versions)))
    assert dict(FORMER_FIELDS) == found


def _former_fields(package: str, kind: str, versions: list[int]) -> dict[str, frozenset[str]]:
    ever: dict[str, set[str]] = {}
    for version in versions:
        module = import_module(f"kio.schema.{package}.v{version}.{kind}")
        last = {
            name: field_names(cls)
            for name, cls in vars(module).items()
            if dataclasses.is_dataclass(cls) and isinstance(cls, type) and cls.__module__ == module.__name__
        }
        for name, names in last.items():
            ever.setdefault(name, set()).update(names)
    former = {name: frozenset(names - last.get(name, frozenset())) for name, names in ever.items()}
    return {f"{package}.{kind}.{name}": names for name, names in former.items() if names}
