"""UpdateFeatures (KIP-584), for the one feature that is no record of the metadata: kraft.version.

Its upgrade from 0 to 1 makes the static voters of the configuration those of the log, from which time they can be
changed (KIP-853; kraft-semantics A11.5). The levels of the other features come later.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.requests import ApiError, ControllerRequest, ControllerResult, Values
from metadata.features import SUPPORTED_FEATURES
from metadata.image.metadata_version import DYNAMIC_QUORUM, KRAFT_VERSION

UPGRADE = 1
_UPGRADE_TYPES = (1, 2, 3)
_FIRST_WITHOUT_RESULTS = 2


def update_features(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """All or nothing: the first update that is refused fails the request."""
    body = request.body
    updates = tuple(body.feature_updates)
    for update in updates:
        check_update(context, update)
    validate_only = getattr(body, "validate_only", False)
    levels = [int(update.max_version_level) for update in updates]

    def upgrade(_end_offset: int) -> None:
        for level in levels:
            reason = context.upgrade_kraft_version(level, False)
            assert reason is None, f"what was validated is refused: {reason}"

    is_needed = bool(levels) and not validate_only
    return ControllerResult(
        response=_accepted(request, [update.feature for update in updates]),
        after_append=upgrade if is_needed else None,
        waits_for_log_end=is_needed,
    )


def check_update(context: DecisionContext, update: Any) -> None:
    """Raises ApiError (INVALID_UPDATE_VERSION) for what cannot be."""
    name, level = str(update.feature), int(update.max_version_level)
    low, high = SUPPORTED_FEATURES.get(name, (0, 0))
    if name not in SUPPORTED_FEATURES:
        raise _refused(f"Could not apply finalized feature update because {name} is not a supported feature.")
    if name != KRAFT_VERSION:
        raise _refused(
            f"This controller cannot change {name} yet: of the features it changes {KRAFT_VERSION} only. "
            f"{name} keeps the level that the cluster was formatted with."
        )
    if not low <= level <= high:
        raise _refused(f"{name} has the levels {low} to {high}, not {level}.")
    if getattr(update, "upgrade_type", UPGRADE) not in _UPGRADE_TYPES:
        raise _refused(f"There is no upgrade type {update.upgrade_type}.")
    if level > 0 and context.metadata_version < DYNAMIC_QUORUM:
        raise _refused(
            f"{name} {level} needs metadata.version {DYNAMIC_QUORUM} (3.9-IV0) or later; "
            f"the cluster is at {context.metadata_version}."
        )
    reason = context.upgrade_kraft_version(level, True)
    if reason is not None:
        raise _refused(reason)


def _accepted(request: ControllerRequest, names: list[str]) -> Values:
    values: Values = {"throttle_time": 0, "error_code": ErrorCode.none, "error_message": None}
    if request.api_version < _FIRST_WITHOUT_RESULTS:
        values["results"] = [
            {"feature": name, "error_code": ErrorCode.none, "error_message": None} for name in names
        ]
    return values


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.invalid_update_version, reason)
