#!/usr/bin/env bash
# Writes requirements.lock from pyproject.toml, and the lock of the tools that do so: every package that `make setup`
# installs, in one version, with the SHA-256 of each of its files. uv, in the folder of $1, resolves.
# A version that the lock has stays, where pyproject.toml still allows it; what follows $1 goes to uv, and
# `--upgrade` or `--upgrade-package NAME` there takes the newest.
set -euo pipefail

bin=${1:?usage: make_lock.sh BIN [ARGUMENT...]}
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# $1 is the lock. A lock that stays the same is left alone: environments are made again for a newer one.
# --universal: one lock for Linux and macOS on every processor, and for every Python from 3.11 on.
compile() {
    local lock=$1 fresh=$1.tmp
    shift
    trap 'rm -f "$fresh"' RETURN
    [ ! -e "$lock" ] || cp "$lock" "$fresh"
    "$bin/uv" pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
        --custom-compile-command 'make lock' --output-file "$fresh" "$@" >/dev/null
    cmp -s "$fresh" "$lock" || mv "$fresh" "$lock"
}

# The build backend as well, which builds kquorum and those packages that are published as sources only.
backend='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'
"$bin/python" -c "$backend" | compile requirements.lock "$@" --extra dev pyproject.toml -
compile tools/lock-tools.lock "$@" tools/lock-tools.in
