"""The errors of a config file."""

from pathlib import Path

import pytest

from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from tests.support.config_files import write


def messages(folder: Path, text: str, name: str = "quorum.toml") -> list[str]:
    path = write(folder, text, name)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]
