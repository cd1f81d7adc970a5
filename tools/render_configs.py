"""Write docs/configs.md anew from the definitions: `python -m tools.render_configs`. A test holds it fresh."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from metadata.configs import client_metrics, groups, topics
from metadata.configs.definition import ConfigDefinition, Update
from metadata.configs.resolution import TOPIC_SYNONYMS, group_synonym
from metadata.configs.table import BROKER_PARTS

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "configs.md"

_HEAD = """\
# Configs

Written by `python -m tools.render_configs` from `metadata/configs`; change that, not this page.

What is checked when configs are altered and told when they are described (`kquorum configs`). Kafka's names, types,
defaults and limits are those of Kafka 4.3. A value counts in this order: the resource's own, the broker's, that of all
brokers, the node's config file, the default. Topics and groups take what they lack from the brokers' keys named beside.
Brokers also take keys that are not listed here, for plugins may have their own; topics, groups and client metrics take
no others. Values of the type password are written to the log and never shown.

This program stores no records of topics, so a broker of its own applies few of these; a broker of Kafka that follows
this quorum applies them all. A node of kquorum applies at once, when they are altered: the defaults and limits of
topics and groups, `min.insync.replicas` and `unclean.leader.election.enable`. What concerns its listeners, connections,
TLS and SASL it reads from its config file when it starts; the column "while it runs" is what brokers of Kafka take.
"""


def render() -> str:
    parts = [_HEAD]
    parts += _section("Topics", topics.DEFINITIONS, "broker's key", _topic_keys)
    parts += _section("Groups", groups.DEFINITIONS, "broker's key", lambda name: group_synonym(name) or "")
    parts += _section("Client metrics", client_metrics.DEFINITIONS, "", lambda _: "")
    for part in BROKER_PARTS:
        title = (part.__doc__ or "").strip().removesuffix(".")
        parts += _section(title, part.DEFINITIONS, "while it runs", None)
    return "\n".join(parts) + "\n"


def _topic_keys(name: str) -> str:
    return ", ".join(synonym.name for synonym in TOPIC_SYNONYMS.get(name, ()))


def _section(
    title: str, definitions: Iterable[ConfigDefinition], last: str, last_of: Callable[[str], str] | None
) -> list[str]:
    header = ("config", "type", "default", "lawful", "importance", last, "what it is")
    columns = [name for name in header if name]
    lines = [f"\n## {title}\n", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for each in sorted(definitions, key=lambda definition: definition.name):
        if each.is_internal:
            continue
        cells = [
            f"`{each.name}`",
            each.type.name.lower(),
            "" if each.default is None else f"`{each.default}`" if each.default else "empty",
            "" if each.validator is None else each.validator.words,
            str(each.importance),
        ]
        if last:
            cells.append(_update(each) if last_of is None else last_of(each.name))
        lines.append(f"| {' | '.join((*cells, each.documentation))} |")
    return lines


def _update(definition: ConfigDefinition) -> str:
    return "" if definition.update is Update.READ_ONLY else str(definition.update)


def main() -> int:
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
