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
	chmod -R u+rwX "$work" 2>/dev/null || true
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

# Two trees are the same in names, contents and attributes, as tools that are not ours see them.
same_tree() {
	diff -r --no-dereference "$1" "$2" && diff <(tree_list "$1") <(tree_list "$2") &&
		diff <(cd "$1" && getfattr -hRdm - . 2>/dev/null) \
			<(cd "$2" && getfattr -hRdm - . 2>/dev/null)
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
	while read -r line < <(grep VmHWM "/proc/$pid/status" 2>/dev/null); do
		line=${line//[^0-9]/}
		[ "${line:-0}" -gt "$high" ] && high=$line
		sleep 0.02
	done
	echo "$high" >"$work/peak"
	wait "$pid"
}

# Skips where $1 can not be a mount of our own (no privilege).
need_mounts() {
	unshare -m true 2>/dev/null || skip "needs a mount namespace"
}
