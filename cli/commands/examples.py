"""The examples at the end of each `--help`; lines of 76 characters at most, so that 80 columns show them whole."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "format": (
        "kquorum format -c quorum.toml",
        "kquorum format -c quorum.toml --node 1 --standalone",
        "kquorum format -c quorum.toml --node 2 --no-initial-controllers",
        "kquorum format -c server.properties -t $(kquorum random-uuid) -s",
        "kquorum format ... -S 'SCRAM-SHA-512=[name=admin,password=...]'",
        "kquorum format ... -I 1@host1:9093:DIRECTORYID,2@host2:9093:DIRECTORYID",
    ),
    "random-uuid": ("kquorum format -c server.properties -t $(kquorum random-uuid)",),
    "certs make": (
        "kquorum certs make certs -c examples/secured.toml --client admin",
        "kquorum certs make certs -c quorum.toml --host broker.example.org",
    ),
    "start": ("kquorum start -c quorum.toml --node 1", "kquorum start -c server.properties"),
    "up": ("kquorum up -c examples/quorum.toml", "kquorum up -c examples/quorum.toml --free-ports"),
    "demo": ("kquorum demo",),
    "brokers": (
        "kquorum brokers -c quorum.toml",
        "kquorum brokers -b localhost:9092",
        "kquorum brokers --grpc localhost:9291 --check --max-lag 100",
    ),
    "watch": (
        "kquorum watch -c quorum.toml",
        "kquorum watch --grpc localhost:9291 --kind partition_changed --json",
    ),
    "audit check": (
        "kquorum audit check audit",
        "kquorum audit check kquorum-data --replicas-only",
        "kquorum audit check audit --state-hashes status.json",
    ),
    "audit build": ("kquorum audit build kquorum-data --out audit",),
    "audit archive": (
        "kquorum audit archive kquorum-data --to /backup/audit",
        "kquorum audit archive /backup/audit --verify",
        "kquorum audit build /backup/audit --out audit",
    ),
    "audit stream": (
        "kquorum audit stream kquorum-data/node-1 --out audit",
        "kquorum audit stream grpc://localhost:9291 --out audit --until-caught-up",
    ),
    "audit report": (
        "kquorum audit report audit --out report.html",
        "kquorum audit report /var/lib/kafka --since 2026-03-11T02:00:00Z",
    ),
    "audit as-of": (
        "kquorum audit as-of audit --time 2026-01-31T12:00 --topic orders",
        "kquorum audit as-of /var/lib/kafka/__cluster_metadata-0 --offset 20000",
        "kquorum audit as-of audit --table partitions --csv -",
    ),
    "audit diff": (
        "kquorum audit diff audit 2026-01-31T11:00 2026-01-31T12:00",
        "kquorum audit diff audit 19000 end --topic orders --json",
    ),
    "audit timeline": (
        "kquorum audit timeline audit --topic orders --partition 3",
        "kquorum audit timeline audit --broker 2 --since 2026-01-31 --limit 0",
    ),
    "audit who": ("kquorum audit who audit --topic orders",),
    "audit unavailable": (
        "kquorum audit unavailable audit --min-ms 1000",
        "kquorum audit unavailable audit --quorum",
    ),
    "audit churn": ("kquorum audit churn audit --since 2026-01-31 --by day",),
    "audit sql": (
        "kquorum audit sql out 'SELECT cause, sum(1) FROM leader_changes GROUP BY 1'",
        "kquorum audit sql audit 'DESCRIBE partition_history'",
    ),
    "quorum status": (
        "kquorum quorum status -c quorum.toml",
        "kquorum quorum status --bootstrap-controller localhost:9191 --json",
    ),
    "quorum add-voter": (
        "kquorum quorum add-voter 4 -c quorum.toml --dry-run",
        "kquorum quorum add-voter 4 --bootstrap-controller localhost:9191 --wait",
    ),
    "quorum remove-voter": (
        "kquorum quorum remove-voter 3 -c quorum.toml --dry-run",
        "kquorum quorum remove-voter 3 --bootstrap-controller localhost:9191",
    ),
    "quorum transfer-leadership": ("kquorum quorum transfer-leadership 2 -c quorum.toml",),
    "quorum upgrade": ("kquorum quorum upgrade -c quorum.toml --dry-run",),
    "quorum history": (
        "kquorum quorum history -c quorum.toml",
        "kquorum quorum history kquorum-data/node-1 kquorum-data/node-2",
    ),
    "topics create": (
        "kquorum topics create orders -p 6 -r 3 -c quorum.toml",
        "kquorum topics create orders --wait-all -c quorum.toml",
    ),
    "topics list": (
        "kquorum topics list -b localhost:9092",
        "kquorum topics list --consistency linearizable -c quorum.toml",
    ),
    "topics describe": ("kquorum topics describe orders -b localhost:9092 --json",),
    "topics delete": ("kquorum topics delete orders -b localhost:9092",),
    "configs describe": (
        "kquorum configs describe --topic orders -b localhost:9092",
        "kquorum configs describe --broker 11 --all -c quorum.toml",
    ),
    "configs keys": (
        "kquorum configs keys log.retention",
        "kquorum configs keys num.partitions --json",
    ),
    "configs alter": (
        "kquorum configs alter --topic orders --set retention.ms=60000 -c q.toml",
        "kquorum configs alter --cluster --delete log.retention.ms -c q.toml",
    ),
    "features describe": ("kquorum features describe -c quorum.toml",),
    "features upgrade": (
        "kquorum features upgrade --metadata 4.1 --dry-run -c quorum.toml",
        "kquorum features upgrade -f group.version=1 -b localhost:9092",
    ),
    "features downgrade": ("kquorum features downgrade -f share.version=0 -b localhost:9092",),
    "log dump": (
        "kquorum log dump kquorum-data/node-1 --topic orders",
        "kquorum log dump kquorum-data/node-1 --type KRaftVoters --json",
        "kquorum log dump /var/lib/kafka/__cluster_metadata-0 --no-noop",
    ),
    "log verify": (
        "kquorum log verify kquorum-data/node-1",
        "kquorum log verify /var/lib/kafka/__cluster_metadata-0 --json",
    ),
    "log state-hash": ("kquorum log state-hash kquorum-data/node-1 --offset 180",),
    "log diff": ("kquorum log diff kquorum-data/node-1 --from 120 --to 180",),
    "snapshot list": ("kquorum snapshot list kquorum-data/node-1",),
    "snapshot verify": ("kquorum snapshot verify kquorum-data/node-1",),
    "snapshot diff": ("kquorum snapshot diff old.checkpoint new.checkpoint",),
    "snapshot take": (
        "kquorum snapshot take kquorum-data/node-1 --output .",
        "kquorum snapshot take kquorum-data/node-1 --committed",
    ),
}


def epilog_of(command: str) -> str | None:
    """What typer prints after the options."""
    lines = EXAMPLES.get(command)
    return None if lines is None else "\n".join(("For example:", *(f"  {line}" for line in lines)))
