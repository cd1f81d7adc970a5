"""Creates the topics that clients' requests miss (Kafka's AutoTopicCreationManager)."""

import logging
from collections.abc import Sequence

from kquorum.broker.adapters.forwarding import Forwarder
from kquorum.broker.adapters.request_tasks import RequestTasks
from kquorum.broker.apis.services import RequestContext
from kquorum.broker.internal_topics import creatable_topic
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.wire.errors import DecodeError

log = logging.getLogger("broker.listener")


class AutoTopicCreation:
    """Implements broker.apis.services.TopicCreation."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._being_created: set[str] = set()
        self._tasks = RequestTasks()

    def create(self, context: RequestContext, names: Sequence[str], configs: NodeConfigs) -> None:
        """Once for all clients that ask while it is under way; they ask again until the topic shows."""
        missing = tuple(name for name in names if name not in self._being_created)
        if missing:
            self._tasks.run(self._create(context, missing, configs))

    def create_internal(self, name: str, configs: NodeConfigs) -> None:
        """A topic of the broker's own, in the broker's name: the client need not be allowed to create topics."""
        if name not in self._being_created:
            self._tasks.run(self._create_internal(name, configs))

    async def stop(self) -> None:
        """Gives up what is still being created."""
        await self._tasks.stop()

    async def _create_internal(self, name: str, configs: NodeConfigs) -> None:
        self._being_created.add(name)
        try:
            await self._forwarder.create_internal_topic(creatable_topic(name, configs))
        finally:
            self._being_created.discard(name)

    async def _create(self, context: RequestContext, names: tuple[str, ...], configs: NodeConfigs) -> None:
        self._being_created.update(names)
        try:
            await self._forwarder.create_topics(context, [creatable_topic(name, configs) for name in names])
        except DecodeError as error:
            log.error("the controller's answer to the creation of %s: %s", ", ".join(names), error)
        finally:
            self._being_created.difference_update(names)
