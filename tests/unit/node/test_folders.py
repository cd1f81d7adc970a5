"""A node opens its data folders: what it says to one that was never formatted."""

from pathlib import Path

import pytest

from kquorum.node.config.load import load_config
from kquorum.node.folders import NodeFolders
from kquorum.storage.errors import NotFormatted

CONFIG = """\
[cluster]
"cluster.id" = "a3F1b3J1bS1leGFtcGxlMQ"
[[nodes]]
"node.id" = 1
"process.roles" = "controller"
"listeners" = "CONTROLLER://127.0.0.1:9191"
"log.dirs" = "{folder}"
"controller.listener.names" = "CONTROLLER"
"""


def test_a_folder_that_was_not_formatted_is_refused_and_a_static_voter_is_warned(tmp_path: Path) -> None:
    path, folder = tmp_path / "quorum.toml", tmp_path / "data"
    path.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    with pytest.raises(NotFormatted) as caught:
        NodeFolders(load_config(path).node(1), now_ms=0)
    assert str(caught.value) == (
        f"{folder} is not formatted (it has no meta.properties): run `kquorum format` for this node first; with "
        "--replaced-disk if it was a static voter and lost its disk, or it would vote without knowing what was "
        "committed"
    )
