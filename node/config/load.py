"""From a file to a checked config; every broken rule is told at once."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from node.config.addresses import WILDCARD_HOSTS, parse_listener
from node.config.checks import cluster_problems, node_problems
from node.config.config_file import why_unreadable
from node.config.errors import ConfigError, Place, Problem
from node.config.known_keys import ALIASES, IGNORED_KEYS, READ_AS_TEXT, REFUSED_KEYS, nearest
from node.config.model import KNOWN_KEYS, ClusterConfig, NodeConfig
from node.config.network_keys import LISTENER_LIMITS, is_listener_limit
from node.config.properties_file import read_properties
from node.config.raw import RawCluster, RawNode, RawValue
from node.config.security_keys import LISTENER_PREFIX, SECURITY_KEYS, is_secret_key, is_security_key
from node.config.toml_file import read_toml
from node.config.values import as_items, as_text

_OTHER_KEYS = READ_AS_TEXT | IGNORED_KEYS
FOLDER_KEYS = ("log.dirs", "metadata.log.dir")
_VOTERS = "controller.quorum.voters"


def load_config(path: Path, *, data_dir: Path | None = None) -> ClusterConfig:
    """Read and check a quorum config (`.toml`) or the config of one node (`.properties`).

    Relative folders are beneath `data_dir`, by default beneath the current directory. Raises ConfigError.
    """
    raw = read_raw(path)
    data_dir = (data_dir or Path()).absolute()
    if data_dir.exists() and not data_dir.is_dir():
        raise ConfigError([Problem(f"--data-dir {data_dir} is a file, not a folder", Place(path))])
    nodes = [_node_config(node, data_dir) for node in raw.nodes]
    problems = [problem for outcome in nodes if isinstance(outcome, list) for problem in outcome]
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    configs = [node for node in nodes if isinstance(node, NodeConfig)]
    problems = list(_broken_rules(raw, configs))
    if problems:
        raise ConfigError(dict.fromkeys(problems))
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
    return RawCluster(path, tuple(_with_voters(nodes)))


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
            continue  # told with its place when the node itself is checked
        if listener.name == names[0] and listener.host not in WILDCARD_HOSTS:
            return f"{node.keys['node.id'].value}@{text.partition('://')[2]}"
    return None


def _node_config(node: RawNode, data_dir: Path) -> NodeConfig | list[Problem]:
    problems = list(_key_problems(node))
    values = {key: raw.value for key, raw in node.keys.items() if key in KNOWN_KEYS}
    for key in FOLDER_KEYS:
        if key in values:
            folders = tuple(data_dir / str(item) for item in as_items(values[key]))
            values[key] = folders if key == "log.dirs" else folders[0] if folders else ""
    others = {key: as_text(raw.value) for key, raw in sorted(node.keys.items()) if key in _OTHER_KEYS}
    problems += _text_problems(node, {key: text for key, text in others.items() if key in READ_AS_TEXT})
    values["other_keys"] = tuple(others.items())
    protection = ((key, as_text(raw.value)) for key, raw in sorted(node.keys.items()) if is_security_key(key))
    values["security_keys"] = tuple(protection)
    limits = ((key, as_text(raw.value)) for key, raw in sorted(node.keys.items()) if is_listener_limit(key))
    values["listener_limits"] = tuple(limits)
    try:
        config = NodeConfig.model_validate(values)
    except ValidationError as error:
        return problems + [_as_problem(node, detail) for detail in error.errors() if _is_ours(detail)]
    return problems or config


def _key_problems(node: RawNode) -> Iterator[Problem]:
    for key, raw in node.keys.items():
        if key in REFUSED_KEYS:
            yield Problem(f"{key} cannot be used: {REFUSED_KEYS[key]}", raw.place)
        elif key not in KNOWN_KEYS and key not in _OTHER_KEYS and not _is_of_a_listener(key):
            known = [*KNOWN_KEYS, *_OTHER_KEYS, *SECURITY_KEYS]
            yield Problem(f"unknown key {key}{_meant_for_listener(key) or nearest(key, known)}", raw.place)


def _text_problems(node: RawNode, texts: Mapping[str, str]) -> Iterator[Problem]:
    """A value that makes no sense would be passed over where it is looked up."""
    if not texts:
        return
    # Imported when there is anything to check, which is seldom: the definitions are slow to import.
    from metadata.configs.table import BROKER_CONFIGS
    from metadata.configs.validators import InvalidConfigError

    for key, text in texts.items():
        try:
            BROKER_CONFIGS[key].parse(text)
        except InvalidConfigError as error:
            yield Problem(f"{key}: {error}", _place(node, key))


def _meant_for_listener(key: str) -> str:
    """` (did you mean listener.name.client.plain.sasl.jaas.config?)` for what is misspelt behind the listener."""
    parts = key.split(".")
    if not key.startswith(LISTENER_PREFIX):
        return ""
    heads = (".".join(parts[:end]) for end in range(3, len(parts)))
    bases = (*SECURITY_KEYS, *LISTENER_LIMITS)
    return nearest(key, [f"{head}.{base}" for head in heads for base in bases])


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
        message = f"{shown} must be {message}"
    return Problem(f"{key}: {message}", _place(node, key))


def _broken_rules(raw: RawCluster, configs: Iterable[NodeConfig]) -> Iterator[Problem]:
    configs = list(configs)
    for node, config in zip(raw.nodes, configs, strict=True):
        for key, message in node_problems(config):
            yield Problem(f"node {config.node_id}: {message}", _place(node, key))
    for index, key, message in cluster_problems(configs):
        yield Problem(message, _place(raw.nodes[index], key))


def _warnings(raw: RawCluster) -> Iterator[str]:
    places = {
        key: value.place for node in raw.nodes for key, value in node.keys.items() if key in IGNORED_KEYS
    }
    for key, place in places.items():
        yield f"{place}: {key} has no effect here"


def _place(node: RawNode, key: str) -> Place:
    return node.keys[key].place if key in node.keys else node.place


def _who(node: RawNode) -> str:
    return f"node {node.keys['node.id'].value}" if "node.id" in node.keys else "a node"
