"""The request of a describe handler, and the state of the node that answers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kquorum.metadata.image.image import MetadataImage


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest:
    """`body` is the message of the API; `image` is committed. `node_configs` are the keys of
    the answering node's own config file, as text; `is_controller` says what it answers as."""

    body: Any
    version: int
    image: MetadataImage
    principal: str
    node_id: int
    is_controller: bool = False
    node_configs: Mapping[str, str] = field(default_factory=dict, repr=False)
