"""Which modules of tests/ a file may import."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.tree import ROOT, module_name, python_files

# Folders with an engine of their own, beside tests/support, which the tests and benchmarks use.
ENGINES = ("fuzz", "interop", "jepsen", "kill_loop", "reference_model", "simulation")


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module of tests/ that a file imports, and every name from one, as a dotted path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("tests."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tests":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_refused(importer: str, target: str) -> bool:
    """Whether `target` is in a test file, or in a kind of tests that is neither the importer's own nor an engine."""
    parts = target.split(".")
    kind = parts[1]
    if any(
        part.startswith("test_") and (ROOT / "/".join(parts[:end])).with_suffix(".py").is_file()
        for end, part in enumerate(parts, 1)
    ):
        return True
    return (
        kind not in ("support", importer.split(".")[1], *ENGINES) if importer.startswith("tests.") else False
    )


def refused_imports(path: Path) -> list[str]:
    importer = module_name(path)
    tree = ast.parse(path.read_text())
    return [f"{importer} imports {target}" for target in imported(tree) if is_refused(importer, target)]


def test_no_file_imports_a_test_file_or_another_kind_of_tests() -> None:
    """A helper that two files use is in tests/support, or in the folder of their kind of tests."""
    files = list(python_files("tests", "benchmarks", "tools", "examples"))
    assert len(files) > 500
    assert [line for path in files for line in refused_imports(path)] == []


def test_an_import_from_a_test_file_is_seen() -> None:
    source = "from tests.tidy.test_test_imports import imported\nfrom tests.tidy import test_layering\n"
    targets = list(imported(ast.parse(source)))
    assert [is_refused("tests.unit.wire.test_codec", target) for target in targets] == [True, True]
    assert is_refused("tests.unit.wire.test_codec", "tests.spark.conftest.Audited")
    assert not is_refused("tests.unit.wire.test_codec", "tests.support.tree.ROOT")
