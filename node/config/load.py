"""From a file to a checked config; every broken rule is reported at once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kquorum.metadata.configs.removed import removed_key
from kquorum.metadata.configs.table import ALIASES, FILE_CONFIGS
from kquorum.metadata.configs.used_by import Effect
from kquorum.metadata.configs.validators import InvalidConfigError
from kquorum.node.config.addresses import WILDCARD_HOSTS, parse_listener
from kquorum.node.config.checks import cluster_problems, node_problems
from kquorum.node.config.config_file import why_unreadable
from kquorum.node.config.errors import ConfigError, Place, Problem
from kquorum.node.config.key_hints import unknown_key, value_in_a_unit
from kquorum.node.config.model import KNOWN_KEYS, ClusterConfig, NodeConfig
from kquorum.node.config.network_keys import is_listener_limit
from kquorum.node.config.properties_file import read_properties
from kquorum.node.config.raw import RawCluster, RawNode, RawValue
from kquorum.node.config.security_keys import is_secret_key, is_security_key
from kquorum.node.config.toml_file import read_toml
from kquorum.node.config.values import as_items, as_text

FOLDER_KEYS = ("log.dirs", "metadata.log.dir")
# To find what each was meant to be takes some milliseconds.
_MOST_UNKNOWN = 100
_VOTERS = "controller.quorum.voters"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A node as it was read. `config` lacks the `broken` keys; None if the rest makes no config either."""

    config: NodeConfig | None
    problems: tuple[Problem, ...]
    broken: frozenset[str]


def load_config(path: Path, *, data_dir: Path | None = None) -> ClusterConfig:
    """Read and check a quorum config (`.toml`) or the config of one node (`.properties`).

    Relative folders are beneath `data_dir`, by default beneath the current directory. Raises ConfigError with all
    problems: the rules that take several keys are checked with what is left of a node whose keys are broken.
    """
    raw = read_raw(path)
    data_dir = (data_dir or Path()).absolute()
    if data_dir.exists() and not data_dir.is_dir():
        raise ConfigError([Problem(f"--data-dir {data_dir} is a file, not a folder", Place(path))])
    outcomes = [_outcome(node, data_dir) for node in raw.nodes]
    problems = [*raw.problems, *(problem for outcome in outcomes for problem in outcome.problems)]
    problems += _broken_rules(raw, outcomes)
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    configs = [outcome.config for outcome in outcomes if outcome.config is not None]
    configs.sort(key=lambda node: node.node_id)
    return ClusterConfig(
        path=path, cluster_id=configs[0].cluster_id, nodes=tuple(configs), warnings=tuple(_warnings(raw))
    )


def read_raw(path: Path) -> RawCluster:
    """The keys of a config file, voters derived from its controllers where it names none. Raises ConfigError."""
    try:
        raw = read_properties(path) if path.suffix == ".properties" else read_toml(path)
    except FileNotFoundError as error:
        raise ConfigError([Problem("there is no such config file", Place(path))]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            [Problem(f"the config file cannot be read: {why_unreadable(error)}", Place(path))]
        ) from error
    nodes = tuple(RawNode(dict(_canonical(node)), node.place) for node in raw.nodes)
    return RawCluster(path, tuple(_with_voters(nodes)), raw.problems)


def _canonical(node: RawNode) -> Iterator[tuple[str, RawValue]]:
    """Kafka's second names replaced by the first, which win where both are given."""
    for key, raw in node.keys.items():
        if key not in ALIASES:
            yield key, raw
        elif ALIASES[key] not in node.keys:
            yield ALIASES[key], raw
    if "node.id" not in node.keys and "broker.id" in node.keys:
        yield "node.id", node.keys["broker.id"]


def _with_voters(nodes: tuple[RawNode, ...]) -> Iterator[RawNode]:
    derived = [voter for node in nodes if (voter := _derived_voter(node)) is not None]
    for node in nodes:
        if derived and not {_VOTERS, "controller.quorum.bootstrap.servers"} & node.keys.keys():
            yield RawNode({**node.keys, _VOTERS: RawValue(derived, node.place)}, node.place)
        else:
            yield node


def _derived_voter(node: RawNode) -> str | None:
    """`id@host:port` of a controller: its first controller listener, as advertised if it is; None for others."""

    def items(key: str) -> list[str]:
        return [str(item) for item in as_items(node.keys[key].value)] if key in node.keys else []

    names = [name.upper() for name in items("controller.listener.names")]
    if "controller" not in items("process.roles") or not names or "node.id" not in node.keys:
        return None
    for text in [*items("advertised.listeners"), *items("listeners")]:
        try:
            listener = parse_listener(text)
        except ValueError:
            continue  # reported with its place when the node itself is checked
        if listener.name == names[0] and listener.host not in WILDCARD_HOSTS:
            return f"{node.keys['node.id'].value}@{text.partition('://')[2]}"
    return None


def _outcome(node: RawNode, data_dir: Path) -> _Outcome:
    problems = [*_key_problems(node), *_text_problems(node)]
    values = _values(node, data_dir)
    try:
        return _Outcome(NodeConfig.model_validate(values), tuple(problems), frozenset())
    except ValidationError as error:
        details = error.errors()
    problems += [_as_problem(node, detail) for detail in details if _is_ours(detail)]
    broken = frozenset(str(detail["loc"][0]) for detail in details)
    left = {key: value for key, value in values.items() if key not in broken}
    try:
        return _Outcome(NodeConfig.model_validate(left), tuple(problems), broken)
    except ValidationError:
        return _Outcome(None, tuple(problems), broken)


