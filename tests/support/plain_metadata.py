"""Answers to Metadata, made one topic after the other: what the columns of the product's answers are compared with."""

import sys
from dataclasses import dataclass, replace

from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.answers import (
    AskedTopics,
    RequestView,
    asked_cluster_operations,
    cluster_response,
    known_topic,
    operations_on,
    request_view,
)
from kquorum.broker.metadata_cache.cache import controller_id_for_clients
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicImage
from kquorum.raft.ports import RandomSource
from kquorum.wire.messages.metadata import MetadataRequest, MetadataResponse


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """The response, and the lawful names of unknown topics that the client agreed to see created."""

    response: MetadataResponse
    topics_to_create: tuple[str, ...]


def handle_metadata(
    request: MetadataRequest,
    version: int,
    image: MetadataImage,
    cluster_id: str,
    listener_name: str,
    random_source: RandomSource,
    access: ClientAccess = UNLIMITED,
    *,
    creates_topics: bool = True,
) -> MetadataAnswer:
    """Topics by name, by id, or all."""
    view = request_view(request, version, image, listener_name, access, creates_topics=creates_topics)
    asked = _asked_topics(view, request)
    response = cluster_response(
        image,
        cluster_id,
        listener_name,
        controller_id_for_clients(image, random_source),
        asked_cluster_operations(request, access),
    )
    response.topics = tuple(
        known_topic(view, each)
        if isinstance(each, TopicImage)
        else replace(each, topic_authorized_operations=operations_on(view, each))
        for each in asked.topics
    )
    return MetadataAnswer(response, tuple(asked.to_create))


def _asked_topics(view: RequestView, request: MetadataRequest) -> AskedTopics:
    asked = AskedTopics()
    for _ in asked.find(view, request, sys.maxsize):
        pass
    return asked
