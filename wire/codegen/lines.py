"""A page of Python source being written, and the values its names refer to."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    """Indented source lines with the namespace in which they will run."""

    def __init__(self, namespace: dict[str, object]) -> None:
        self.namespace = namespace
        self._lines: list[str] = []
        self._depth = 0

    def add(self, *lines: str) -> None:
        self._lines.extend("    " * self._depth + line for line in lines)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.add(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def constant(self, name: str, value: object) -> str:
        """Give `value` a name in the namespace; one name stands for one value."""
        assert self.namespace.setdefault(name, value) is value, f"{name} is taken"
        return name

    def packer(self, action: str, layout: str) -> str:
        """The name of `struct.Struct(layout).pack` or `.unpack_from`, kept in the namespace."""
        name = f"{action}_{layout.replace('?', 't')}"
        self.namespace.setdefault(name, getattr(struct.Struct(">" + layout), action))
        return name

    @property
    def source(self) -> str:
        return "\n".join(self._lines) + "\n"
