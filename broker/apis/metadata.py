"""Metadata (api key 3), answered from the cache; missing topics are created where client and broker agree to that."""

from typing import Final

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.wire.messages.metadata import MetadataRequest
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody


def begin_metadata(context: RequestContext, request: MetadataRequest, services: BrokerServices) -> Advance:
    creation = services.topic_creation
    work = services.metadata_responses.begin(
        request,
        context.header.api_version,
        services.cache.image,
        context.listener_name,
        services.client_access(context),
        creates_topics=creation is not None,
        note_made=context.making.note_made,
    )
    if creation is None:
        return work.advance

    def advance() -> EncodedBody | None:
        answer = work.advance()
        # Which topics are missing is known once the answer is there.
        if answer is not None and work.topics_to_create:
            creation.create(context, work.topics_to_create, services.configs())
        return answer

    return advance


# DESCRIBE on each topic; CREATE on the cluster or on the topic, where one is to be created.
API: Final = Sliced(ApiKey.METADATA, Authorized.IN_HANDLER, begin=begin_metadata)
