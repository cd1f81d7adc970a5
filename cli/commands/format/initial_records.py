"""What `kquorum format` writes into the first records of a cluster: feature levels and users with SCRAM credentials.

The options and their words are those of Kafka's storage tool: `--feature NAME=LEVEL`, `--release-version`, and
`--add-scram` (KIP-900):
SCRAM-SHA-512=[name=alice,password=secret,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="]
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kquorum.cli.commands.features.metadata_versions import DEFAULT, name_of, parse_metadata_version
from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.metadata.controller.security.scram import MAX_ITERATIONS
from kquorum.metadata.features import SUPPORTED_FEATURES, unmet_dependency
from kquorum.metadata.image.metadata_version import KRAFT_VERSION, METADATA_VERSION, SCRAM
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.salt_forms import MIN_ITERATIONS
from kquorum.wire.schema import MetadataRecord


@dataclass(frozen=True, slots=True)
class AskedFeatures:
    """`kraft_version` is None when it was left to the other options; `others` go into the bootstrap records."""

    metadata_version: int
    kraft_version: int | None
    others: Mapping[str, int]


def parse_features(texts: Iterable[str], release_version: str | None) -> AskedFeatures:
    """Raises CliError for an unknown feature or level, and for a level given twice."""
    levels: dict[str, int] = {}
    for text in texts:
        name, level = _parse(text)
        if name in levels:
            raise usage_error(f"--feature gives {name} twice")
        levels[name] = level
    if METADATA_VERSION in levels and release_version is not None:
        raise usage_error(
            f"--release-version and --feature {METADATA_VERSION} say the same thing: leave one out"
        )
    metadata_version = parse_metadata_version(release_version or str(levels.get(METADATA_VERSION, DEFAULT)))
    for name, level in levels.items():
        reason = unmet_dependency(name, level, metadata_version)
        if reason is not None:
            raise usage_error(f"--feature: {reason}; the metadata.version asked for is {metadata_version}")
    return AskedFeatures(
        metadata_version=metadata_version,
        kraft_version=levels.get(KRAFT_VERSION),
        others={
            name: level for name, level in levels.items() if name not in (METADATA_VERSION, KRAFT_VERSION)
        },
    )


def _parse(text: str) -> tuple[str, int]:
    name, _, level = text.partition("=")
    if not level.isdecimal():
        raise usage_error(f"--feature: {text!r} is not NAME=LEVEL, such as {KRAFT_VERSION}=1")
    if name not in SUPPORTED_FEATURES:
        known = ", ".join(SUPPORTED_FEATURES)
        raise usage_error(f"--feature: there is no feature {name}; there are {known}")
    low, high = SUPPORTED_FEATURES[name]
    if name != METADATA_VERSION and not low <= int(level) <= high:
        raise usage_error(f"--feature: {name} has the levels {low} to {high}, not {level}")
    return name, int(level)


_CODES = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_KNOWN = ("name", "password", "saltedpassword", "salt", "iterations")
_ATTRIBUTE = re.compile(r'\s*([A-Za-z]+)=(?:"([^"]*)"|([^,\]]*))\s*(?:,|$)')


def parse_scram_users(texts: Iterable[str], metadata_version: int) -> Sequence[MetadataRecord]:
    """Raises CliError, which never quotes the text: there is a password in it."""
    records = [_record(text) for text in texts]
    users = [(record.mechanism, record.name) for record in records]
    if len(set(users)) != len(users):
        raise _scram_refused("a user is there twice with one mechanism")
    if records and metadata_version < SCRAM:
        needed = f"{SCRAM} ({name_of(SCRAM)})"
        raise _scram_refused(
            f"SCRAM needs metadata.version {needed} or later; {metadata_version} was asked for"
        )
    return records


def _record(text: str) -> UserScramCredentialRecord:
    from kquorum.network.security.scram import keys_of, keys_of_salted
    from kquorum.network.security.unknown_user_credentials import new_salt

    mechanism, equals, rest = text.strip().partition("=")
    if mechanism not in _CODES or not equals:
        raise _scram_refused(f"it must begin with {' or '.join(f'{name}=' for name in _CODES)}")
    attributes = _attributes(rest)
    name = attributes.get("name", "")
    if not name or ("password" in attributes) == ("saltedpassword" in attributes):
        raise _scram_refused("it needs a name, and either password or saltedpassword")
    iterations = _iterations(attributes.get("iterations", str(MIN_ITERATIONS)))
    if "saltedpassword" in attributes:
        if "salt" not in attributes:
            raise _scram_refused("saltedpassword goes with the salt it was made with")
        salt, salted = (_base64(attributes[key], key) for key in ("salt", "saltedpassword"))
        keys = keys_of_salted(mechanism, salted, salt, iterations)
    else:
        given = attributes.get("salt")
        salt = new_salt() if given is None else _base64(given, "salt")
        keys = keys_of(mechanism, attributes["password"], salt, iterations)
    return UserScramCredentialRecord(
        name=name,
        mechanism=_CODES[mechanism],
        salt=keys.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=keys.iterations,
    )


def _attributes(text: str) -> dict[str, str]:
    if not (text.startswith("[") and text.endswith("]")):
        raise _scram_refused("behind the mechanism there must be [name=...,password=...]")
    found: dict[str, str] = {}
    position, end = 1, len(text) - 1
    while position < end:
        match = _ATTRIBUTE.match(text[:end], position)
        if match is None or match[1] not in _KNOWN or match[1] in found:
            raise _scram_refused(
                f"in the brackets there can be {', '.join(_KNOWN)}, each once, as name=value, comma-separated"
            )
        found[match[1]] = match[2] if match[2] is not None else match[3].strip()
        position = match.end()
    return found


def _iterations(text: str) -> int:
    if not text.isdecimal() or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise _scram_refused(f"iterations must be a number from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)


def _base64(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _scram_refused(f"{name} must be base64") from None


def _scram_refused(message: str) -> CliError:
    return CliError(f"--add-scram: {message}", status=ExitStatus.USAGE)
