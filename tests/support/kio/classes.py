"""kio's class of an API's request or response in one version, with the fields that we add to it."""

from functools import cache
from importlib import import_module
from typing import Any

from kio.schema.index import schema_name_map
from kio.static.constants import EntityType
from kio.static.protocol import RequestPayload, ResponsePayload

from kquorum.wire.messages.index import MESSAGES
from kquorum.wire.protocol.apis import api_version
from tools.kio_extensions import extended


@cache
def _class(api_key: int, version: int, kind: EntityType) -> Any:
    api_version(api_key, version)
    module_name, _, class_name = schema_name_map[MESSAGES[api_key].module][version][kind].partition(":")
    return extended(api_key, version, kind, getattr(import_module(module_name), class_name))


def request_class(api_key: int, version: int) -> type[RequestPayload]:
    """Raises UnsupportedVersion."""
    found: type[RequestPayload] = _class(api_key, version, EntityType.request)
    return found


def response_class(api_key: int, version: int) -> type[ResponsePayload]:
    """Raises UnsupportedVersion."""
    found: type[ResponsePayload] = _class(api_key, version, EntityType.response)
    return found
