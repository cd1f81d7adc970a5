"""A certificate without any rights, and TLS 1.3 KeyUpdates to the leader of a secured quorum: it stays the leader.

Sixty connections with 250 KB of KeyUpdates each, and no request, held its loop for 2.6 s of processor time.
"""

import contextlib
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from kquorum.node.config.load import load_config
from tests.support.network.tls_client import Client
from tests.support.secured import SecuredCluster

pytestmark = pytest.mark.slow

CONNECTIONS = 60
KEY_UPDATES = 9_000


class Attacker:
    """One connection with its KeyUpdates ready to be sent."""

    def __init__(self, cluster: SecuredCluster, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        keys = {
            "ssl.truststore.location": cluster.file("ca.pem"),
            "ssl.keystore.location": cluster.file("alice.pem"),
        }
        client = Client(keys, incoming, outgoing)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                client.tls.do_handshake()
                break
            self._socket.sendall(outgoing.read())
            incoming.write(self._socket.recv(65_536))
        self._socket.sendall(outgoing.read())
        client.update_keys(KEY_UPDATES)
        self._updates = outgoing.read()

    def send(self) -> None:
        """Until all is sent, or the node has closed the connection."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(self._updates)

    def is_closed(self) -> bool:
        self._socket.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            try:
                while self._socket.recv(65_536):
                    pass
            except ConnectionError:
                pass
            return True
        return False

    def close(self) -> None:
        self._socket.close()


def test_key_updates_depose_no_leader(tmp_path: Path) -> None:
    with SecuredCluster(tmp_path, controllers=3, brokers=1) as cluster:
        cluster.start()
        before = cluster.quorum()
        port = load_config(cluster.config_path).node(before.leader_id).controller_listeners[0].port
        attackers = [Attacker(cluster, port) for _ in range(CONNECTIONS)]
        try:
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                list(pool.map(Attacker.send, attackers))
            assert wait_until(lambda: all(each.is_closed() for each in attackers), 30)
        finally:
            for each in attackers:
                each.close()
        after = cluster.quorum()
        assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)
        assert "too many TLS records without data" in cluster.log_text(before.leader_id)
