"""What a mutant is: a name, the safeguard that it removes, and a patch of the core which tests alone can apply."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from tests.simulation.options import Options

Patch = AbstractContextManager[object]


def any_world(options: Options) -> bool:
    return True


def with_changes(options: Options) -> bool:
    """Voters come and go, and there are some to lose."""
    return options.quorum != "static" and options.voters + options.spares >= 3


def with_reads(options: Options) -> bool:
    return options.read_percent > 0 and options.voters >= 3


@dataclass(frozen=True)
class Mutant:
    """`schedule` names the directed schedule that shows it; `worlds` says which worlds are worth a try by chance."""

    name: str
    safeguard: str
    apply: Callable[[], Patch]
    schedule: str
    worlds: Callable[[Options], bool]


MUTANTS: dict[str, Mutant] = {}


def mutant(
    *, schedule: str, worlds: Callable[[Options], bool] = any_world
) -> Callable[[Callable[[], Patch]], Callable[[], Patch]]:
    """Enter a patch under its function's name; the docstring is the safeguard that is gone."""

    def enter(apply: Callable[[], Patch]) -> Callable[[], Patch]:
        name = apply.__name__
        assert name not in MUTANTS
        assert apply.__doc__
        MUTANTS[name] = Mutant(name, " ".join(apply.__doc__.split()), apply, schedule, worlds)
        return apply

    return enter


def getter_of(cls: type, name: str) -> Callable[[Any], Any]:
    """The function behind a property, wherever it is inherited from."""
    found = next(vars(base)[name] for base in cls.__mro__ if name in vars(base))
    assert isinstance(found, property)
    assert found.fget is not None
    return found.fget


def everywhere(function: Callable[..., object], replacement: Callable[..., object]) -> Patch:
    """Replace a function of the core in every module of it that knows it by name."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("kquorum.raft.")]
    patches = [
        patch.object(module, name, replacement)
        for module in modules
        for name, value in list(vars(module).items())
        if value is function
    ]
    assert patches, f"no module of the core knows {function.__name__}"
    return all_of(*patches)


@contextmanager
def all_of(*patches: Patch) -> Iterator[None]:
    """Several patches that only together remove the safeguard."""
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield
