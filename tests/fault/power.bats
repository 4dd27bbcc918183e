#!/usr/bin/env bats
# The power goes: what a filesystem's device holds at that moment is all there is. The device is an image on an XFS
# with reflinks, so that a clone of it is one moment, without what is still in memory.

setup() {
	: "${STAGETOOL:?the path of the stagetool binary to test}"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	work=$(mktemp -d)
	cd "$work" || return 1
	mkdir host shared after stage
	truncate -s 2G host.img
	mkfs.xfs -q -m reflink=1 host.img
	mount -o loop host.img host || skip "needs loop devices and XFS"
}

teardown() {
	cd /
	[ -n "${work:-}" ] || return 0
	local place
	for place in after shared host; do
		! mountpoint -q "$work/$place" || umount "$work/$place"
	done
	rm -rf --one-file-system "$work"
}

# A shared filesystem of kind $1, and results for it: small files, some large ones.
make_shared() {
	truncate -s 600M host/device
	case $1 in
	ext4) mkfs.ext4 -q host/device ;;
	xfs) mkfs.xfs -q host/device ;;
	esac
	mount -o loop host/device shared
	local d
	for d in {1..20}; do
		mkdir -p "stage/results/$d"
		head -c 400000 /dev/urandom | split -b 4000 - "stage/results/$d/f"
	done
	head -c 30000000 /dev/urandom >stage/results/large
}

# What would be there after a power failure now. $1: for XFS, which does not mount one identity twice.
power_off() {
	! mountpoint -q after || umount after
	rm -f host/clone.*
	# another name each time: the loop device of the last one may not have let go of it yet
	clones=$((${clones:-0} + 1))
	cp --reflink=always host/device "host/clone.$clones"
	mount -o "loop$1" "host/clone.$clones" after
}

# Each file that has its final name is whole.
all_whole() {
	local name
	while IFS= read -r -d '' name; do
		cmp "after/out/$name" "stage/results/$name" || return 1
	done < <(cd after/out 2>/dev/null && find . -type f ! -name '.stagetool-tmp.*' -print0)
}

reported_is_there() {
	make_shared "$1"
	"$STAGETOOL" out -q --dir stage "results:$work/shared/out"
	power_off "$2"
	diff -r stage/results after/out
}

no_half_file() {
	make_shared "$1"
	"$STAGETOOL" out -q --dir stage "results:$work/shared/out" 3>&- &
	local tool=$! seen=0
	while kill -0 $tool 2>/dev/null; do
		power_off "$2"
		all_whole
		seen=$((seen + 1))
	done
	wait $tool
	echo "$seen moments"
	[ "$seen" -ge 1 ]
	power_off "$2"
	diff -r stage/results after/out
}

@test "power off: ext4: what was reported as sent is there" {
	reported_is_there ext4 ''
}

@test "power off: XFS: what was reported as sent is there" {
	reported_is_there xfs ,nouuid
}

@test "power off: ext4: at any moment what has its final name is whole" {
	no_half_file ext4 ''
}

@test "power off: XFS: at any moment what has its final name is whole" {
	no_half_file xfs ,nouuid
}

@test "power off: a copy that does not wait for the disk is seen to lose what it wrote" {
	make_shared xfs
	"$STAGETOOL" copy -q stage/results shared/out
	power_off ,nouuid
	run diff -r stage/results after/out
	[ "$status" -ne 0 ]
}
