"""Why a role was taken, in the words that `kquorum quorum history` shows (`RoleChanged.cause`)."""

from typing import Final

# Why an election began.
FETCH_TIMEOUT: Final = "fetch timeout"
NO_LEADER_HEARD: Final = "no leader was heard of"
LEADER_LEFT: Final = "the leader left"
# Why a leader stepped down.
SHUTDOWN: Final = "shutdown"
CHECK_QUORUM: Final = "no majority of the voters fetched in time"
CONTROLLER_RESIGNED: Final = "the controller asked for it"
REMOVED: Final = "it was removed from the voters"
NO_SPACE: Final = "no space is left on its disk"
TRANSFER: Final = "leadership was transferred to node %d"
# How a replica begins.
STARTED: Final = "started"
RESTARTED_LEADER: Final = "started again, having led this epoch"
