"""The hashes of states that a cluster recorded, as the options of `audit check` name them.

Nodes tell each other the hashes of their states and keep them nowhere, so they must be given: as `quorum status` and
`log state-hash` print them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cli.errors import CliError
from cli.exit_status import ExitStatus
from metadata.log_check.state_replay import RecordedHash
from metadata.state_hash.image_hash import SCHEME

_OPTION = re.compile(r"(?:(?P<source>.+)=)?(?P<offset>\d{1,18}):(?P<hash>[0-9a-fA-F]{32})")
_HASH = re.compile(r"[0-9a-fA-F]{32}")

Recorded = dict[str | None, tuple[RecordedHash, ...]]


def recorded_hashes(options: Sequence[str], files: Sequence[Path]) -> Recorded:
    """By log; under None what is compared with all of them. Raises CliError."""
    found: dict[str | None, list[RecordedHash]] = {}
    for text in options:
        source, recorded = _of_option(text)
        found.setdefault(source, []).append(recorded)
    for path in files:
        found.setdefault(None, []).extend(_of_file(path))
    return {source: tuple(dict.fromkeys(each)) for source, each in found.items()}


def _of_option(text: str) -> tuple[str | None, RecordedHash]:
    match = _OPTION.fullmatch(text)
    if match is None:
        raise CliError(
            f"--state-hash {text}: expected OFFSET:HASH or LOG=OFFSET:HASH, the hash in 32 hexadecimal digits",
            status=ExitStatus.USAGE,
        )
    return match["source"], RecordedHash(int(match["offset"]), match["hash"].lower())


def _of_file(path: Path) -> list[RecordedHash]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CliError(f"--state-hashes {path}: {error.strerror}", status=ExitStatus.USAGE) from None
    except ValueError as error:
        raise CliError(f"--state-hashes {path} is no JSON: {error}", status=ExitStatus.USAGE) from None
    found = list(_in_json(content))
    if not found:
        raise CliError(
            f"--state-hashes {path} holds no hash: expected what `kquorum quorum status --json` or "
            "`kquorum log state-hash --json` prints",
            status=ExitStatus.USAGE,
        )
    return found


def _in_json(value: Any) -> Iterator[RecordedHash]:
    """Every object with an offset and a hash, wherever it stands."""
    if isinstance(value, list):
        for each in value:
            yield from _in_json(each)
    elif isinstance(value, dict):
        if value.get("scheme", SCHEME) != SCHEME:
            raise CliError(
                f"--state-hashes: a hash of scheme {value['scheme']}; this program makes those of scheme {SCHEME}",
                status=ExitStatus.USAGE,
            )
        offset, text = value.get("offset"), value.get("state_hash", value.get("hash"))
        if isinstance(offset, int) and isinstance(text, str) and _HASH.fullmatch(text):
            yield RecordedHash(offset, text.lower())
        for each in value.values():
            yield from _in_json(each)
