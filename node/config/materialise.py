"""A copy of a config with free loopback ports, so that a whole quorum can run anywhere beside anything."""

import secrets
import socket
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from kquorum.node.config.addresses import format_address, parse_host_port, parse_listener
from kquorum.node.config.load import FOLDER_KEYS, read_raw
from kquorum.node.config.raw import RawNode
from kquorum.node.config.values import as_items
from kquorum.private_files import replace_whole

LOOPBACK = "127.0.0.1"
_LOWEST_PORT = 15_000
_IANA_FIRST_EPHEMERAL = 49_152
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ADDRESS_KEYS = ("kquorum.grpc.listener", "kquorum.metrics.listener")
_DROPPED_KEYS = ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "advertised.listeners")


def free_ports(count: int) -> tuple[int, ...]:
    """Different loopback ports on which no process listens at this moment.

    They are below the range from which the system takes the near ends of outgoing connections: a port of that range
    can be taken by any connection between this moment and the one when a node listens there.
    """
    candidates = list(range(_LOWEST_PORT, _first_ephemeral_port()))
    secrets.SystemRandom().shuffle(candidates)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == count:
            break
        if _is_free(port):
            ports.append(port)
    assert len(ports) == count, f"fewer than {count} loopback ports are free"
    return tuple(ports)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def _first_ephemeral_port() -> int:
    """As Linux is set; elsewhere IANA's."""
    try:
        first = int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError):
        return _IANA_FIRST_EPHEMERAL
    return first if first > _LOWEST_PORT + 1000 else _IANA_FIRST_EPHEMERAL


def with_free_ports(path: Path, target: Path, *, data_dir: Path | None = None) -> Path:
    """Write the config at `path` to `target`, with every listener on a free loopback port and the voters to match.

    The file must have passed `load_config`. Relative folders become absolute ones beneath `data_dir` (by default the
    folder of `target`), so that the copy means the same wherever it is used. Returns `target`.
    """
    data_dir = (data_dir or target.parent).absolute()
    raw = read_raw(path)
    ports = iter(free_ports(sum(_count(node) for node in raw.nodes)))
    tables = []
    for node in raw.nodes:
        values = {key: value.value for key, value in node.keys.items() if key not in _DROPPED_KEYS}
        values |= {key: _beneath(data_dir, values[key]) for key in FOLDER_KEYS if key in values}
        listeners = [parse_listener(str(item)) for item in as_items(values["listeners"])]
        values["listeners"] = ",".join(
            f"{listener.name}://{format_address(LOOPBACK, next(ports))}" for listener in listeners
        )
        for key in _ADDRESS_KEYS:
            if values.get(key):
                values[key] = format_address(LOOPBACK, next(ports))
        tables.append(values)
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode)  # there may be passwords in it
    comment = f"Made from {path.name}: the same nodes on free loopback ports."
    replace_whole(target, nodes_as_toml(comment, tables).encode(), mode)
    return target


def _beneath(data_dir: Path, folders: object) -> str:
    return ",".join(str(data_dir / str(item)) for item in as_items(folders))


def _count(node: RawNode) -> int:
    addresses = [key for key in _ADDRESS_KEYS if key in node.keys and node.keys[key].value]
    for key in addresses:
        parse_host_port(str(node.keys[key].value))
    return len(as_items(node.keys["listeners"].value)) + len(addresses)


def nodes_as_toml(comment: str, tables: Iterable[Mapping[str, object]]) -> str:
    """A config file with the keys of each node."""
    lines = [f"# {comment}", ""]
    for table in tables:
        lines += ["[[nodes]]", *_assignments(table), ""]
    return "\n".join(lines)


def _assignments(table: Mapping[str, object]) -> list[str]:
    return [f"{key} = {_toml_value(value)}" for key, value in table.items()]


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    assert isinstance(value, list), value
    return "[" + ", ".join(_toml_value(item) for item in value) + "]"
