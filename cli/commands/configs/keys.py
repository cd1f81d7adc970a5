"""`kquorum configs keys`: the table of configs, without asking a broker."""

from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.options import AsJson

if TYPE_CHECKING:
    from kquorum.metadata.configs.definition import ConfigDefinition
    from kquorum.metadata.configs.table import Scope


def keys(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Show only these keys; part of a name is enough."),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            help="Show only the keys of topics, groups, client, brokers or authorizer.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List all config keys: type, default, valid values, the part that reads the key, and its meaning."""
    from kquorum.cli.output import print_json

    found = _found(names or [], scope)
    if as_json:
        print_json({"keys": [_as_json(scope, each) for scope, each in found]})
    elif len(found) == 1:
        _print_one(*found[0])
    else:
        _print_table(found)


def _found(names: list[str], scope: str | None) -> "list[tuple[Scope, ConfigDefinition]]":
    """A whole name goes before the names that it is a part of. Raises BadParameter for one that finds nothing."""
    from kquorum.metadata.configs.table import BY_SCOPE

    scopes = [each for each in BY_SCOPE if scope is None or each.split()[0] == scope.lower()]
    if not scopes:
        known = ", ".join(each.split()[0] for each in BY_SCOPE)
        raise typer.BadParameter(f"there is no scope {scope}; there are {known}", param_hint="--scope")
    every = [(each, definition) for each in scopes for _, definition in sorted(BY_SCOPE[each].items())]
    found = [] if names else [pair for pair in every if not pair[1].is_internal]
    for name in names:
        matching = [pair for pair in every if pair[1].name == name] or [
            pair for pair in every if name in pair[1].name
        ]
        if not matching:
            from kquorum.node.config.key_hints import unknown_key

            raise typer.BadParameter(f"there is no key {name}{unknown_key(name)}", param_hint="NAME")
        found += [pair for pair in matching if pair not in found]
    return found


def _print_table(found: "list[tuple[Scope, ConfigDefinition]]") -> None:
    from kquorum.cli.output import print_table

    rows = [
        (
            each.name,
            str(scope),
            each.type.name.lower(),
            _shown_default(each),
            _dynamic(scope, each),
            str(each.used_by),
        )
        for scope, each in found
    ]
    columns = ("config", "of", "type", "~default", "while it runs", "used by")
    print_table(f"{len(rows)} configs", columns, rows, spare=("while it runs", "type"), folding="used by")


def _print_one(scope: "Scope", definition: "ConfigDefinition") -> None:
    from kquorum.cli.output import say

    lines = [
        f"{definition.name} ({scope})",
        f"  {definition.documentation}",
        f"  type: {definition.type.name.lower()}",
        f"  default: {_shown_default(definition)}",
        f"  lawful: {definition.lawful or 'any value'}",
        f"  while it runs: {_dynamic(scope, definition)}",
        f"  used by: {definition.used_by}",
    ]
    if definition.synonyms:
        lines.append(f"  default of all: {', '.join(each.name for each in definition.synonyms)}")
    for line in lines:
        say(line)


def _shown_default(definition: "ConfigDefinition") -> str:
    return "none" if definition.default is None else definition.default or "empty"


def _dynamic(scope: "Scope", definition: "ConfigDefinition") -> str:
    """What brokers of Kafka take; of topics, groups and client metrics every config may change at any time."""
    from kquorum.metadata.configs.table import Scope

    return str(definition.update) if scope in (Scope.BROKER, Scope.AUTHORIZER) else "dynamic"


def _as_json(scope: "Scope", definition: "ConfigDefinition") -> dict[str, object]:
    return {
        "name": definition.name,
        "scope": str(scope),
        "type": definition.type.name.lower(),
        "default": definition.default,
        "lawful": definition.lawful,
        "importance": str(definition.importance),
        "update": _dynamic(scope, definition),
        "used_by": {"effect": str(definition.used_by.effect), "words": definition.used_by.words},
        "synonyms": [each.name for each in definition.synonyms],
        "internal": definition.is_internal,
        "documentation": definition.documentation,
    }
