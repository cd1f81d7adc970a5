"""EndTxnMarker, version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Data, kafka, message


@message(versions=(0, 0), flexible_since=None)
class EndTxnMarker(Data):
    coordinator_epoch: int = kafka("int32", default=0)
