"""Which errors are definite (the operation surely had no effect) and which are not.

When in doubt, an error is indefinite: a `fail` that did happen would make the checker cry wolf or, worse, look
away. NOT_CONTROLLER is one of those, though Kafka's clients just try again: a controller that loses leadership
says it of writes which it has proposed already, and which its successor may commit.
"""

from typing import Final

# The controller or broker refused before anything was written. The numbers are Kafka's error codes.
_REFUSED_AT_THE_GATE: Final = {
    8: "BROKER_NOT_AVAILABLE",
    17: "INVALID_TOPIC_EXCEPTION",
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION",
    37: "INVALID_PARTITIONS",
    38: "INVALID_REPLICATION_FACTOR",
    39: "INVALID_REPLICA_ASSIGNMENT",
    40: "INVALID_CONFIG",
    42: "INVALID_REQUEST",
    44: "POLICY_VIOLATION",
    89: "THROTTLING_QUOTA_EXCEEDED",
}


class ClientError(Exception):
    """An operation did not end well; `definite` says that it surely had no effect."""

    def __init__(self, reason: str, *, definite: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.definite = definite


def not_sent(reason: str) -> ClientError:
    """No byte of the request left us."""
    return ClientError(reason, definite=True)


def unanswered(reason: str) -> ClientError:
    """The request was sent, and no usable answer came."""
    return ClientError(reason, definite=False)


def refused(code: int, name: str, message: str | None) -> ClientError:
    """The cluster answered with an error.

    TOPIC_ALREADY_EXISTS of a name that is never used twice, and UNKNOWN_TOPIC_OR_PARTITION of a topic that was
    created, mean that a broker sent the request twice: the first one may have had its effect.
    """
    words = f"{name.upper()}: {message}" if message else name.upper()
    return ClientError(words, definite=code in _REFUSED_AT_THE_GATE)
