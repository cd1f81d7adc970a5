"""Finds the Java that Spark would use, so that its absence is one line of ours instead of a hundred of Spark's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from kquorum.cli.failures import CliError, ExitStatus

OLDEST_JAVA = 17
REMEDY = (
    f"the audit runs on Spark, which needs Java {OLDEST_JAVA} or newer: install it (Debian and Ubuntu: "
    f"apt install openjdk-{OLDEST_JAVA}-jre-headless; macOS: brew install openjdk@{OLDEST_JAVA}) "
    "or point JAVA_HOME at it"
)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def check_java() -> None:
    """Raises CliError if there is no Java, or only one older than Spark runs on."""
    java = _find_java()
    version = _version_of(java)
    if version is None:
        raise CliError(f"{java} does not say its version; {REMEDY}", status=ExitStatus.MISSING_REQUIREMENT)
    if version < OLDEST_JAVA:
        raise CliError(f"{java} is Java {version}; {REMEDY}", status=ExitStatus.MISSING_REQUIREMENT)


def major_version(text: str) -> int | None:
    """The major version in the output of `java -version`: 17 of "17.0.15", 8 of "1.8.0_392"."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def _find_java() -> str:
    """As Spark looks for it: JAVA_HOME, and the path only without one."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise CliError(
                f"JAVA_HOME is {home}, which has no bin/java; {REMEDY}", status=ExitStatus.MISSING_REQUIREMENT
            )
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise CliError(f"no Java found; {REMEDY}", status=ExitStatus.MISSING_REQUIREMENT)
    return found


def _version_of(java: str) -> int | None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return major_version(done.stderr + done.stdout)
