"""A caller of a gRPC service, and the certificate that names it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MEMBER, HERE = "User:CN=member", "10.0.0.1"


@dataclass
class Caller:
    certificate: str | None = None
    host: str = HERE

    def peer(self) -> str:
        return f"ipv4:{self.host}:4711"

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        return {} if self.certificate is None else {"x509_pem_cert": [self.certificate.encode()]}


def certificate(pem: str) -> str:
    return pem[pem.index("-----BEGIN CERTIFICATE") :]
