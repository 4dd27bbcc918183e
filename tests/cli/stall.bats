#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2154
# Servers that do not answer: a FUSE filesystem whose server stopped (its callers can be killed), or has taken a
# request and never answers (they can not), and a frozen ext4 (they can not).
load helpers
load node

teardown() {
	cd /
	[ -n "${work:-}" ] || return 0
	[ -z "${server:-}" ] || kill -9 "$server" 2>/dev/null || true
	if mountpoint -q "$work/ice"; then
		fsfreeze -u "$work/ice" 2>/dev/null || true
		wait_until umount "$work/ice"
	fi
	umount -l "$work/far" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}

# stall [LINE OF [stagetool]]...: a node whose workers may stand still for a second.
stall() {
	node_setup
	{
		printf '[stagetool]\nstate_dir = %s\nstall_limit = 1s\n' "$work/state"
		printf '[tier nvme]\npath = %s\nmin_free = 0\n' "$work/tier"
	} >conf
}

# far MICROSECONDS: "src" as seen through a server that takes so long for each answer; its pid is in "server".
far() {
	[ -c /dev/fuse ] || skip "needs /dev/fuse"
	make -C "${STAGETOOL_BUILD:?the build under test}" -s bench/slowfs >/dev/null 2>&1 ||
		skip "the slow filesystem can not be built"
	mkdir far
	"$STAGETOOL_BUILD/bench/slowfs" src far "$1" 3>&- &
	server=$!
	wait_until grep -q " $work/far fuse" /proc/mounts
}

# ice: a filesystem that can be frozen, the user's.
ice() {
	mkdir ice
	truncate -s 20M image
	mkfs.ext4 -q image
	mount -o loop image ice || skip "needs loop devices and ext4"
	chown 65534 ice
	fsfreeze -f ice || skip "needs a filesystem that can be frozen"
}

lock_is_held() {
	! flock -n "state/jobs/$1.lock" true
}

lock_is_free() {
	flock -n "state/jobs/$1.lock" true
}

@test "stall: a stage-in from a server that stopped fails, with the reason, and leaves nothing" {
	stall
	echo one >src/f
	far 0
	kill -STOP "$server"
	specs "in $work/far:data"
	hook prolog
	status_is 1
	reports "verdict job"
	says "nothing moved for 1 s (stall_limit): a file server does not answer?"
	tier_is_empty
	record_says 7.0 failed false
	[ -z "$(find state/jobs -name '*.lock')" ]
}

@test "stall: a stage-in that can not even be killed fails; its stage is left until it has ended" {
	stall
	echo one >src/f
	far 3600000000
	specs "in $work/far:data"
	hook prolog
	status_is 1
	reports "verdict job"
	says "which copies, can not be ended"
	record_says 7.0 failed true
	lock_is_held 7.0
	hook epilog
	status_is 0
	reports "verdict ok"
	run stagetool reap --conf=conf
	status_is 0
	says "another process works on it"
	says "can not be ended"
	[ -d tier/7.0 ]
	# the server is gone: the kernel lets go of who asked it
	kill -9 "$server"
	wait_until lock_is_free 7.0
	run stagetool reap --conf=conf
	status_is 0
	tier_is_empty
	record_says 7.0 failed false
	[ -z "$(find state/jobs -name '*.lock')" ]
}

@test "stall: results that a dead server holds up are kept, others are sent, and they too once it is back" {
	stall
	specs "out results:$work/ice/x"
	touch slurm-7.out
	chown 65534 slurm-7.out
	export STAGE_JOB_STDOUT=$work/slurm-7.out
	hook prolog
	as_job sh -c 'mkdir results && echo seven >results/r'
	ice
	hook epilog
	reports "verdict job"
	says "which copies, can not be ended"
	record_says 7.0 kept true
	grep -q "the data is kept in $work/tier/7.0 on n1" slurm-7.out
	lock_is_held 7.0
	# another job, whose results could not be sent for another reason, gets its turn
	job 8
	mkdir closed
	specs "out results:$work/closed/x"
	hook prolog
	as_job sh -c 'mkdir results && echo eight >results/r'
	hook epilog
	record_says 8.0 kept true
	chown 65534 closed
	run stagetool reap --now --conf=conf
	status_is 0
	says "job 7.0: another process works on it: "
	says "job 8.0: all results are back"
	[ "$(cat closed/x/r)" = eight ]
	[ "$(cat tier/7.0/results/r)" = seven ]
	# the server is back: what was left ends without having published anything
	fsfreeze -u ice
	wait_until lock_is_free 7.0
	[ ! -e ice/x/r ]
	run stagetool reap --now --conf=conf
	status_is 0
	says "job 7.0: all results are back"
	[ "$(cat ice/x/r)" = seven ]
	tier_is_empty
	no_temporaries ice/x
}

@test "stall: a reap ends what a stopped server holds up and goes on to the next job" {
	stall
	chown 65534 src
	specs "out results:$work/far/x"
	hook prolog
	as_job sh -c 'mkdir results && echo seven >results/r'
	# not delivered at first
	mkdir -m 755 far
	hook epilog
	record_says 7.0 kept true
	rmdir far
	far 0
	job 8
	specs "out results:$work/far/x8" "out results:$work/out/x8"
	hook prolog
	as_job sh -c 'mkdir results && echo eight >results/r'
	kill -STOP "$server"
	run stagetool reap --now --conf=conf
	status_is 1
	says "job 7.0: kept, tried in vain"
	says "nothing moved for 1 s"
	record_says 7.0 kept true
	lock_is_free 7.0
	kill -CONT "$server"
	run stagetool reap --now --conf=conf
	status_is 0
	[ "$(cat src/x/r)" = seven ]
}
