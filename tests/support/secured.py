"""A cluster of real processes with TLS and SASL: controllers among themselves by certificates, clients as they like.

Each broker has three listeners: TLS (SSL, which asks for a certificate and takes a client without), PASSWORD (SASL_SSL
with SCRAM) and OPEN (SASL_PLAINTEXT with PLAIN and SCRAM, on loopback).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.formatting import format_nodes
from kquorum.cli.commands.format.initial_records import parse_scram_users
from kquorum.node.config.load import load_config
from kquorum.node.config.materialise import free_ports
from tests.support.certificates import cluster_certificates, issued, write
from tests.support.cluster import CLUSTER_ID, FIRST_BROKER_ID, Cluster

USER, USER_SECRET = "admin", "sEcret-of-the-scram-user"
PLAIN_USER, PLAIN_SECRET = "pete", "sEcret-of-the-plain-user"
TOKEN_SECRET = "sEcret-of-all-delegation-tokens"
KEY_PASSWORD = "sEcret-of-no-key-at-all"
SECRETS = (USER_SECRET, PLAIN_SECRET, TOKEN_SECRET, KEY_PASSWORD, "PRIVATE KEY")
LISTENERS = ("TLS", "PASSWORD", "OPEN")


class SecuredCluster(Cluster):
    def __init__(
        self,
        folder: Path,
        *,
        controllers: int = 3,
        brokers: int = 2,
        overrides: Mapping[str, object] | None = None,
        with_grpc: bool = False,
    ) -> None:
        broker_ids = tuple(range(FIRST_BROKER_ID, FIRST_BROKER_ID + brokers))
        ports = iter(free_ports(brokers * len(LISTENERS)))
        self.listener_ports = {(each, name): next(ports) for each in broker_ids for name in LISTENERS}
        self.certificates = folder / "certs"
        super().__init__(
            folder,
            controllers=controllers,
            brokers=brokers,
            overrides=self._common() | dict(overrides or {}),
            node_overrides={node_id: self._listeners(node_id) for node_id in broker_ids},
            with_grpc=with_grpc,
        )

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        cluster_certificates(self.certificates, self.node_ids, ("alice",))
        write(self.certificates / "untrusted.pem", issued("alice", by="another authority"))
        return super().__enter__()

    def format(self, node_ids: Iterable[int] | None = None) -> None:
        """With the user of SCRAM in the log from the beginning."""
        config = load_config(self.config_path)
        users = [
            f"{mechanism}=[name={USER},password={USER_SECRET}]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ]
        format_nodes(
            [config.node(node_id) for node_id in node_ids or self.node_ids],
            cluster_id=CLUSTER_ID,
            metadata_version=DEFAULT,
            ignore_formatted=False,
            more_records=parse_scram_users(users, DEFAULT),
        )

    def listener(self, name: str) -> str:
        """Where clients find this listener of each broker, comma-separated."""
        return ",".join(f"localhost:{self.listener_ports[each, name]}" for each in self.broker_ids)

    def file(self, name: str) -> str:
        return str(self.certificates / name)

    def command_config(self, name: str, keys: Mapping[str, str]) -> str:
        lines = "".join(f"{key}={value}\n" for key, value in keys.items())
        return write(self.folder / name, lines)

    def all_output(self) -> str:
        """Whatever the nodes have written for people to read."""
        outputs = sorted(self.folder.glob("node-*.out"))
        logs = [self.log_text(node_id) for node_id in self.node_ids]
        return "".join(path.read_text() for path in outputs) + "".join(logs)

    def _common(self) -> dict[str, Any]:
        return {
            "listener.security.protocol.map": (
                "CONTROLLER:SSL,TLS:SSL,PASSWORD:SASL_SSL,OPEN:SASL_PLAINTEXT"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{self.certificates}/node-{{node.id}}.pem",
            "ssl.truststore.location": f"{self.certificates}/ca.pem",
            "ssl.key.password": KEY_PASSWORD,
            "listener.name.controller.ssl.client.auth": "required",
            "listener.name.tls.ssl.client.auth": "requested",
            "listener.name.password.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.open.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.open.plain.sasl.jaas.config": (
                f'PlainLoginModule required user_{PLAIN_USER}="{PLAIN_SECRET}";'
            ),
            "delegation.token.secret.key": TOKEN_SECRET,
            "kquorum.grpc.security": "ssl",
        }

    def _listeners(self, node_id: int) -> dict[str, Any]:
        places = (f"{name}://127.0.0.1:{self.listener_ports[node_id, name]}" for name in LISTENERS)
        advertised = (f"{name}://localhost:{self.listener_ports[node_id, name]}" for name in LISTENERS)
        return {"listeners": ",".join(places), "advertised.listeners": ",".join(advertised)}
