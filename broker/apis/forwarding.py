"""The APIs that a broker forwards to the active controller, which authorizes and answers them (KIP-590)."""

from kquorum.broker.apis.api import Authorized, Forwarded
from kquorum.metadata.controller_apis import CONTROLLER_APIS
from kquorum.wire.protocol.api_keys import ApiKey


def forwarded(api_key: ApiKey) -> Forwarded:
    """The controller judges the request; it takes as many entries here as there.

    Only the broker knows how good a client's connection is for delegation tokens, so it judges their requests first.
    """
    api = CONTROLLER_APIS[api_key]
    assert api.is_forwardable, f"a controller does not take {api_key.name} in an envelope"
    is_judged_here = not api.authorization.needs_authorizer
    return Forwarded(
        api_key, api.authorization if is_judged_here else Authorized.AT_CONTROLLER, api.entry_limit
    )
