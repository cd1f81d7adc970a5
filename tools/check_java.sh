#!/usr/bin/env bash
# Spark 4 runs on Java 17 or newer: says so in one line (exit status 7) before anything else starts.
set -euo pipefail

java=java
if [ -n "${JAVA_HOME:-}" ]; then
    java="$JAVA_HOME/bin/java"
fi
if ! command -v "$java" >/dev/null; then
    echo "kquorum: no Java found ($java); the Spark replay needs Java 17 or newer." \
        "On Debian and Ubuntu: apt-get install openjdk-17-jre-headless" >&2
    exit 7
fi
banner=$("$java" -version 2>&1 | grep -m1 'version "') || banner="(no version told)"
version=$(sed -E 's/.*version "(1\.)?([0-9]+).*/\2/' <<<"$banner")
if ! [[ "$version" =~ ^[0-9]+$ ]] || [ "$version" -lt 17 ]; then
    echo "kquorum: $java is too old: $banner; the Spark replay needs Java 17 or newer (set JAVA_HOME to one)" >&2
    exit 7
fi
