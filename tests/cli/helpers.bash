# Common to all tests of the command. STAGETOOL is the binary under test.
# shellcheck shell=bash disable=SC2154

# Each test works in a directory of its own, on a filesystem with xattrs and ACLs.
setup() {
	: "${STAGETOOL:?the path of the stagetool binary to test}"
	STAGETOOL=$(realpath "$STAGETOOL")
	work=$(mktemp -d --tmpdir stagetool-cli.XXXXXX)
	chmod 755 "$work"
	cd "$work" || return 1
	mkdir s
	unset STAGE_DIR STAGE_TIER
}

teardown() {
	cd /
	rm -rf "$work" 2>/dev/null && return
	chmod -R u+rwX "$work"
	rm -rf "$work"
}

# The binary under test, as "run stagetool copy s d".
stagetool() {
	"$STAGETOOL" "$@"
}

# Runs a command as an ordinary user without any right of root's. The name of a function will not do.
as_user() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all -- "$@"
}

# The same, as a member of group $1 too.
as_member() {
	local group=$1
	shift
	setpriv --reuid 65534 --regid 65534 --groups "$group" --bounding-set -all --inh-caps -all -- "$@"
}

# Gives the work directory to the user of as_user, and a copy of the binary in it: the way to either may be
# closed to them. What they are given is relative to the work directory.
give_user() {
	cp "$STAGETOOL" stagetool-binary
	STAGETOOL=./stagetool-binary
	chown -R 65534:65534 "$work"
}

need_root() {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
}

need() {
	command -v "$1" >/dev/null || skip "needs $1"
}

# Everything find knows of a tree, one line an entry: type, mode, owner, size, ns times, link count, target,
# name. Directories without their size.
tree_list() {
	(cd "$1" && find . -mindepth 1 \( -type d -printf '%y %m %U:%G - %T@ %P\n' \) -o \
		-printf '%y %m %U:%G %s %T@ %n %l %P\n' | LC_ALL=C sort)
}

# The content of every file, one line each.
tree_sums() {
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0r md5sum --)
}

tree_xattrs() {
	(cd "$1" && find . -print0 | LC_ALL=C sort -z | xargs -0r getfattr -hdm - -- 2>/dev/null)
}

# Two trees are the same in names, contents and attributes, as tools that are not ours see them.
same_tree() {
	diff <(tree_sums "$1") <(tree_sums "$2") && diff <(tree_list "$1") <(tree_list "$2") &&
		diff <(tree_xattrs "$1") <(tree_xattrs "$2")
}

# status N: the last "run" ended so; else shows what it said.
status_is() {
	[ "$status" -eq "$1" ] && return 0
	echo "exit status $status, expected $1; output:" >&2
	echo "$output" >&2
	return 1
}

# The last "run" said this (a fixed string).
says() {
	[[ $output == *"$1"* ]] && return 0
	echo "not said: $1; output:" >&2
	echo "$output" >&2
	return 1
}

says_not() {
	[[ $output != *"$1"* ]] && return 0
	echo "said: $1; output:" >&2
	echo "$output" >&2
	return 1
}

# No temporary file of ours is left below a directory.
no_temporaries() {
	[ -z "$(find "$1" -name '.stagetool-tmp.*' -print -quit)" ]
}

# Runs a command and prints the most memory it held, in KiB, into the file "peak": its own VmHWM, read while
# it runs. Returns the command's status.
with_peak() {
	local pid line high=0

	"$@" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		line=$(grep VmHWM "/proc/$pid/status" 2>/dev/null || true)
		line=${line//[^0-9]/}
		[ "${line:-0}" -gt "$high" ] && high=$line
		sleep 0.05
	done
	echo "$high" >"$work/peak"
	wait "$pid"
}

# Skips where no mount of our own can be made.
need_mounts() {
	unshare -m true 2>/dev/null || skip "needs a mount namespace"
}

# Mounts a tmpfs with these options on a directory, in a mount namespace of its own, runs a command there and
# lists the directory ("ls: " before each name) once it has ended. Returns the command's status.
on_tmpfs() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m bash -c '
		dir=$1
		mount -t tmpfs -o "$2" tmpfs "$dir" || exit 99
		shift 2
		"$@"
		status=$?
		ls -A "$dir" | sed "s/^/ls: /"
		exit $status' - "$@"
}

# Skips a test of a verb that this build does not have.
need_verb() {
	"$STAGETOOL" help "$1" >/dev/null 2>&1 || skip "no verb $1"
}

# Waits until a condition (a command) is true; fails after 30 s.
wait_until() {
	local tries
	for ((tries = 0; tries < 1500; tries++)); do
		"$@" && return 0
		sleep 0.02
	done
	echo "waited in vain: $*" >&2
	return 1
}

# Whether a directory holds a temporary file of ours.
has_temporary() {
	[ -n "$(find "$1" -maxdepth 1 -name '.stagetool-tmp.*' -print -quit 2>/dev/null)" ]
}

# Sanitizers make everything slower and bigger.
sanitized() {
	[ -n "${STAGETOOL_SANITIZER:-}" ]
}
