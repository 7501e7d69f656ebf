#!/bin/sh
# Makes a base image fit for a runtime image: packages, user, directories. May be run again.
#   install-deps.sh SET... [--with-browser]      the sets of deps.conf, which lies beside it
# Which distribution this is says /etc/os-release or the package manager, not the image's name.
set -eu

here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
# another root and other programs are for the tests
root=${HANDRAIL_ROOT:-}
sets=
for arg in "$@"; do
	case $arg in
	--with-browser) sets="$sets browser" ;;
	-*)
		echo "install-deps.sh: unknown option $arg" >&2
		exit 2
		;;
	*) sets="$sets $arg" ;;
	esac
done

manager() {
	for m in apt-get apk dnf microdnf yum; do
		if command -v "$m" >/dev/null 2>&1; then
			echo "$m"
			return
		fi
	done
	# shellcheck source=/dev/null
	. "$root/etc/os-release" 2>/dev/null || true
	echo "unsupported base image (no apt, apk or dnf)${PRETTY_NAME:+: $PRETTY_NAME}" >&2
	exit 1
}

packages() { # MANAGER
	for set in $sets; do
		sed -n "s/^$1 $set //p" "$here/deps.conf"
	done | tr '\n' ' '
}

user() {
	# clients of OpenHands V1 start its image with id 10001
	wanted=1000
	case " $sets " in *' agent '*) wanted=10001 ;; esac
	if id -u openhands >/dev/null 2>&1; then
		[ $wanted = 1000 ] || [ "$(id -u openhands)" = $wanted ] || {
			echo "install-deps.sh: the base has an account openhands whose id is not $wanted" >&2
			exit 1
		}
		return
	fi
	# this id if it is free
	number="-u $wanted"
	if [ $wanted = 1000 ] && getent passwd $wanted >/dev/null 2>&1; then
		number=
	fi
	# shellcheck disable=SC2086 # words
	useradd -m -s /bin/bash $number openhands
}

directories() {
	for d in /openhands /openhands/code /openhands/workspace /openhands/logs /openhands/etc; do
		mkdir -p "$d"
	done
	chown openhands:openhands /openhands /openhands/workspace /openhands/logs
	chmod 2775 /openhands/workspace
}

# The path is one that clients compare; the Dockerfile has it on the PATH, and the kernel is of it.
python() {
	/bin/sh "$here/install-python.sh" /openhands/poetry/openhands-ai-5O4_aCHf-py3.12
	chown -R openhands:openhands /openhands/poetry
}

# The agent server of OpenHands V1, which the agent cannot change, and the directories of its image.
agent() {
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))' || {
		echo 'install-deps.sh: the agent server needs Python 3.12 or later: use a base such as debian:trixie' >&2
		exit 1
	}
	python3 -m venv /openhands/agent-server
	# uv finds versions that fit each other in seconds, pip in an hour; without bytecode each start takes a minute
	/openhands/agent-server/bin/pip install --no-cache-dir uv
	# shellcheck disable=SC2046 # words
	/openhands/agent-server/bin/uv pip install --no-cache --compile-bytecode \
		--python /openhands/agent-server/bin/python $(packages pip)
	mkdir -p /workspace/project
	chown -R openhands:openhands /workspace
}

sudo_rights() {
	mkdir -p /etc/sudoers.d
	printf 'openhands ALL=(ALL) NOPASSWD:ALL\n' >/etc/sudoers.d/openhands
	chmod 440 /etc/sudoers.d/openhands
}

m=$(manager)
case $m in
apt-get)
	wanted=$(packages apt)
	[ "${HANDRAIL_DRY_RUN:-}" = 1 ] && { echo "$m $wanted"; exit; }
	export DEBIAN_FRONTEND=noninteractive
	# services of what is installed are not to be started here
	policy=/usr/sbin/policy-rc.d
	[ -e $policy ] || { made=$policy; printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy; }
	apt-get -q update
	# shellcheck disable=SC2086 # words
	apt-get -q -y install --no-install-recommends $wanted
	apt-get -q clean
	rm -rf /var/lib/apt/lists/* ${made:+"$made"}
	;;
apk)
	wanted=$(packages apk)
	[ "${HANDRAIL_DRY_RUN:-}" = 1 ] && { echo "$m $wanted"; exit; }
	# shellcheck disable=SC2086
	apk add --no-cache $wanted
	;;
*)
	wanted=$(packages dnf)
	[ "${HANDRAIL_DRY_RUN:-}" = 1 ] && { echo "$m $wanted"; exit; }
	# shellcheck disable=SC2086
	"$m" -y install $wanted
	"$m" clean all
	;;
esac
user
directories
sudo_rights
case " $sets " in *' jupyter '*) python ;; *' agent '*) agent ;; esac
