#!/bin/sh
# install-python.sh DIRECTORY: the image's own Python, an environment that the agent may write, since pip
# refuses to write to a distribution's. It sees what that has, such as ipykernel. May be run again.
set -eu
[ $# -eq 1 ] || { echo 'usage: install-python.sh DIRECTORY' >&2; exit 2; }
if [ ! -x "$1/bin/pip" ]; then
	mkdir -p "$(dirname "$1")"
	python3 -m venv --system-site-packages "$1"
fi
# a Python that did not come with the distribution knows nothing of its packages
if ! "$1/bin/python" -c 'import ipykernel' 2>/dev/null; then
	echo "install-python.sh: $(command -v python3) has no ipykernel, pip installs it" >&2
	"$1/bin/pip" install --no-cache-dir ipykernel
fi
