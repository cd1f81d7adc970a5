"""What a node says when its disk is full, and when there is space again."""

import logging
from collections.abc import Callable
from pathlib import Path

from kquorum.node.logs import log as notable_log

log = logging.getLogger("node.full_disk")


def space_teller(folder: Path) -> Callable[[bool], None]:
    """Called at each change: True when writes are paused."""

    def tell(is_full: bool) -> None:
        if is_full:
            log.warning(
                "no space is left in %s: this node is read-only now. It goes on following and voting, does not lead, "
                "and takes records again by itself once there is space: make some on that file system, or raise the "
                "quota",
                folder,
            )
        else:
            notable_log.info("there is space in %s again: this node takes records again", folder)

    return tell
