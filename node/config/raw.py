"""What the files say, before it means anything: keys and values, each with its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kquorum.node.config.errors import Place, Problem


@dataclass(frozen=True, slots=True)
class RawValue:
    """A value as written (str, int, bool or a list of these) and where."""

    value: object
    place: Place


RawKeys = Mapping[str, RawValue]


@dataclass(frozen=True, slots=True)
class RawNode:
    """One node's keys, those of `[cluster]` and `[defaults]` filled in, and where the node begins."""

    keys: RawKeys
    place: Place


@dataclass(frozen=True, slots=True)
class RawCluster:
    """`problems` are those of values and sections; the nodes lack these."""

    path: Path
    nodes: tuple[RawNode, ...]
    problems: tuple[Problem, ...] = ()
