"""Answers to Metadata, made one topic after the other: what the columns of the product's answers are compared with."""

import sys
from dataclasses import dataclass
from typing import Any

from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.answers import (
    AskedTopics,
    RequestView,
    asked_cluster_operations,
    cluster_values,
    known_topic,
    operations_on,
    request_view,
)
from kquorum.broker.metadata_cache.cache import controller_id_for_clients
from kquorum.metadata.controller.requests import Values
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicImage
from kquorum.raft.ports import RandomSource


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """The response, and the lawful names of unknown topics that the client agreed to see created."""

    values: Values
    topics_to_create: tuple[str, ...]


def handle_metadata(
    request: Any,
    version: int,
    image: MetadataImage,
    cluster_id: str,
    listener_name: str,
    random_source: RandomSource,
    access: ClientAccess = UNLIMITED,
    *,
    creates_topics: bool = True,
) -> MetadataAnswer:
    """`request` is any version of MetadataRequest; topics by name, by id, or all."""
    view = request_view(request, version, image, listener_name, access, creates_topics=creates_topics)
    asked = _asked_topics(view, request)
    values = cluster_values(
        image,
        cluster_id,
        listener_name,
        controller_id_for_clients(image, random_source),
        asked_cluster_operations(request, access),
    )
    values["topics"] = [
        known_topic(view, each)
        if isinstance(each, TopicImage)
        else {**each, "topic_authorized_operations": operations_on(view, each)}
        for each in asked.topics
    ]
    return MetadataAnswer(values, tuple(asked.to_create))


def _asked_topics(view: RequestView, request: Any) -> AskedTopics:
    asked = AskedTopics()
    for _ in asked.find(view, request, sys.maxsize):
        pass
    return asked
