#!/bin/sh
# install-shims.sh PREFIX [STAND_IN]: installs the programs by which an unmodified client starts this image
# with its own command.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
prefix=$1
mkdir -p "$prefix/bin" "$prefix/micromamba/bin" "$prefix/libexec/handrail/shims" "$prefix/code"
for entry in start agent-server; do
	sed "s|@prefix@|$prefix|g" "$here/$entry.sh.in" >"$prefix/libexec/handrail/$entry"
	chmod 755 "$prefix/libexec/handrail/$entry"
done
for shim in micromamba poetry python; do
	sed "s|@prefix@|$prefix|g" "$here/$shim.sh.in" >"$prefix/libexec/handrail/shims/$shim"
	chmod 755 "$prefix/libexec/handrail/shims/$shim"
done
cp "$here/preflight.sh" "$prefix/libexec/handrail/preflight"
chmod 755 "$prefix/libexec/handrail/preflight"
ln -sf ../../libexec/handrail/shims/micromamba "$prefix/micromamba/bin/micromamba"
# clients run this file by its path to show changes; handrail-git does the work
utils=$prefix/code/openhands/runtime/utils
mkdir -p "$utils"
for command in changes diff; do
	sed "s|@prefix@|$prefix|g; s|@command@|$command|g" "$here/git-helper.py.in" >"$utils/git_$command.py"
	chmod 755 "$utils/git_$command.py"
done
# STAND_IN: a directory on the PATH for a python3 that knows these two programs, if there is no other python3
stand_in=${2-/usr/local/bin}
if ! command -v python3 >/dev/null 2>&1; then
	mkdir -p "$stand_in"
	sed "s|@prefix@|$prefix|g" "$here/python3.sh.in" >"$stand_in/python3"
	chmod 755 "$stand_in/python3"
fi
