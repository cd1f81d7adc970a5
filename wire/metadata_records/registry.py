"""All metadata records, found in the modules beside this one, and each by the type number that stands in its frame."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kquorum.wire.metadata_records import cluster, configs, features, security, topics
from kquorum.wire.schema import MetadataRecord

ALL: Final[tuple[type[MetadataRecord], ...]] = tuple(
    sorted(
        (
            found
            for module in (cluster, configs, features, security, topics)
            for found in vars(module).values()
            if isinstance(found, type) and issubclass(found, MetadataRecord) and found is not MetadataRecord
        ),
        key=lambda cls: cls.api_key,
    )
)
BY_API_KEY: Final[Mapping[int, type[MetadataRecord]]] = MappingProxyType({cls.api_key: cls for cls in ALL})
