"""The questions that a broker answers from its image as a controller does: of ACLs, configs and the like."""

from functools import partial
from typing import Any, Final

from kquorum.broker.apis.api import Advance, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.metadata.controller_apis import QUESTIONS, Describer, EntryLimit, Slices
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey


def question(api_key: ApiKey, entry_limit: EntryLimit = EntryLimit.USUAL) -> Local:
    """It takes the same rights as at a controller."""
    asked: Final = QUESTIONS[api_key]
    return Local(
        api_key,
        asked.authorization,
        entry_limit,
        handle=partial(_handle, asked.describe),
        is_pure=True,
        begin=None if asked.slices is None else partial(_begin, asked.slices),
    )


def _begin(slices: Slices, context: RequestContext, request: Any, services: BrokerServices) -> Advance:
    return slices(services.describe_request(context, request)).__next__


def _handle(describe: Describer, context: RequestContext, request: Any, services: BrokerServices) -> Response:
    return describe(services.describe_request(context, request))
