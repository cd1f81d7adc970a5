"""`kquorum audit` in the tree of commands. Its group is a file of its own: `kquorum --help` imports this one only."""

from kquorum.cli.command_tree import Command, Panel

COMMAND = Command(
    run="kquorum.cli.commands.audit.group:audit_app",
    summary="Replay logs into tables that answer questions.",
    panel=Panel.READ,
    place=3,
    examples={
        "check": (
            "kquorum audit check audit",
            "kquorum audit check kquorum-data --replicas-only",
            "kquorum audit check audit --state-hashes status.json",
        ),
        "build": ("kquorum audit build kquorum-data --out audit",),
        "data": (
            "kquorum audit data /var/lib/kafka/data --out audit",
            "kquorum audit data broker-1/data broker-2/data broker-3/data --out audit",
        ),
        "partitions": (
            "kquorum audit partitions audit replicas",
            "kquorum audit partitions audit lag --group billing --topic orders",
        ),
        "archive": (
            "kquorum audit archive kquorum-data --to /backup/audit",
            "kquorum audit archive /backup/audit --verify",
            "kquorum audit build /backup/audit --out audit",
        ),
        "stream": (
            "kquorum audit stream kquorum-data/node-1 --out audit",
            "kquorum audit stream grpc://localhost:9291 --out audit --until-caught-up",
        ),
        "report": (
            "kquorum audit report audit --out report.html",
            "kquorum audit report /var/lib/kafka --since 2026-03-11T02:00:00Z",
        ),
        "as-of": (
            "kquorum audit as-of audit --time 2026-01-31T12:00 --topic orders",
            "kquorum audit as-of /var/lib/kafka/__cluster_metadata-0 --offset 20000",
            "kquorum audit as-of audit --table partitions --csv -",
        ),
        "diff": (
            "kquorum audit diff audit 2026-01-31T11:00 2026-01-31T12:00",
            "kquorum audit diff audit 19000 end --topic orders --json",
        ),
        "timeline": (
            "kquorum audit timeline audit --topic orders --partition 3",
            "kquorum audit timeline audit --broker 2 --since 2026-01-31 --limit 0",
        ),
        "who": ("kquorum audit who audit --topic orders",),
        "unavailable": (
            "kquorum audit unavailable audit --min-ms 1000",
            "kquorum audit unavailable audit --quorum",
        ),
        "churn": ("kquorum audit churn audit --since 2026-01-31 --by day",),
        "sql": (
            "kquorum audit sql audit",
            "kquorum audit sql audit 'SELECT topic_name FROM topics ORDER BY 1'",
            "kquorum audit sql audit 'DESCRIBE partition_history'",
        ),
    },
)
