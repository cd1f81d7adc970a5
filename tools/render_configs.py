"""Write docs/configs.md from the definitions: `python -m tools.render_configs`. A test holds it fresh."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from kquorum.metadata.configs.definition import ConfigDefinition, Update
from kquorum.metadata.configs.removed import REMOVED
from kquorum.metadata.configs.table import AUTHORIZER_CONFIGS, BROKER_PARTS, BY_SCOPE, Scope

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "configs.md"

_HEAD = """\
# Configs

Written by `python -m tools.render_configs` from `metadata/configs`; change that, not this page. `kquorum configs keys`
prints the same table.

Each key is defined once: the checks of a config file, of altered configs and of described configs (`kquorum configs`)
all use this table. Kafka's names, types, defaults and limits are those of Kafka 4.3. A value counts in this order: the
resource's own, the broker's, that of all brokers, the node's config file, the default. Topics and groups take what they
lack from the brokers' keys named beside. Brokers also take keys that are not listed here, for plugins may have their
own; topics, groups and client metrics take no others. Values of the type password are written to the log and never
shown. A node's config file takes the keys of brokers and of the authorizer, and no others.

The column "used by" names the part of a kquorum node that reads the key. "No effect yet" names the feature that will
read it: until then the node accepts and describes the key, and warns about it when it stands in the config file. A
broker of Kafka that follows this quorum applies all of its keys. A node of kquorum applies at once, when they are
altered: the defaults and limits of topics and groups, `min.insync.replicas` and `unclean.leader.election.enable`. It
reads the other keys from its config file when it starts; the column "while it runs" is what brokers of Kafka take.

A node takes fewer values than Kafka for some keys which it reads at its start: times, counts and sizes of 0 that would
stop it are refused (`controller.quorum.*.ms`, `broker.heartbeat.interval.ms`, `broker.session.timeout.ms`,
`connections.max.idle.ms`, `default.replication.factor` and others: at least 1), while `metadata.log.segment.bytes` may
be as small as 1024, for which Kafka has an internal key. Key stores and trust stores are PEM whatever the default of
`ssl.keystore.type` says, and no SASL mechanism is offered unless `sasl.enabled.mechanisms` names it. `log.dirs` has no
default, where Kafka takes `/tmp/kafka-logs`.
"""


def render() -> str:
    parts = [_HEAD]
    for scope, title in (
        (Scope.TOPIC, "Topics"),
        (Scope.GROUP, "Groups"),
        (Scope.CLIENT_METRICS, "Client metrics"),
    ):
        has_synonyms = any(each.synonyms for each in BY_SCOPE[scope].values())
        last = "broker's key" if has_synonyms else ""
        parts += _section(title, BY_SCOPE[scope].values(), last, _synonyms)
    for title, definitions in BROKER_PARTS.items():
        parts += _section(
            f"Brokers: {title[0].lower() + title[1:] if title[1].islower() else title}",
            definitions,
            "while it runs",
            _update,
        )
    parts += _section("Authorizer", AUTHORIZER_CONFIGS.values(), "", _synonyms)
    parts += _removed()
    return "\n".join(parts) + "\n"


def _section(
    title: str, definitions: Iterable[ConfigDefinition], last: str, last_of: Callable[[ConfigDefinition], str]
) -> list[str]:
    header = ("config", "type", "default", "lawful", "importance", last, "used by", "what it is")
    columns = [name for name in header if name]
    lines = [f"\n## {title}\n", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for each in sorted(definitions, key=lambda definition: definition.name):
        if each.is_internal:
            continue
        cells = [
            f"`{each.name}`",
            each.type.name.lower(),
            "" if each.default is None else f"`{each.default}`" if each.default else "empty",
            each.lawful,
            str(each.importance),
            *([last_of(each)] if last else ()),
            str(each.used_by),
            each.documentation,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _removed() -> list[str]:
    lines = [
        "\n## Keys that Kafka removed\n",
        "A config file that has one is refused, or read with a warning.\n",
        "| config | removed with | in a config file | instead |",
        "|---|---|---|---|",
    ]
    for each in sorted(REMOVED.values(), key=lambda removed: removed.name):
        effect = "refused" if each.is_refused else "no effect"
        lines.append(f"| `{each.name}` | Kafka {each.version} | {effect} | {each.remedy} |")
    return lines


def _synonyms(definition: ConfigDefinition) -> str:
    return ", ".join(synonym.name for synonym in definition.synonyms)


def _update(definition: ConfigDefinition) -> str:
    return "" if definition.update is Update.READ_ONLY else str(definition.update)


def main() -> int:
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
