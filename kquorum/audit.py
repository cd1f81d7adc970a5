"""The audit for programs: build its tables from metadata logs, open them, and ask.

    spark = start_session(Path("/tmp/work"))
    build(spark, Path("/var/lib/kafka/metadata"), Path("audit"))
    tables = open_audit(spark, Path("audit"))
    tables.table("leader_changes").where("cause = 'fencing'").show()

Questions run on Spark with `open_audit`, and on DuckDB, in this process, with `open_in_duckdb`.
`spark.dataSource.register(KraftLogDataSource)` makes logs readable as `spark.read.format("kraft_log")`. docs/audit.md
describes tables and questions.
"""

from kquorum.spark_replay.audit import AuditResult, build
from kquorum.spark_replay.audit_folder import AuditTables, open_audit
from kquorum.spark_replay.audit_manifest import NoAudit
from kquorum.spark_replay.engine import functions
from kquorum.spark_replay.engine.duckdb_tables import DuckTables, open_in_duckdb
from kquorum.spark_replay.questions.as_of import as_of, states_at
from kquorum.spark_replay.questions.broker_timeline import broker_timeline
from kquorum.spark_replay.questions.churn import Span, churn
from kquorum.spark_replay.questions.diff import diff
from kquorum.spark_replay.questions.idle_gaps import idle_gaps
from kquorum.spark_replay.questions.moments import (
    Moment,
    NoSuchMoment,
    first_moment,
    last_moment,
    moment_at_offset,
    moment_at_time,
    with_state_offsets,
)
from kquorum.spark_replay.questions.timeline import requests, topic_timeline
from kquorum.spark_replay.questions.unavailable import unavailable
from kquorum.spark_replay.session import start_session
from kquorum.spark_replay.source import KraftLogDataSource

__all__ = [
    "AuditResult",
    "AuditTables",
    "DuckTables",
    "KraftLogDataSource",
    "Moment",
    "NoAudit",
    "NoSuchMoment",
    "Span",
    "as_of",
    "broker_timeline",
    "build",
    "churn",
    "diff",
    "first_moment",
    "functions",
    "idle_gaps",
    "last_moment",
    "moment_at_offset",
    "moment_at_time",
    "open_audit",
    "open_in_duckdb",
    "requests",
    "start_session",
    "states_at",
    "topic_timeline",
    "unavailable",
    "with_state_offsets",
]
