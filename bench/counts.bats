#!/usr/bin/env bats
# How many operations stagetool asks of a shared filesystem for a file. Counts, unlike times, are the same on every
# machine; what nobody waits for (release) is left out. 20 directories of 25 files.

bats_require_minimum_version 1.5.0

setup() {
	: "${STAGETOOL:?the path of the stagetool binary to test}" "${STAGETOOL_BUILD:?its build directory}"
	work=$(mktemp -d)
	cd "$work" || return 1
	mkdir direct slow
	mkdir -p tree
	for d in {1..20}; do
		mkdir "tree/$d"
		for f in {1..25}; do echo "$d $f" >"tree/$d/$f"; done
	done
	find tree -exec touch -d '2 days ago' {} +
	cp -a tree direct/tree
	"$STAGETOOL_BUILD/bench/slowfs" direct slow 0 3>&- &
	slowfs=$!
	until mountpoint -q slow; do sleep 0.05; done
}

teardown() {
	cd /
	umount "$work/slow" && wait "$slowfs"
	rm -rf --one-file-system "$work"
}

# What has been cached of names and attributes is over. From now on an operation takes $1 us.
forget() {
	umount slow
	wait "$slowfs"
	"$STAGETOOL_BUILD/bench/slowfs" direct slow "${1:-0}" 3>&- &
	slowfs=$!
	until mountpoint -q slow; do sleep 0.05; done
}

count() {
	setfattr -n user.slowfs -v 0 slow
	"$@"
	getfattr --only-values -n user.slowfs slow | awk '$2' >counts
	cat counts
	waited=$(awk '$1 !~ /^release/ { n += $2 } END { print n }' counts)
	echo "$waited for 500 files and 20 directories: $(awk -v n="$waited" 'BEGIN { print n / 500 }') a file"
}

kind() {
	awk -v kind="$1" '$1 == kind { n = $2 } END { print n + 0 }' counts
}

@test "in: open, list of attributes and read are all that a file needs" {
	count "$STAGETOOL" in -q --threads 4 --dir stage slow/tree
	diff -r tree stage/tree
	[ "$(kind open)" -eq 500 ]
	[ "$(kind read)" -le 505 ]
	[ "$(kind xattr)" -le 525 ]
	[ "$(kind getattr)" -le 25 ]
	[ "$waited" -le $((500 * 4)) ]
}

@test "copy from it: the same" {
	count "$STAGETOOL" copy -q --threads 4 slow/tree copy
	diff -r tree copy
	[ "$(kind open)" -eq 500 ]
	[ "$(kind read)" -le 505 ]
	[ "$waited" -le $((500 * 4)) ]
}

@test "out: each result is written, made durable and renamed once" {
	mkdir stage
	cp -a tree stage/tree
	count "$STAGETOOL" out -q --threads 4 --dir stage "tree:$work/slow/new"
	diff -r tree direct/new
	for one in create write rename; do [ "$(kind $one)" -eq 500 ]; done
	[ "$(kind setattr)" -le 545 ]
	[ "$(kind fsync)" -le 545 ]
	[ "$waited" -le $((500 * 13)) ]
}

@test "out of an unchanged stage: nothing below TO" {
	"$STAGETOOL" in -q --dir stage slow/tree
	forget
	count "$STAGETOOL" out -q --threads 4 --dir stage "tree:$work/slow/tree"
	[ "$waited" -le 10 ]
}

@test "out of one change: only its directories" {
	"$STAGETOOL" in -q --dir stage slow/tree
	echo new >stage/tree/7/7
	forget
	count "$STAGETOOL" out -q --threads 4 --dir stage "tree:$work/slow/tree"
	[ "$(cat direct/tree/7/7)" = new ]
	[ "$waited" -le 40 ]
}

@test "copy onto a tree that is the same: no file is opened" {
	cp -a tree copy
	count "$STAGETOOL" copy -q --threads 4 slow/tree copy
	[ "$(kind open)" -eq 0 ] && [ "$(kind read)" -eq 0 ]
	[ "$waited" -le $((500 * 2)) ]
}

@test "plan: says that staging pays where each operation waits" {
	forget 5000
	run "$STAGETOOL" plan --dir stage in slow/tree
	[ "$status" -eq 0 ]
	[[ $output == *"it pays: read where it is, one file after the other, that would be about "* ]]
	[ ! -e stage ]
}

@test "directories of a slow source are listed side by side, also where no file is read" {
	mkdir copy
	for d in {1..100}; do mkdir -p "direct/dirs/$d" && echo "$d" >"direct/dirs/$d/f"; done
	cp -a direct/dirs copy/dirs
	forget 50000
	"$STAGETOOL" copy -q slow/dirs copy/dirs 3>&- &
	pid=$! most=0
	while now=$(awk '/^Threads/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
		[ "$now" -le "$most" ] || most=$now
		sleep 0.02
	done
	wait "$pid"
	echo "$most threads"
	[ "$most" -ge 16 ]
}
