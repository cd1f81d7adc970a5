"""Which of the modules that `make compile` builds are used."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.compiled import MANIFEST, PYTHON, CompiledFinder, source_digest, use
from tests.support.tree import PACKAGES
from tools.compile_modules import ROOT, build, sources

SOURCE = "raft/some.py"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with a manifest, and a source beside it."""
    (tmp_path / "raft").mkdir()
    (tmp_path / SOURCE).write_text("X = 1\n")
    write(tmp_path, python=PYTHON)
    return tmp_path


def write(folder: Path, *, python: str) -> None:
    manifest = {
        "python": python,
        "modules": {"some_module_of_a_test": "some.so"},
        "sources": {SOURCE: source_digest(folder / SOURCE)},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))


def used(folder: Path | None, sources: Path) -> tuple[str, list[CompiledFinder]]:
    before = list(sys.meta_path)
    try:
        said = use(folder, sources)
        return said, [
            each for each in sys.meta_path if isinstance(each, CompiledFinder) and each not in before
        ]
    finally:
        sys.meta_path[:] = before


def test_modules_of_the_present_sources_are_used(built: Path) -> None:
    said, (finder,) = used(built, built)
    assert said == f"1 from {built}"
    assert finder.find_spec("json") is None
    spec = finder.find_spec("some_module_of_a_test")
    assert spec is not None
    assert spec.origin == str(built / "some.so")


def test_one_changed_source_is_enough_for_none(built: Path) -> None:
    (built / SOURCE).write_text("X = 2\n")
    assert used(built, built) == (f"none: {SOURCE} has changed since they were built (make compile)", [])
    (built / SOURCE).unlink()
    assert used(built, built)[1] == []


def test_modules_of_another_python_are_not_used(built: Path) -> None:
    write(built, python="3.10")
    said, finders = used(built, built)
    assert (said.startswith("none: those in"), finders) == (True, [])


@pytest.mark.parametrize("folder", [None, Path("missing")])
def test_without_built_modules_the_sources_are_used(folder: Path | None, tmp_path: Path) -> None:
    assert used(folder and tmp_path / folder, tmp_path) == ("none are built", [])


def test_what_a_request_passes_is_built() -> None:
    names = sources()
    assert {
        "kquorum/raft/node.py",
        "kquorum/raft/leader/majority.py",
        "kquorum/raft/adapters/driver.py",
        "kquorum/metadata/controller/controller.py",
        "kquorum/network/serving.py",
    } <= set(names)
    assert not [name for name in names if "__init__" in name or not (ROOT / name).is_file()]
    assert len(names) == len(set(names))


def _parsed() -> list[tuple[str, ast.Module]]:
    return [(name, ast.parse((ROOT / name).read_text())) for name in sources()]


# What gives something else when it is evaluated for the second time.
_CHANGING = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.NamedExpr, ast.Await, ast.Yield)
_CHANGING_CALLS = {"next", "pop", "popleft", "read", "send", "add"}


def _changes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        return name in _CHANGING_CALLS
    return isinstance(node, _CHANGING)


def test_no_bound_of_a_slice_changes_when_it_is_evaluated_twice() -> None:
    """mypyc evaluates the bounds of a slice twice, unless it knows that a list, tuple, str or bytes is cut."""
    found = [
        f"{name}:{node.lineno}: {ast.unparse(node)}"
        for name, module in _parsed()
        for node in ast.walk(module)
        if isinstance(node, ast.Slice)
        for bound in (node.lower, node.upper)
        if bound is not None and any(map(_changes, ast.walk(bound)))
    ]
    assert found == []


def test_a_built_class_with_a_length_says_when_it_is_true() -> None:
    """mypyc takes any X in `X | None` to be true if X has no `__bool__`, whatever its `__len__`."""
    found = []
    for name, module in _parsed():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                found += (
                    [f"{name}: {node.name}"] if "__len__" in methods and "__bool__" not in methods else []
                )
    assert found == []


def test_errors_of_different_kinds_have_different_names_in_a_function() -> None:
    """mypyc gives a name one type in a function, that of the first handler, and raises TypeError in the others."""
    found = []
    for name, module in _parsed():
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                kinds: dict[str, set[str]] = {}
                for node in ast.walk(function):
                    if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                        kinds.setdefault(node.name, set()).add(ast.unparse(node.type))
                found += [f"{name}: {function.name}: {each}" for each in kinds if len(kinds[each]) > 1]
    assert found == []


def test_no_class_that_is_built_inherits_from_one_of_asyncio() -> None:
    """mypyc frees an instance of a class with such a base and leaves weak references to it behind, which then crash."""
    found = [
        f"{name}: {node.name}"
        for name, module in _parsed()
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).startswith("asyncio.") for base in node.bases)
        and node.name != "LostTransport"  # its one instance is never freed
    ]
    assert found == []


def _imported(module: ast.Module) -> dict[str, tuple[str, str]]:
    """By the name in the module: where it comes from."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_no_class_of_the_sources_inherits_from_one_that_is_built() -> None:
    """A built class takes no subclass that is not built: importing it fails."""
    built = {
        (name.removesuffix(".py").replace("/", "."), node.name)
        for name, module in _parsed()
        for node in ast.walk(module)
        # A class of a protocol is no class for mypyc.
        if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.unparse(base) for base in node.bases)
    }
    names = set(sources())
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / "kquorum" / package).rglob("*.py")):
            if str(path.relative_to(ROOT)) in names:
                continue
            module = ast.parse(path.read_text())
            imported = _imported(module)
            found += [
                f"{path}: {node.name}"
                for node in ast.walk(module)
                if isinstance(node, ast.ClassDef)
                and any(imported.get(ast.unparse(base)) in built for base in node.bases)
            ]
    assert found == []


_ASK = (
    "import kquorum.raft.log_index as it, kquorum.compiled; print(it.__file__); print(kquorum.compiled.STATE)"
)


@pytest.mark.slow
def test_a_process_uses_what_was_built(tmp_path: Path) -> None:
    # Two: mypyc names the header of a single module in a package so that its own code does not find it.
    names = [each for each in sources() if each.endswith(("raft/log_index.py", "raft/elections.py"))]
    build(names, tmp_path / "out")

    def asked(value: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", _ASK],
            env={"KQUORUM_COMPILED": value, "PATH": ""},
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
            check=True,
        )
        return done.stdout.splitlines()

    file, state = asked(str(tmp_path / "out"))
    assert Path(file).is_relative_to(tmp_path)
    assert Path(file).suffix == ".so"
    assert state.startswith(f"{len(names)} from")
    file, state = asked("0")
    assert file.endswith("log_index.py")
    assert state == "none are built"
