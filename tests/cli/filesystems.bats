#!/usr/bin/env bats
# The unit tests of what depends on the filesystem, once more on real ones, each in a mount namespace of its
# own. TEST_* variables tell them where to work and what must be possible there.

load helpers

program_of() {
	: "${STAGETOOL_BUILD:?where the tests are built}"
	need_root
	need_mounts
	program=$STAGETOOL_BUILD/tests/unit/$1
	[ -x "$program" ] || skip "$program is not built"
	mkdir -p mnt
}

# mounted MOUNT-ARGUMENTS...: runs $program in that mount.
mounted() {
	# shellcheck disable=SC2016
	run unshare -m bash -c 'program=$1; shift; mount "$@" mnt || exit 99
		chmod 1777 mnt && TEST_DIR=$PWD/mnt "$program"' - "$program" "$@"
	echo "$output"
	[ "$status" -ne 99 ] || skip "can not mount: $output"
	[ "$status" -eq 0 ]
}

# on_image PROGRAM MKFS...: runs tests/unit/PROGRAM in a new filesystem, made by MKFS IMAGE.
on_image() {
	program_of "$1"
	shift
	need "$1"
	truncate -s 400M image
	"$@" image >mkfs.log 2>&1 || skip "$* fails here: $(tail -n 1 mkfs.log)"
	mounted -o loop image
}

@test "bytes on XFS with reflink: files are cloned" {
	TEST_REFLINK=yes on_image test_range mkfs.xfs -q -m reflink=1
}

@test "bytes on XFS without reflink" {
	TEST_REFLINK=no on_image test_range mkfs.xfs -q -m reflink=0
}

@test "bytes on ext4" {
	TEST_REFLINK=no on_image test_range mkfs.ext4 -q -b 4096
}

@test "attributes on XFS" {
	on_image test_meta mkfs.xfs -q
}

@test "attributes on ext4" {
	on_image test_meta mkfs.ext4 -q -b 4096
}

@test "a time that ext4 with small inodes can not hold is reported" {
	TEST_CLAMPS=yes on_image test_meta mkfs.ext4 -q -b 4096 -I 128
}

@test "publishing on XFS" {
	on_image test_publish mkfs.xfs -q
}

@test "publishing on ext4" {
	on_image test_publish mkfs.ext4 -q -b 4096
}

@test "bytes, attributes and publishing on tmpfs" {
	for name in test_range test_publish test_meta; do
		program_of "$name"
		mounted -t tmpfs none
	done
}
