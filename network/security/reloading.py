"""TLS whose keys and certificates are read again when their files change: new connections get the new ones.

To renew a certificate, an operator overwrites or replaces its file while the node runs. The node does not load unusable
files (half a file, a key that does not fit the certificate, an expired certificate): the old one stays in use, the log
says why, and the node checks the files again. Open connections keep what they were opened with.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from kquorum.network.security.errors import SecurityConfigError

log = logging.getLogger("network.security")

FILE_KEYS: Final = ("ssl.keystore.location", "ssl.truststore.location")
Made = TypeVar("Made")
# Of each file its place in the file system, its size, and when it changed.
_Signature = tuple[tuple[str, int, int, int] | None, ...]


class TlsMaterial(Generic[Made]):
    """`current` is what `make` last made of `keys`; `version` counts how often that was. `name` is for the log."""

    def __init__(self, name: str, keys: Mapping[str, str], make: Callable[[Mapping[str, str]], Made]) -> None:
        """Raises SecurityConfigError."""
        self._name = name
        self._keys = dict(keys)
        self._make = make
        self._signature = self._sign()
        self._refused: str | None = None
        self.current = make(self._keys)
        self.version = 0

    def refresh(self) -> bool:
        """Look at the files, and take what has changed; whether it was. Reads disks: not for the event loop."""
        signature = self._sign()
        if signature == self._signature and self._refused is None:
            return False
        self._signature = signature
        try:
            made = self._make(self._keys)
        except SecurityConfigError as error:
            if str(error) != self._refused:
                self._refused = str(error)
                log.warning(
                    "%s: the changed TLS files are not used, what was read before stays in use: %s",
                    self._name,
                    error,
                )
            return False
        self.current, self._refused = made, None
        self.version += 1
        log.info("%s: the TLS files have changed; new connections get what they hold now", self._name)
        return True

    def _sign(self) -> _Signature:
        return tuple(_signature(self._keys.get(key)) for key in FILE_KEYS)


class ReloadingContext(ssl.SSLContext):
    """Makes the TLS of each connection with the context that is current then."""

    material: TlsMaterial[ssl.SSLContext]

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *arguments: Any, **options: Any
    ) -> ssl.SSLObject:
        return self.material.current.wrap_bio(incoming, outgoing, *arguments, **options)


def reloading_context(
    name: str, keys: Mapping[str, str], make: Callable[[Mapping[str, str]], ssl.SSLContext]
) -> ReloadingContext:
    """Raises SecurityConfigError."""
    material = TlsMaterial(name, keys, make)
    context = ReloadingContext(material.current.protocol)
    context.material = material
    return context


def _signature(location: str | None) -> tuple[str, int, int, int] | None:
    if not location:
        return None
    try:
        found = Path(location).stat()
    except OSError as error:
        return (str(error), 0, 0, 0)
    return (location, found.st_ino, found.st_size, found.st_mtime_ns)
