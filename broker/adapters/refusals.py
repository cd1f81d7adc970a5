"""Messages for the operator when a controller refuses a broker."""

import logging
import time
from collections.abc import Callable

from kquorum.broker.lifecycle import REGISTRATION_LOST
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

log = logging.getLogger("broker.lifecycle")

REPEAT_REFUSAL_MS = 30_000
# A controller that is heard of twice names the same end but for the time that its answers take.
SAME_END_MS = 1_000


class Refusals:
    """Tells what the controller refuses: at once, then every half a minute as long as it is the same.

    A broker whose previous process has a session waits for the end of that session, and says when that is. A new
    controller counts the session from its own start, which is said again; with one and the same controller the end
    moves only if the previous process is alive and sends heartbeats.
    """

    def __init__(self, now_ms: Callable[[], int], session_timeout_ms: int) -> None:
        self._now_ms = now_ms
        self._session_timeout_ms = session_timeout_ms
        self._error = ErrorCode.none
        self._since_ms = 0
        self._reported_ms = 0
        # The first end that this controller named, and the one that was told.
        self._session_ends_ms: int | None = None
        self._told_end_ms: int | None = None
        self._is_reported_alive = False

    def handle_new_controller(self) -> None:
        self._session_ends_ms = None

    def note(self, api_key: ApiKey, error: ErrorCode, session_ends_ms: int | None = None) -> None:
        """`session_ends_ms` comes with the refusal of a broker whose previous process has a session."""
        now_ms = self._now_ms()
        is_new = error is not self._error
        if is_new:
            if self._error is ErrorCode.duplicate_broker_registration and error is ErrorCode.none:
                waited_ms = now_ms - self._since_ms
                log.info("registered after %d ms: the session of the previous process is over", waited_ms)
            self._error, self._since_ms = error, now_ms
            self._session_ends_ms = self._told_end_ms = None
        if session_ends_ms is not None:
            # An end that was to be, and was none, is the present.
            self._note_session(now_ms, max(now_ms, session_ends_ms))
        elif error is not ErrorCode.none and (is_new or now_ms - self._reported_ms >= REPEAT_REFUSAL_MS):
            self._reported_ms = now_ms
            log.warning("%s", self._words(api_key, error))

    def _note_session(self, now_ms: int, ends_ms: int) -> None:
        limit_ms = self._session_timeout_ms
        if self._session_ends_ms is None:
            self._session_ends_ms, self._is_reported_alive = ends_ms, False
            if self._told_end_ms is not None and abs(ends_ms - self._told_end_ms) < SAME_END_MS:
                return
            self._told_end_ms = ends_ms
            log.warning(
                "waiting until %s (%.0f s) for the end of the session of this broker's previous process, which was not "
                "shut down in order: it ends %d ms (broker.session.timeout.ms) after the last heartbeat of that "
                "process, or after the start of the active controller",
                time.strftime("%H:%M:%S", time.localtime(ends_ms / 1000)),
                (ends_ms - now_ms) / 1000,
                limit_ms,
            )
            return
        is_alive = ends_ms - self._session_ends_ms > limit_ms // 2
        if is_alive and (not self._is_reported_alive or now_ms - self._reported_ms >= REPEAT_REFUSAL_MS):
            self._is_reported_alive, self._reported_ms = True, now_ms
            log.warning(
                "after %d ms the controller still hears another process with this node id, whose session "
                "(broker.session.timeout.ms, %d ms) does not end: stop that one, or give this one another node.id and "
                "folder",
                now_ms - self._since_ms,
                limit_ms,
            )

    def _words(self, api_key: ApiKey, error: ErrorCode) -> str:
        if error in REGISTRATION_LOST:
            return (
                f"the controller does not know this broker's registration any more ({error.name}): it was "
                "unregistered, or another process has its node id. Registering again"
            )
        if error is ErrorCode.inconsistent_cluster_id:
            return (
                "the controllers belong to another cluster than this broker's folders: it is not admitted, and goes on "
                "asking. Check controller.quorum.voters and controller.quorum.bootstrap.servers"
            )
        if error is ErrorCode.cluster_authorization_failed:
            return (
                f"the controllers do not let this broker in ({api_key.name}: {error.name}). Their logs say as whom it "
                "came: that principal has to be in their super.users, or to have CLUSTER_ACTION on the cluster"
            )
        return f"the controller refused {api_key.name}: {error.name}"
