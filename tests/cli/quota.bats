#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# Project quotas on real filesystems: a job is held to its --stage-size, and its id is free again.
load helpers
load node

FIRST=3000000000

# on_quotas KIND FUNCTION [IDS]: FUNCTION's commands, each of which must succeed, in a mount namespace in
# which the tier is a new KIND of filesystem that enforces project quotas; IDS (default 9) may be had.
on_quotas() {
	node_setup
	need_mounts
	need "mkfs.$1"
	need xfs_quota
	conf min_free=0 "project_ids = $FIRST-$((FIRST + ${3:-9} - 1))"
	truncate -s 400M image
	case $1 in
	ext4) mkfs.ext4 -q -b 4096 -O project,quota image ;;
	xfs) mkfs.xfs -q image ;;
	esac >mkfs.log 2>&1 || skip "mkfs.$1 fails here: $(tail -n 1 mkfs.log)"
	echo hello >src/f
	export STAGETOOL FIRST work
	run unshare -m --propagation private bash -euc '
		mount -o loop,prjquota image tier || exit 99
		rm -rf tier/lost+found
		chmod 711 tier
		eval "$1"
		set -x
		"$2"' - "$(declare -f specs job as_user as_job record_says prolog epilog project_of limit_of \
		write_mib no_room worker_is_gone start_hook says_in "$2")" "$2"
	[ "$status" -ne 99 ] || skip "no project quotas on $1 here: ${lines[0]}"
	status_is 0
}

prolog() { STAGE_REPORT_FD=9 "$STAGETOOL" prolog --conf=conf 9>report; }
epilog() { STAGE_REPORT_FD=9 "$STAGETOOL" epilog --conf=conf 9>report; }

# says_in FILE TEXT
says_in() { grep -qF -- "$2" "$1" || ! cat "$1"; }

# project_of PATH: the project of a directory, as another tool sees it.
project_of() { lsattr -pd "$1" | awk '{print $1}'; }

# limit_of ID: its hard limit in KiB, as another tool sees it; nothing where it has none.
limit_of() {
	xfs_quota -f -x -c 'report -p -n -N' tier | awk -v id="#$1" '$1 == id && $4 > 0 {print $4}'
}

# write_mib N FILE: N MiB into a file of the job's stage, as the job does it.
write_mib() { as_job dd if=/dev/zero of="$2" bs=1M count="$1" status=none; }

# no_room N FILE: that fails, as it does where a filesystem (XFS) or quota (ext4) is full.
no_room() {
	! write_mib "$1" "$2" 2>said || return 1
	grep -qE 'Disk quota exceeded|No space left on device' said
}

held() {
	specs "size $((20 << 20))" "in $work/src:data" "out big:$work/out/"
	prolog
	[ "$(project_of tier/7.0)" = $FIRST ]
	[ "$(project_of tier/7.0/data)" = $FIRST ]
	[ "$(limit_of $FIRST)" = 20480 ]
	[ "$(jq .project_id state/jobs/7.0.json)" = $FIRST ]
	no_room 40 big
	[ "$(stat -c %s tier/7.0/big)" -gt $((18 << 20)) ]
	[ "$(stat -c %s tier/7.0/big)" -le $((20 << 20)) ]
	# another one has a limit of its own
	job 8
	prolog
	[ "$(project_of tier/8.0)" = $((FIRST + 1)) ]
	write_mib 15 big
	no_room 25 more
	# who did not say how much is held to nothing
	job 9
	specs "in $work/src:data"
	prolog
	[ "$(project_of tier/9.0)" = 0 ]
	[ "$(jq .project_id state/jobs/9.0.json)" = 0 ]
	write_mib 60 big
	# a stage that is full to the brim gives its results back
	job 7
	size=$(stat -c %s tier/7.0/big)
	epilog
	[ "$(stat -c %s out/big)" = "$size" ]
	[ ! -e tier/7.0 ]
	record_says 7.0 done false
	[ "$(jq .project_id state/jobs/7.0.json)" = 0 ]
	[ -z "$(limit_of $FIRST)" ]
	[ "$(limit_of $((FIRST + 1)))" = 20480 ]
}

@test "quota: ext4 holds a job to its --stage-size, and no other one" {
	on_quotas ext4 held
}

@test "quota: XFS holds a job to its --stage-size, and no other one" {
	on_quotas xfs held
}

