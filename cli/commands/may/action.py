"""What `kquorum may` can be asked about, apart: the help of the command imports no more than this."""

from enum import StrEnum


class Action(StrEnum):
    """What is to be done with the nodes. RESTART and UPGRADE take one node after the other, the others all at once."""

    STOP = "stop"
    RESTART = "restart"
    REMOVE = "remove"
    FORMAT = "format"
    UPGRADE = "upgrade"

    @property
    def is_rolling(self) -> bool:
        return self in (Action.RESTART, Action.UPGRADE)
