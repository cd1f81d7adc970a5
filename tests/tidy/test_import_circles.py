"""No two modules of the product import each other, not even under TYPE_CHECKING or within a function."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from tests.support.tree import PACKAGES, module_name, python_files

# Circles that are left, each with the room that is to open it. A circle that is gone leaves this list.
LEFT: set[frozenset[str]] = set()


def imported_by(tree: ast.AST, name: str, modules: Iterable[str]) -> Iterator[str]:
    """Every module that the source names in an import, wherever the import stands. `from package import name` counts
    as the module `package.name` where that is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = (f"{node.module}.{each.name}" for each in node.names)
            found = [each if each in modules else node.module for each in inner]
        else:
            continue
        yield from (each for each in found if each in modules and each != name)


def circles(imports: Mapping[str, Iterable[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    found = set[frozenset[str]]()
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        stack.append(module)
        for other in imports.get(module, ()):
            if other not in numbers:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], numbers[other])
        if lowest[module] == numbers[module]:
            start = stack.index(module)
            component = frozenset(stack[start:])
            del stack[start:]
            if len(component) > 1:
                found.add(component)

    for module in imports:
        if module not in numbers:
            visit(module)
    return found


def test_a_circle_is_found_also_through_a_third_module() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "e": []}) == {frozenset("abc")}


def test_an_import_counts_under_type_checking_and_within_a_function() -> None:
    source = "if TYPE_CHECKING:\n    from a import b\ndef f():\n    import c\n    from d import name\n"
    assert sorted(imported_by(ast.parse(source), "m", {"a", "a.b", "c", "d", "m"})) == ["a.b", "c", "d"]


def test_no_modules_import_each_other() -> None:
    paths = {module_name(path): path for path in python_files(*PACKAGES)}
    imports = {
        name: sorted(set(imported_by(ast.parse(path.read_text()), name, paths)))
        for name, path in paths.items()
    }
    assert circles(imports) == LEFT
