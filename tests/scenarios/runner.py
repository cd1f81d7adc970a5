"""Runs a script against fresh replicas, and holds what they did against what was recorded."""

import difflib
from pathlib import Path

from tests.scenarios.cluster import Cluster
from tests.scenarios.commands import carry_out
from tests.scenarios.errors import ScenarioError
from tests.scenarios.script import Block, Command, Script, read_script

FOLDER = Path(__file__).resolve().parent


def scenario_files() -> list[Path]:
    return sorted(FOLDER.glob("*/*.txt"))


def run_script(script: Script) -> str:
    """The file's text with the outputs of this run; raises ScenarioError at the first command that fails."""
    cluster = Cluster()
    return script.with_outputs([_run_block(script, block, cluster) for block in script.blocks])


def _run_block(script: Script, block: Block, cluster: Cluster) -> list[str]:
    for command in block.commands:
        try:
            carry_out(cluster, command.words)
        except ScenarioError as error:
            raise _located(error, script, command, cluster) from error
        except (AssertionError, ValueError) as error:
            raised = ScenarioError(f"'{command.text}' raised {type(error).__name__}: {error}")
            raise _located(raised, script, command, cluster) from error
    return cluster.transcript.take()


def _located(error: ScenarioError, script: Script, command: Command, cluster: Cluster) -> ScenarioError:
    """With its place, and with what the block had put out before."""
    lines = cluster.transcript.take()
    before = "\n    ".join(["", "before that, in this block:", *lines]) if lines else ""
    return ScenarioError(f"{error.message}{before}", str(script.path), command.line)


def difference(path: Path) -> str:
    """A unified diff from what was recorded to what happened now; empty when they agree."""
    recorded = path.read_text()
    found = run_script(read_script(path))
    name = str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else path.name
    lines = difflib.unified_diff(
        recorded.splitlines(), found.splitlines(), f"{name} (recorded)", f"{name} (now)", lineterm="", n=6
    )
    return "\n".join(lines)


def rewrite(path: Path) -> bool:
    """Record what happens now; answers whether that differs from what was recorded."""
    text = run_script(read_script(path))
    if text == path.read_text():
        return False
    path.write_text(text)
    return True
