"""The request of a describe handler, and the state of the node that answers it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kquorum.metadata.image.image import MetadataImage


def not_counted(_bytes: int) -> None:
    """The memory of this answer is not counted while it is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest:
    """`body` is the message of the API; `image` is committed. `node_configs` are the keys of
    the answering node's own config file, as text; `is_controller` says what it answers as. A handler that answers in
    slices calls `note_made` with the number of bytes that a slice has made."""

    body: Any
    version: int
    image: MetadataImage
    principal: str
    node_id: int
    is_controller: bool = False
    node_configs: Mapping[str, str] = field(default_factory=dict, repr=False)
    note_made: Callable[[int], object] = field(default=not_counted, compare=False, repr=False)
