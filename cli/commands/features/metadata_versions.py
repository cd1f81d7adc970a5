"""Kafka's metadata.version levels by name."""

from kquorum.cli.failures import CliError, ExitStatus
from kquorum.metadata.image.metadata_version import LATEST_METADATA_VERSION
from kquorum.snapshots.bootstrap import DEFAULT_METADATA_VERSION

# From org.apache.kafka.server.common.MetadataVersion; the lowest is the one Kafka 4.0 can still start from.
LEVELS = {
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV0": 22,
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
    "4.4-IV0": 31,
    "4.4-IV1": 32,
    "4.4-IV2": 33,
}


assert max(LEVELS.values()) == LATEST_METADATA_VERSION


# The level of a new cluster where no option names another: every Kafka 4.x can join it.
DEFAULT = DEFAULT_METADATA_VERSION


def parse_metadata_version(text: str, option: str = "--release-version") -> int:
    """A level (`25`), its name (`4.0-IV3`) or a release (`4.0`, its highest level). Raises CliError."""
    levels = dict(LEVELS)
    for name, level in LEVELS.items():
        levels[name.partition("-")[0]] = level  # the last of a release is its highest
    known = levels.get(text, int(text) if text.isdecimal() else None)
    if known is None or known not in LEVELS.values():
        lowest, highest = min(LEVELS, key=LEVELS.__getitem__), max(LEVELS, key=LEVELS.__getitem__)
        raise CliError(
            f"{option}: unknown metadata version {text}; known are {lowest} (level {LEVELS[lowest]}) to "
            f"{highest} (level {LEVELS[highest]}), and releases such as 4.0",
            status=ExitStatus.USAGE,
        )
    return known


def name_of(level: int) -> str:
    """`4.0-IV3` for 25."""
    return next((name for name, known in LEVELS.items() if known == level), f"level {level}")
