"""`python -m tests.scenarios FILE ...` runs scripts and shows what happens; `--rewrite` records it."""

import argparse
import sys
from pathlib import Path

from tests.scenarios.errors import ScenarioError
from tests.scenarios.runner import rewrite, run_script, scenario_files
from tests.scenarios.script import read_script


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.scenarios",
        description=__doc__,
        epilog="For example: python -m tests.scenarios tests/scenarios/prevote/*  -  tests/scenarios/README.md lists "
        "the commands of a script.",
    )
    parser.add_argument("files", nargs="*", type=Path, help="scenario files; all of them without any")
    parser.add_argument(
        "--rewrite", action="store_true", help="record the outputs; read the diff before you commit"
    )
    options = parser.parse_args()
    failures = 0
    for path in options.files or scenario_files():
        try:
            if options.rewrite:
                print(f"{path}: {'rewritten' if rewrite(path) else 'as it was'}")
            else:
                print(run_script(read_script(path)))
        except ScenarioError as error:
            print(error, file=sys.stderr)
            failures += 1
        except (OSError, UnicodeDecodeError) as error:
            print(f"{path}: no script that can be read: {error}", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
