"""Causes and authors in words, the same for all questions."""

from pyspark.sql import Row

_CAUSES = {
    "fencing": "fencing of broker {}",
    "shutdown": "shutdown of broker {}",
    "unregistration": "unregistration of broker {}",
    "restart": "restart of broker {}",
    "directory_failure": "failed directory of broker {}",
    "unfencing": "return of broker {}",
    "leader_request": "asked for by its leader, broker {}",
    "reassignment": "reassignment",
    "preferred": "back to the preferred leader",
    "unclean": "unclean election",
    "recovery": "a replica could lead again",
    "creation": "created so",
    "unknown": "unknown (its creation is not in the log)",
    "min_isr_config": "change of min.insync.replicas",
    "other": "",
}


def cause_text(cause: str | None, broker: int | None) -> str:
    """`fencing of broker 2`."""
    text = _CAUSES.get(cause or "", cause or "")
    if "{}" not in text:
        return text
    return (
        text.format(broker)
        if broker is not None
        else text.removesuffix(" of broker {}").removesuffix(", broker {}")
    )


def author_text(row: Row) -> str:
    """Who asked for it: a principal and where from, or the controller that wrote it."""
    if row["principal"] is not None:
        via = "@".join(each for each in (row["client_id"], row["client_address"]) if each)
        return f"{row['principal']} ({via})" if via else row["principal"]
    if row["controller_id"] is None:
        return ""
    return f"controller {row['controller_id']}"


def author_columns(*, has_notes: bool) -> tuple[str, ...]:
    """The columns for `author_cells`: logs without notes tell no more than which controller wrote it."""
    return ("~who", "~why") if has_notes else ("written by",)


def author_cells(row: Row, *, has_notes: bool) -> tuple[str, ...]:
    return (author_text(row), reason_text(row)) if has_notes else (author_text(row),)


def reason_text(row: Row) -> str:
    """The request, what it was for, and why in the words of whoever asked."""
    if row["principal"] is None:
        return ""
    parts = [part for part in (row["api"], row["reason"]) if part]
    said = f' "{row["operator_reason"]}"' if row["operator_reason"] else ""
    return ": ".join(parts) + said
