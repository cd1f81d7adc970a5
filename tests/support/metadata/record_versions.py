"""Every version of every metadata record."""

import pytest

from kquorum.wire.metadata_records.registry import ALL

EVERY_VERSION = [
    pytest.param(cls, version, id=f"{cls.__name__}-v{version}")
    for cls in ALL
    for version in range(cls.versions[0], cls.versions[1] + 1)
]
