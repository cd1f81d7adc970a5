"""`--feature NAME=LEVEL` and `--release-version` of `kquorum format`, as Kafka's storage tool takes them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.metadata_versions import DEFAULT, parse_metadata_version
from cli.quorum_beginning import KRAFT_VERSION
from metadata.features import SUPPORTED_FEATURES, unmet_dependency
from metadata.image.metadata_version import METADATA_VERSION


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
            raise _refused(f"--feature gives {name} twice")
        levels[name] = level
    if METADATA_VERSION in levels and release_version is not None:
        raise _refused(
            f"--release-version and --feature {METADATA_VERSION} say the same thing: leave one out"
        )
    metadata_version = parse_metadata_version(release_version or str(levels.get(METADATA_VERSION, DEFAULT)))
    for name, level in levels.items():
        reason = unmet_dependency(name, level, metadata_version)
        if reason is not None:
            raise _refused(f"--feature: {reason}; the metadata.version asked for is {metadata_version}")
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
        raise _refused(f"--feature: {text!r} is not NAME=LEVEL, such as {KRAFT_VERSION}=1")
    if name not in SUPPORTED_FEATURES:
        known = ", ".join(SUPPORTED_FEATURES)
        raise _refused(f"--feature: there is no feature {name}; there are {known}")
    low, high = SUPPORTED_FEATURES[name]
    if name != METADATA_VERSION and not low <= int(level) <= high:
        raise _refused(f"--feature: {name} has the levels {low} to {high}, not {level}")
    return name, int(level)


def _refused(message: str) -> CliError:
    return CliError(message, status=ExitStatus.USAGE)
