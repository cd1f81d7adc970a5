"""The authorizer of a node's listeners, from its config."""

import logging
from collections.abc import Callable

from kquorum.metadata.authorizer.authorizer import Authorizer, parse_principals
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.node.config.model import NodeConfig

log = logging.getLogger("authorizer")


def gate_of(
    config: NodeConfig, now_ms: Callable[[], int], is_loaded: Callable[[], bool] = lambda: True
) -> RequestAuthorizer:
    """`is_loaded`: see Authorizer."""
    settings = config.authorizer
    authorizer = None if settings is None else Authorizer(settings, is_loaded)
    voters = parse_principals(config.kquorum_voter_principals)
    return RequestAuthorizer(authorizer, DenialLog(now_ms, log.info), voters)


class LoadWatch:
    """Whether a controller has applied what was committed when it first heard of a commit after its start.

    What it knew before, from its own log or a snapshot, may be old: an ACL that denies may be missing.
    """

    def __init__(
        self,
        *,
        has_heard: Callable[[], bool],
        high_watermark: Callable[[], int],
        applied_offset: Callable[[], int],
    ) -> None:
        self._has_heard = has_heard
        self._high_watermark = high_watermark
        self._applied_offset = applied_offset
        self._target: int | None = None

    def __call__(self) -> bool:
        if self._target is None and self._has_heard():
            self._target = self._high_watermark()
        return self._target is not None and self._applied_offset() + 1 >= self._target
