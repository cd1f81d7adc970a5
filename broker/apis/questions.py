"""The questions that a broker answers from its image as a controller does: of ACLs, configs and the like."""

from functools import partial
from typing import Any, Final

from kquorum.broker.apis.api import Local, SlicedQuestion
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.metadata.controller_apis import QUESTIONS, Describer, EntryLimit, Question
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey


def question(api_key: ApiKey, entry_limit: EntryLimit = EntryLimit.USUAL) -> Local | SlicedQuestion:
    """It takes the same rights as at a controller."""
    asked: Final = QUESTIONS[api_key]
    if not isinstance(asked, Question):
        return SlicedQuestion(api_key, asked.authorization, entry_limit, slices=asked.slices)
    return Local(
        api_key,
        asked.authorization,
        entry_limit,
        handle=partial(_handle, asked.describe),
        is_pure=True,
    )


def _handle(describe: Describer, context: RequestContext, request: Any, services: BrokerServices) -> Response:
    return describe(services.describe_request(context, request))
