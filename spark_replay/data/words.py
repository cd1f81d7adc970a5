"""Words in the tables of the partitions' logs that questions ask for; without Spark, as most questions need none."""

from typing import Final

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"

HIGH_WATERMARK: Final = "high_watermark"
RECOVERY_POINT: Final = "recovery_point"
LOG_START: Final = "log_start"
CLEANER: Final = "cleaner"
