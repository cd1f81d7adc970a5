"""Authorities and certificates for tests: made once for a process, for making keys takes time."""

import datetime as dt
import time
from functools import cache
from pathlib import Path

from kquorum.cli.commands.certs.certificates import Authority, make_certificates

HOSTS = ("localhost", "127.0.0.1")


def now() -> dt.datetime:
    return dt.datetime.fromtimestamp(time.time(), dt.UTC)


_DAYS = 30


def authority(name: str = "the authority", *, days_ago: int = 0) -> Authority:
    """The same authority for the same arguments; it was good for 30 days, so long ago."""
    return _authority(name, days_ago)


@cache
def _authority(name: str, days_ago: int) -> Authority:
    return Authority(name, now() - dt.timedelta(days=days_ago), _DAYS)


@cache
def issued(common_name: str, *hosts: str, by: str = "the authority", days_ago: int = 0) -> str:
    """Key and certificate in PEM."""
    return authority(by, days_ago=days_ago).issue(common_name, hosts).decode()


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def cluster_certificates(
    folder: Path, node_ids: tuple[int, ...], clients: tuple[str, ...] = ("client",)
) -> Path:
    """`ca.pem`, `node-<id>.pem` and `<client>.pem`, for nodes on loopback."""
    make_certificates(folder, [(node_id, HOSTS) for node_id in node_ids], clients, authority())
    return folder