by_device() {
	specs "size $((20 << 20))" "in $work/src:data"
	strace -f -qq -o trace -e trace=quotactl_fd,quotactl -e inject=quotactl_fd:error=ENOSYS \
		"$STAGETOOL" prolog --conf=conf
	says_in trace 'quotactl_fd('
	[ "$(limit_of $FIRST)" = 20480 ]
	no_room 40 big
	strace -f -qq -o trace -e trace=quotactl_fd -e inject=quotactl_fd:error=ENOSYS \
		"$STAGETOOL" epilog --conf=conf
	[ -z "$(limit_of $FIRST)" ]
}

@test "quota: a kernel without quotactl_fd is asked by the device" {
	need strace
	sanitized && skip "strace and a sanitizer"
	[ -d /dev/block ] || skip "needs /dev/block"
	on_quotas ext4 by_device
}

killed() {
	(cd src && seq 8000 | xargs touch)
	specs "size $((100 << 20))" "in $work/src:data"
	start_hook prolog staging
	kill -9 "$hook_pid"
	wait "$hook_pid" || true
	worker_is_gone
	[ "$(limit_of $FIRST)" = 102400 ]
	"$STAGETOOL" reap --conf=conf
	record_says 7.0 failed false
	[ ! -e tier/7.0 ]
	[ -z "$(limit_of $FIRST)" ]
	[ "$(jq .project_id state/jobs/7.0.json)" = 0 ]
	# killed after the stage was gone, before the limit was: as if it still had it
	job 8
	prolog
	jq '.state = "planned"' state/jobs/8.0.json >new
	cp new state/jobs/8.0.json
	rm -r tier/8.0
	id=$(jq .project_id new)
	[ "$(limit_of "$id")" = 102400 ]
	"$STAGETOOL" reap --conf=conf
	[ -z "$(limit_of "$id")" ]
	record_says 8.0 failed false
	"$STAGETOOL" reap --conf=conf
}

@test "quota: what a killed prolog left is cleared away with its limit: ext4" {
	on_quotas ext4 killed
}

@test "quota: what a killed prolog left is cleared away with its limit: XFS" {
	on_quotas xfs killed
}

too_big() {
	head -c 30M /dev/urandom >src/big
	specs "size $((20 << 20))" "in $work/src:data"
	code=0
	prolog || code=$?
	[ $code -eq 1 ]
	says_in report 'verdict job does not fit into --stage-size on n1: 30.'
	says_in report '20.0 MiB are allowed'
	[ -z "$(ls tier)" ]
	[ -z "$(limit_of $FIRST)" ]
	record_says 7.0 failed false
}

@test "quota: an input that is larger than --stage-size is refused before a byte moves" {
	on_quotas ext4 too_big
}

few() {
	specs "size $((20 << 20))" "in $work/src:data"
	prolog
	job 8
	code=0
	prolog || code=$?
	[ $code -eq 6 ]
	says_in report "verdict node tier nvme: $work/tier: project_ids = $FIRST-$FIRST: all of them are in use"
	[ ! -e tier/8.0 ]
	[ ! -e state/jobs/8.0.json ]
	job 7
	epilog
	job 9
	prolog
	[ "$(project_of tier/9.0)" = $FIRST ]
}

@test "quota: with no id left it is the node's fault; an id is used again: ext4" {
	on_quotas ext4 few 1
}

@test "quota: with no id left it is the node's fault; an id is used again: XFS" {
	on_quotas xfs few 1
}

unknown() {
	specs "size $((20 << 20))" "in $work/src:data"
	prolog
	rm state/jobs/7.0.json
	job 8
	prolog
	[ "$(project_of tier/8.0)" = $((FIRST + 1)) ]
	# a stage that somebody else removed
	as_job touch result
	rm -r tier/8.0
	epilog || true
	record_says 8.0 failed false
	[ -z "$(limit_of $((FIRST + 1)))" ]
	# the stage of another attempt
	job 9
	prolog
	job 9 1
	prolog
	[ "$(jq .project_id state/jobs/9.0.json)" = 0 ]
	[ "$(project_of tier/9.1)" != $FIRST ]
}

@test "quota: the id of a directory that no record knows is not given to another one" {
	on_quotas ext4 unknown
}

@test "quota: a tier that should have quotas and has none is the node's fault" {
	node_setup
	conf min_free=0 project_ids=$FIRST-$((FIRST + 9))
	specs "size 1048576" "in $work/src:data"
	hook prolog
	status_is 6
	reports "verdict node tier nvme: $work/tier: project_ids = "
	says "mount option prjquota"
	tier_is_empty
	[ ! -e state/jobs/7.0.json ]
	specs "in $work/src:data"
	hook prolog
	status_is 0
}
