"""Each controller registers itself in the log (KIP-919): its endpoints and feature ranges, for DescribeCluster.

The registration is asked of the active controller, which may be this very node, until the committed image shows it
under this process's incarnation; and again whenever another incarnation shows up in its place.
"""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from kquorum.metadata.adapters.controller_channel import ControllerChannel, ControllerUnavailable
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import CONTROLLER_REGISTRATION
from kquorum.network.errors import NoCommonVersion
from kquorum.wire.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from kquorum.wire.messages.error_codes import ErrorCode

log = logging.getLogger("metadata.controller_registration")

FIRST_BACKOFF_MS = 100
BACKOFF_MS_MAX = 120_000


class ControllerRegistrar:
    """`run` until cancelled; call `handle_image` with each committed image."""

    def __init__(
        self,
        *,
        node_id: int,
        incarnation_id: UUID,
        listeners: tuple[Listener, ...],
        features: tuple[Feature, ...],
        channel: ControllerChannel,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._request = ControllerRegistrationRequest(
            controller_id=node_id, incarnation_id=incarnation_id, listeners=listeners, features=features
        )
        self._node_id = node_id
        self._incarnation_id = incarnation_id
        self._channel = channel
        self._image = image
        self._is_due = asyncio.Event()

    def handle_image(self, image: MetadataImage) -> None:
        if self._wants_registration(image):
            self._is_due.set()
        else:
            self._is_due.clear()

    async def run(self) -> None:
        failures = 0
        while True:
            await self._is_due.wait()
            if await self._register():
                failures = 0
            # A success shows in the image soon; until then, and after a failure, there is a pause.
            await asyncio.sleep(min(FIRST_BACKOFF_MS << min(failures, 12), BACKOFF_MS_MAX) / 1000)
            failures += 1

    def _wants_registration(self, image: MetadataImage) -> bool:
        if image.metadata_version < CONTROLLER_REGISTRATION:
            return False
        registered = image.cluster.controllers.get(self._node_id)
        return registered is None or registered.incarnation_id != self._incarnation_id

    async def _register(self) -> bool:
        try:
            response = await self._channel.call(self._request)
        except (ControllerUnavailable, NoCommonVersion) as error:
            log.info("this controller is not registered yet: %s", error)
            return False
        if response.error_code is not ErrorCode.none:
            log.warning("the registration of this controller was refused: %s", response.error_message)
            return False
        return True
