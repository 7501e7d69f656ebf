#!/bin/sh
# preflight.sh base|runtime: reports what this image lacks as a base, or as a runtime image. Prints one line
# for each need, "ok" or "lacks"; status 1 if the image lacks something. Needs nothing but a shell.
kind=${1:-runtime}
root=${HANDRAIL_ROOT:-}
prefix=${HANDRAIL_PREFIX:-/openhands}
lacking=0

tell() { # NAME HINT, after a test
	if [ "$test" = 0 ]; then
		echo "ok $1"
	else
		lacking=1
		echo "lacks $1: $2"
	fi
}
check() { # NAME HINT COMMAND...
	name=$1 hint=$2
	shift 2
	"$@" >/dev/null 2>&1
	test=$?
	tell "$name" "$hint"
}
any_manager() {
	command -v apt-get || command -v apk || command -v dnf || command -v microdnf || command -v yum
}
bash_new() {
	# shellcheck disable=SC2016 # for that bash
	bash -c '[ "${BASH_VERSINFO[0]}" -ge 4 ]'
}
is_root() {
	[ "$(id -u)" = 0 ]
}

case $kind in
base)
	check 'package manager' 'unsupported base image (no apt, apk or dnf)' any_manager
	check 'root' 'the build runs as root; the image sets another USER' is_root
	check '/tmp' 'the build needs a writable /tmp' test -w "$root/tmp"
	check 'id' 'coreutils or busybox is needed' command -v id
	;;
runtime)
	check 'handraild' "$prefix/sbin/handraild cannot be executed" test -x "$prefix/sbin/handraild"
	check 'handraild works' 'a library of it is missing: ldd tells which' "$prefix/sbin/handraild" --version
	check 'start command' "$prefix/micromamba/bin/micromamba is missing" test -x "$prefix/micromamba/bin/micromamba"
	check 'bash' 'bash 4 or later is needed' bash_new
	check 'nginx' 'install the package nginx' command -v nginx
	check 'git' 'install the package git' command -v git
	check 'user openhands' 'install-deps.sh makes it' id -u openhands
	check "$prefix/code" 'the start command runs there' test -d "$prefix/code"
	check "$prefix/workspace" 'install-deps.sh makes it' test -d "$prefix/workspace"
	;;
*)
	echo 'usage: preflight.sh base|runtime' >&2
	exit 2
	;;
esac
exit $lacking
