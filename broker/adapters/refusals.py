"""What the operator is told of a controller that refuses a broker."""

import logging
from collections.abc import Callable

from kio.schema.errors import ErrorCode

from broker.lifecycle import REGISTRATION_LOST
from wire.protocol.api_keys import ApiKey

log = logging.getLogger("broker.lifecycle")

REPEAT_REFUSAL_MS = 30_000


class Refusals:
    """Tells what the controller refuses: at once, then every half a minute as long as it is the same."""

    def __init__(self, now_ms: Callable[[], int], session_timeout_ms: int) -> None:
        self._now_ms = now_ms
        self._session_timeout_ms = session_timeout_ms
        self._error = ErrorCode.none
        self._since_ms = 0
        self._told_ms = 0

    def note(self, api_key: ApiKey, error: ErrorCode) -> None:
        now_ms = self._now_ms()
        if error is not self._error:
            if self._error is ErrorCode.duplicate_broker_registration and error is ErrorCode.none:
                log.info("registered after %d ms of waiting for the former run", now_ms - self._since_ms)
            self._error, self._since_ms = error, now_ms
        elif now_ms - self._told_ms < REPEAT_REFUSAL_MS:
            return
        if error is not ErrorCode.none:
            self._told_ms = now_ms
            log.warning("%s", self._words(api_key, error, now_ms - self._since_ms))

    def _words(self, api_key: ApiKey, error: ErrorCode, waited_ms: int) -> str:
        if error in REGISTRATION_LOST:
            return (
                f"the controller does not know this broker's registration any more ({error.name}): it was "
                "unregistered, or another process has its node id. Registering anew"
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
        if error is not ErrorCode.duplicate_broker_registration:
            return f"the controller refused {api_key.name}: {error.name}"
        limit_ms = self._session_timeout_ms
        if waited_ms <= 2 * limit_ms:
            return (
                "the controller still counts on a former run of this broker, which was not shut down in order: waiting "
                f"until that one is fenced, {limit_ms} ms (broker.session.timeout.ms) after its last heartbeat"
            )
        return (
            f"after {waited_ms} ms the controller still hears another process with this node id, longer than "
            f"broker.session.timeout.ms ({limit_ms} ms): stop that one, or give this one another node.id and folder"
        )
