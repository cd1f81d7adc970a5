"""What a broker here does not name in ApiVersions, with the reasons.

A request for one ends its connection, as with Kafka. Everything else of the protocol is answered or refused.
"""

from collections.abc import Mapping
from typing import Final

from wire.protocol.api_keys import ApiKey

_OF_THE_QUORUM = (
    "controllers speak it with each other and with brokers' replicas, on the controllers' listener"
)
_TO_THE_CONTROLLER = "brokers send it to the active controller; Kafka's brokers do not offer it either"
_SHARE_STATE = "brokers keep the state of share groups with it for each other; there are no share groups here"
_TELEMETRY = "as with Kafka's brokers that have no receiver of clients' metrics: clients then send none"

NOT_OFFERED: Final[Mapping[ApiKey, str]] = {
    ApiKey.VOTE: _OF_THE_QUORUM,
    ApiKey.BEGIN_QUORUM_EPOCH: _OF_THE_QUORUM,
    ApiKey.END_QUORUM_EPOCH: _OF_THE_QUORUM,
    ApiKey.FETCH_SNAPSHOT: _OF_THE_QUORUM,
    ApiKey.UPDATE_RAFT_VOTER: _OF_THE_QUORUM,
    ApiKey.CONTROLLER_REGISTRATION: _OF_THE_QUORUM,
    ApiKey.ENVELOPE: _TO_THE_CONTROLLER,
    ApiKey.ALTER_PARTITION: _TO_THE_CONTROLLER,
    ApiKey.BROKER_REGISTRATION: _TO_THE_CONTROLLER,
    ApiKey.BROKER_HEARTBEAT: _TO_THE_CONTROLLER,
    ApiKey.ALLOCATE_PRODUCER_IDS: _TO_THE_CONTROLLER,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _TO_THE_CONTROLLER,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _TELEMETRY,
    ApiKey.PUSH_TELEMETRY: _TELEMETRY,
}
