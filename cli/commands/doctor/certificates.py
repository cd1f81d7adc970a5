"""When the certificates of the nodes end: those in files of this machine, and those that listeners show."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kquorum.cli.commands.doctor.facts import Certificate
from kquorum.node.config.addresses import HostPort, reachable
from kquorum.node.config.model import ClusterConfig, NodeConfig

_KEYSTORE: Final = "ssl.keystore.location"
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


async def find_certificates(cluster: ClusterConfig, timeout_ms: int) -> tuple[Certificate, ...]:
    """A listener that does not answer is left out: its node has a finding of its own."""
    listeners = [each for node in cluster.nodes for each in _tls_listeners(node)]
    shown = await asyncio.gather(
        *(asyncio.to_thread(_of_listener, place, address, timeout_ms) for place, address in listeners)
    )
    files = {path for node in cluster.nodes for path in _files(node)}
    kept = [_of_file(path) for path in sorted(files)]
    return tuple(each for each in (*kept, *shown) if each is not None)


def _tls_listeners(node: NodeConfig) -> Iterator[tuple[str, HostPort]]:
    advertised = {each.name: each for each in node.advertised_listeners}
    for listener in node.listeners:
        if node.protocol_of(listener.name).upper().endswith("SSL"):
            found = advertised.get(listener.name, listener)
            yield f"node {node.node_id}: {listener}", reachable(found.host, found.port)
    if node.kquorum_grpc_listener is not None and node.kquorum_grpc_security != "plaintext":
        address = reachable(*node.kquorum_grpc_listener)
        yield f"node {node.node_id}: GRPC://{address}", address


def _files(node: NodeConfig) -> Iterator[Path]:
    names = [listener.name for listener in node.listeners]
    if node.kquorum_grpc_listener is not None:
        names.append("GRPC")
    for name in names:
        path = node.security_of(name).get(_KEYSTORE)
        if path:
            yield Path(path)


def _of_file(path: Path) -> Certificate | None:
    """None for one that is on another machine."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        return Certificate(place=str(path), fault=error.strerror)
    if _BEGIN not in data:
        return Certificate(place=str(path), fault="it holds no certificate in PEM")
    return _read(str(path), data)


def _of_listener(place: str, address: HostPort, timeout_ms: int) -> Certificate | None:
    try:
        pem = ssl.get_server_certificate((address.host, address.port), timeout=timeout_ms / 1000)
    except ssl.SSLError as error:
        return Certificate(place=place, fault=f"no TLS there: {error.reason or error}")
    except OSError:
        return None
    return _read(place, pem.encode())


def _read(place: str, pem: bytes) -> Certificate:
    """Of a chain the certificate that ends first."""
    from cryptography import x509

    try:
        chain = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        return Certificate(place=place, fault=str(error))
    ends = min(each.not_valid_after_utc for each in chain)
    return Certificate(place=place, ends_ms=round(ends.timestamp() * 1000))
