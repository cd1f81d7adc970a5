"""What to do about a finding."""

FETCH_AGAIN = (
    "start the node while a majority of the quorum is healthy: it fetches the damaged part again; "
    "or empty this folder and let the node catch up from the others (never that of the only voter)"
)
TORN = (
    "if a crash left it, the node cuts it off when it starts, and nothing acknowledged was in it; "
    "if the file was cut by something else, treat it as damage: empty the folder and let the node catch up"
)
NEWER_SOFTWARE = "read it with the release that wrote it, or a newer one"
WRITER = "the log was not written by a sound controller; keep a copy of it and compare the other nodes' logs"
REBUILT = "nothing is lost: the node rebuilds this file from the log when it starts"
NEXT_LEADER = "none needed: the next leader aborts it, and until then no reader sees its records"
OTHER_SNAPSHOT = (
    "delete the file if a sound snapshot or the log covers its records; else copy one from another node"
)
RENAME = (
    "its name does not fit its content or this log: do not start a node on it, copy one from another node"
)
COMPARE = "compare with the snapshots of the other nodes; delete this one if the log is whole without it"
DELETED_AT_START = "none needed: the node deletes it when it starts"
ELECTION_STATE = (
    "do not let the node vote with it: restore the file, or take the node out of the quorum and add it again"
)
EMPTY_FOLDER = "empty this folder and let the node catch up from the others"
OWN_FOLDER = "point the node at its own folder, or copy the file from a backup"
FORMAT_AGAIN = "copy the file from another node of the cluster, or format the folder afresh"
HARMLESS_TIME = "none needed: only the deletion of old snapshots by their age goes by that time"
MISSING_FILE = f"put the file back if you have a copy; else {FETCH_AGAIN}"
NOT_A_FILE = f"move it away and put the file back if you have a copy; else {FETCH_AGAIN}"
NOT_A_SNAPSHOT = "move it away; a node cannot read it, nor write a snapshot of that name"
UNREADABLE = "see who owns the file and who may read it, and whether the disk is sound; then verify again"
AHEAD = (
    "if the end of the log is missing here, bring that back first; if the node fetched the snapshot just before it "
    "stopped, do nothing: it starts over there; else the name is wrong: move the file away before a node starts here"
)
SET_ASIDE = (
    "look at it or delete it: the node set it aside; what it needs was fetched again, or a snapshot has it"
)
STILL_NEEDED = "keep it until the node has finished its repair, for which it needs a majority that is healthy"
CHANGED_NOTES = (
    "the log was changed, or records were taken out of it: keep a copy, and compare with the other nodes' logs "
    "(kquorum log diff)"
)
