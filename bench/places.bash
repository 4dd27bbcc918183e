# Where trees lie: filesystems that are made for one run each, and the slow one. Sourced by run.
# shellcheck shell=bash disable=SC2154

declare -A mounted=() slow_pid=()

# place_make KIND NAME: a fresh, empty place; its directory in $place.
#   tmpfs         a directory of the scratch
#   xfs, ext4     a new filesystem on a loop device over the scratch: its own cost, not a disk's
#   slow:US       a directory of the scratch, behind a filesystem that waits US microseconds per operation;
#                 without the wait it is $place_direct
place_make() {
	local kind=$1 name=$2
	place=$scratch/$name
	mkdir -p "$place" || return 1
	place_direct=$place
	case $kind in
	tmpfs) ;;
	xfs | ext4)
		truncate -s "${place_size:-8G}" "$place.img" &&
			place_format "$kind" "$place.img" &&
			mount -o loop,noatime "$place.img" "$place" && mounted[$place]=1
		;;
	slow:*)
		place_direct=$place.direct
		mkdir -p "$place_direct" && place_slow "${kind#slow:}"
		;;
	esac
}

place_format() {
	case $1 in
	xfs) mkfs.xfs -q -f "$2" ;;
	ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$2" ;;
	esac
}

place_slow() {
	local i
	"$build/bench/slowfs" "$place_direct" "$place" "$1" &
	slow_pid[$place]=$!
	for ((i = 0; i < 100; i++)); do
		mountpoint -q "$place" && mounted[$place]=1 && return 0
		sleep 0.05
	done
	echo "bench: the slow filesystem does not come up" >&2
	return 1
}

# Takes a place down, with what is in it.
place_end() {
	local place=$1
	if [ -n "${mounted[$place]:-}" ]; then
		umount "$place" || umount -l "$place"
		unset "mounted[$place]"
	fi
	if [ -n "${slow_pid[$place]:-}" ]; then
		wait "${slow_pid[$place]}"
		unset "slow_pid[$place]"
	fi
	rm -rf --one-file-system "$place" "$place.img" "$place.direct"
}

places_end() {
	local place
	for place in "${!mounted[@]}"; do place_end "$place"; done
}

counts_reset() {
	[ -z "${slow_pid[$1]:-}" ] || setfattr -n user.slowfs -v 0 "$1"
}

# The operations since then: all but those that nobody waits for.
counts_total() {
	if [ -z "${slow_pid[$1]:-}" ]; then
		echo 0
	else
		getfattr --absolute-names --only-values -n user.slowfs "$1" |
			awk '$1 != "release" && $1 != "releasedir" { n += $2 } END { print n }'
	fi
}

caches_drop() {
	sync && echo 3 >/proc/sys/vm/drop_caches
}
