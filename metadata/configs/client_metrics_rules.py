"""What the configs of a client metrics subscription must fulfil (KIP-714, Kafka's ClientMetricsConfigs)."""

import re
from collections.abc import Mapping
from re import _parser  # type: ignore[attr-defined]

from metadata.configs.table import CLIENT_METRICS_CONFIGS
from metadata.configs.validators import InvalidConfigError, InvalidConfigRequestError

INTERVAL_MS = (100, 3_600_000)
_MATCH_KEYS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_client_metrics_configs(name: str, configs: Mapping[str, str]) -> None:
    """Raises InvalidConfigError, or InvalidConfigRequestError where Kafka calls the request wrong."""
    if not name:
        raise InvalidConfigRequestError("Subscription name can't be empty")
    for key in configs:
        if key not in CLIENT_METRICS_CONFIGS:
            raise InvalidConfigRequestError(f"Unknown client metrics configuration: {key}")
    values = {key: CLIENT_METRICS_CONFIGS[key].parse(text) for key, text in configs.items()}
    interval = values.get("interval.ms")
    if isinstance(interval, int) and not INTERVAL_MS[0] <= interval <= INTERVAL_MS[1]:
        raise InvalidConfigRequestError(
            f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        )
    match = values.get("match", ())
    assert isinstance(match, tuple)
    for pattern in match:
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    parts = pattern.split("=")
    if len(parts) == 2 and parts[0].strip() in _MATCH_KEYS:
        try:
            # To compile it takes a second for 200 characters, and nothing is ever matched with it here.
            _parser.parse(parts[1].strip())
        except (
            re.error,
            RecursionError,
            OverflowError,
            ValueError,
        ):  # ValueError: a number of too many digits
            pass
        else:
            return
    raise InvalidConfigError(f"Illegal client matching pattern: {pattern}")