def _values(node: RawNode, data_dir: Path) -> dict[str, Any]:
    """The fields of the node's config, as they stand in the file."""
    values = {key: raw.value for key, raw in node.keys.items() if key in KNOWN_KEYS}
    for key in FOLDER_KEYS:
        if key in values:
            folders = tuple(data_dir / str(item) for item in as_items(values[key]))
            values[key] = folders if key == "log.dirs" else folders[0] if folders else ""
    texts = [(key, as_text(raw.value)) for key, raw in sorted(node.keys.items())]
    values["other_keys"] = tuple((key, text) for key, text in texts if _is_other(key))
    values["security_keys"] = tuple((key, text) for key, text in texts if is_security_key(key))
    values["listener_limits"] = tuple((key, text) for key, text in texts if is_listener_limit(key))
    return values


def _is_other(key: str) -> bool:
    """Read by its name, or without effect: neither a field of NodeConfig nor a key of TLS and SASL."""
    if key in KNOWN_KEYS or is_security_key(key):
        return False
    return key in FILE_CONFIGS or removed_key(key) is not None


def _key_problems(node: RawNode) -> Iterator[Problem]:
    unknown = 0
    for key, raw in node.keys.items():
        reason = _refusal(key)
        if reason is not None:
            yield Problem(f"{key} cannot be used: {reason}", raw.place)
        elif key not in FILE_CONFIGS and removed_key(key) is None and not _is_of_a_listener(key):
            unknown += 1
            if unknown > _MOST_UNKNOWN:
                yield Problem(
                    f"there are more than {_MOST_UNKNOWN} unknown keys: is this a config?", raw.place
                )
                return
            yield Problem(f"unknown key {key}{unknown_key(key)}", raw.place)


def _refusal(key: str) -> str | None:
    definition, removed = FILE_CONFIGS.get(key), removed_key(key)
    if definition is not None and definition.used_by.effect is Effect.REFUSED:
        return definition.used_by.words
    return str(removed) if removed is not None and removed.is_refused else None


def _text_problems(node: RawNode) -> Iterator[Problem]:
    """A value that makes no sense would be passed over where it is looked up."""
    for key, raw in node.keys.items():
        if key in FILE_CONFIGS and _is_other(key) and _refusal(key) is None:
            text = as_text(raw.value)
            try:
                FILE_CONFIGS[key].parse(text)
            except InvalidConfigError as error:
                yield Problem(f"{key}: {error}{value_in_a_unit(key, text)}", raw.place)


def _is_of_a_listener(key: str) -> bool:
    return is_security_key(key) or is_listener_limit(key)


def _is_ours(detail: Mapping[str, Any]) -> bool:
    """Whether an error stands for itself rather than following from another one."""
    return detail["type"] != "default_factory_not_called" and not (
        detail["type"] == "too_short" and detail["input"]
    )


def _as_problem(node: RawNode, detail: Mapping[str, Any]) -> Problem:
    key = str(detail["loc"][0])
    if detail["type"] == "missing":
        return Problem(f"{_who(node)} lacks {key}", node.place)
    message = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    if not str(detail["msg"]).startswith("Value error"):
        shown = "the value" if is_secret_key(key) else repr(detail["input"])
        message = f"{shown} must be {message}{value_in_a_unit(key, detail['input'])}"
    return Problem(f"{key}: {message}", _place(node, key))


def _broken_rules(raw: RawCluster, outcomes: Iterable[_Outcome]) -> Iterator[Problem]:
    """Of nodes, and of all nodes together. What follows from a broken key alone is left out."""
    outcomes = list(outcomes)
    for node, outcome in zip(raw.nodes, outcomes, strict=True):
        if outcome.config is not None:
            for key, message in node_problems(outcome.config):
                if _is_sound(key, message, outcome.broken):
                    yield Problem(f"node {outcome.config.node_id}: {message}", _place(node, key))
    configs = [outcome.config for outcome in outcomes if outcome.config is not None]
    if len(configs) < len(outcomes):
        return
    broken = frozenset().union(*(outcome.broken for outcome in outcomes))
    for index, key, message in cluster_problems(configs):
        if _is_sound(key, message, broken):
            yield Problem(message, _place(raw.nodes[index], key))


def _is_sound(key: str, message: str, broken: frozenset[str]) -> bool:
    return key not in broken and not any(name in message for name in broken)


def _warnings(raw: RawCluster) -> Iterator[str]:
    places = {key: value.place for node in raw.nodes for key, value in node.keys.items()}
    for key, place in places.items():
        reason = _without_effect(key)
        if reason is not None:
            yield f"{place}: {key} {reason}"


def _without_effect(key: str) -> str | None:
    definition, removed = FILE_CONFIGS.get(key), removed_key(key)
    if definition is not None and definition.used_by.effect is Effect.NOT_YET:
        return f"has no effect here yet: it comes with {definition.used_by.words}"
    if definition is not None and definition.used_by.effect is Effect.NONE:
        return f"has no effect here: {definition.used_by.words}"
    return None if removed is None else f"has no effect here: {removed}"


def _place(node: RawNode, key: str) -> Place:
    return node.keys[key].place if key in node.keys else node.place


def _who(node: RawNode) -> str:
    return f"node {node.keys['node.id'].value}" if "node.id" in node.keys else "a node"
