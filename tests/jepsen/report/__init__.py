"""What a run shows: on the terminal, as pages and as pictures."""

from tests.jepsen.report.writer import write_report as write_report
