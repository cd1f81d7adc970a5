"""The words of the report: what the states and causes of the tables are called, and what they mean."""

from collections.abc import Iterable
from typing import Final

# (state of a broker, what it means); the order is that of the legend.
BROKER_STATES: Final = {
    "unfenced": "unfenced: it serves",
    "shutting down": "in controlled shutdown",
    "stopped": "fenced after a controlled shutdown",
    "registered": "registered, not yet unfenced",
    "fenced": "fenced: its heartbeats stayed away",
}

# Causes of leader changes in the order in which they are stacked, from the bottom up.
CAUSES: Final = {
    "unclean": "the new leader was not in sync: records may be lost",
    "fencing": "the old leader was fenced, as its heartbeats stayed away",
    "unregistration": "the old leader was unregistered",
    "restart": "the old leader registered again before it was fenced",
    "directory_failure": "the old leader lost a log directory",
    "shutdown": "the old leader shut down in a controlled way",
    "reassignment": "a step of a reassignment of replicas",
    "preferred": "back to the first of the replicas",
    "unfencing": "there was no leader until this broker was unfenced",
    "recovery": "there was no leader, and now there is one",
    "other": "nothing in the log tells",
}

# What people ask for, by record type; the rest is the cluster's own business.
ADMINISTRATIVE: Final = {
    "TopicRecord": "topics created",
    "RemoveTopicRecord": "topics removed",
    "ConfigRecord": "configs set or deleted",
    "FeatureLevelRecord": "features finalised",
    "AccessControlEntryRecord": "access control entries added",
    "RemoveAccessControlEntryRecord": "access control entries removed",
    "UserScramCredentialRecord": "SCRAM credentials set",
    "RemoveUserScramCredentialRecord": "SCRAM credentials removed",
    "ClientQuotaRecord": "quotas set or deleted",
    "DelegationTokenRecord": "delegation tokens made or renewed",
    "RemoveDelegationTokenRecord": "delegation tokens removed",
    "UnregisterBrokerRecord": "brokers unregistered",
    "KRaftVoters": "sets of voters written",
}


def count(value: int) -> str:
    return f"{value:,}"


def size(size_in_bytes: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_in_bytes >= unit:
            return f"{size_in_bytes / unit:,.1f} {name}"
    return f"{size_in_bytes} bytes"


def controller(number: int | None) -> str:
    return "controller unknown" if number is None else f"controller {number}"


def listed(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    found = list(parts)
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)
