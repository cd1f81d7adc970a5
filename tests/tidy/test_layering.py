"""Imports point down only, and the cores touch no loop, socket or clock: shown by a fresh interpreter."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.support.tree import PACKAGES, ROOT, core_files, module_name, python_files

_PROBE = """
import importlib, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
print(*sorted(set(sys.argv[1].split(",")) & set(sys.modules)))
"""

# `socket` is missing here because crc32c asks importlib.metadata for its version, which loads it by way of `email`;
# that no core imports it is import-linter's to see.
_CORE_MAY_NOT_LOAD = (
    "kio",
    "asyncio",
    "uvloop",
    "ssl",
    "grpc",
    "pyspark",
    "prometheus_client",
    "typer",
    "kquorum.network",
    "kquorum.storage",
)
_STORAGE_MAY_NOT_LOAD = (
    "asyncio",
    "uvloop",
    "ssl",
    "grpc",
    "pyspark",
    "prometheus_client",
    "typer",
    "kquorum.network",
    "kquorum.raft",
    "kquorum.wire.control_records",
)
_REPLAY_MAY_NOT_LOAD = (
    "asyncio",
    "uvloop",
    "grpc",
    "kquorum.network",
    "kquorum.broker",
    "kquorum.storage",
    "kquorum.raft.adapters",
    "kquorum.metadata.adapters",
    "kquorum.metadata.grpc",
    "kquorum.snapshots.adapters",
)


def loaded_modules(forbidden: Sequence[str], names: list[str]) -> list[str]:
    """Which of the forbidden modules a fresh interpreter holds after importing `names`."""
    probe = subprocess.run(
        [sys.executable, "-c", _PROBE, ",".join(forbidden), *names],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert probe.returncode == 0, probe.stderr
    return probe.stdout.split()


def core_modules(package: str) -> list[str]:
    return [
        module_name(path)
        for path in core_files(package)
        if not module_name(path).startswith(
            "kquorum.wire.proto"
        )  # the gRPC service: generated code and its maker
    ]


def test_the_probe_sees_what_is_loaded() -> None:
    assert loaded_modules(_CORE_MAY_NOT_LOAD, ["asyncio"]) == ["asyncio", "ssl"]


@pytest.mark.parametrize("package", ["wire", "raft", "snapshots", "metadata", "broker"])
def test_a_core_loads_no_event_loop_socket_or_grpc(package: str) -> None:
    assert loaded_modules(_CORE_MAY_NOT_LOAD, core_modules(package)) == []


def test_only_the_generator_and_the_tests_import_kio() -> None:
    """Its classes of each version are the reference; users do not install it."""
    importing = [
        str(path)
        for path in python_files(*PACKAGES)
        if re.search(r"(?m)^\s*(from|import) kio\b", path.read_text())
    ]
    assert importing == []


def test_the_storage_loads_no_event_loop_socket_or_raft() -> None:
    assert (
        loaded_modules(_STORAGE_MAY_NOT_LOAD, [module_name(path) for path in python_files("storage")]) == []
    )


def test_the_pure_parts_of_the_replay_load_neither_pyspark_nor_an_adapter() -> None:
    assert (
        loaded_modules(_REPLAY_MAY_NOT_LOAD, [module_name(path) for path in python_files("spark_replay")])
        == []
    )
    spark_free = [module_name(path) for path in python_files("spark_replay/decode", "spark_replay/archive")]
    assert len(spark_free) > 15
    assert loaded_modules(["pyspark"], spark_free) == []


def test_nothing_in_the_packages_imports_the_tests() -> None:
    guilty = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files(*PACKAGES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"tests", "benchmarks"}
    ]
    assert guilty == []


def test_every_package_init_holds_a_docstring_only() -> None:
    guilty = []
    for path in python_files(*PACKAGES):
        if path.name != "__init__.py":
            continue
        body = ast.parse(path.read_text()).body
        if len(body) != 1 or not isinstance(body[0], ast.Expr):
            guilty.append(str(path.relative_to(ROOT)))
    assert guilty == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_sources_is_a_package(package: str) -> None:
    folders = {path.parent for path in python_files(package)}
    assert [
        str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()
    ] == []


def test_import_linter_keeps_every_contract() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
