"""Write the outcomes of `test_support_matrix.py` into the table of docs/interop.md.

    python -m tests.interop.matrix_table FILE

FILE has a JSON line for each row; a later line of the same row replaces an earlier one.
"""

import json
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
BEGIN, END = "<!-- support matrix: begin -->", "<!-- support matrix: end -->"
DIRECTIONS = {
    "kafka-brokers": "Kafka's brokers on our controllers",
    "our-brokers": "our brokers on Kafka's controllers",
}


def table(lines: list[str]) -> str:
    """Markdown: a row for each direction and release."""
    rows = {}
    for line in lines:
        row = json.loads(line)
        rows[row["direction"], row["release"]] = row["cells"]
    names = list(dict.fromkeys(name for cells in rows.values() for name in cells))
    written = [f"| | release | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for direction, label in DIRECTIONS.items():
        releases = sorted(
            (release for way, release in rows if way == direction),
            key=lambda each: tuple(map(int, each.split("."))),
        )
        for release in releases:
            outcomes = [rows[direction, release].get(name, "-").partition(":")[0] for name in names]
            written.append(f"| {label} | {release} | {' | '.join(outcomes)} |")
    return "\n".join(written)


def main() -> None:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    lines = Path(sys.argv[1]).read_text().splitlines()
    PAGE.write_text(f"{before}{BEGIN}\n{table(lines)}\n{END}{after}")


if __name__ == "__main__":
    main()
