"""Keys for the tests of the network's security."""

from pathlib import Path

import pytest

from tests.support.network.secured_peers import Keys


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)
