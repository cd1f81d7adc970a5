"""DefaultPrincipalData, version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Data, kafka, message


@message(versions=(0, 0), flexible_since=0)
class DefaultPrincipalData(Data):
    type_: str = kafka("string", default="")
    name: str = kafka("string", default="")
    token_authenticated: bool = kafka("bool", default=False)
