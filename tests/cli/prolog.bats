#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# stagetool prolog, as slurmd or a site's own Prolog runs it, without Slurm.
load helpers
load node

@test "prolog: a job that asks for nothing costs nothing and touches nothing" {
	node_setup
	rmdir state
	rm conf
	hook prolog
	status_is 0
	[ -z "$output" ]
	[ ! -s report ]
	[ ! -e state ]
}

@test "prolog: the data is in a private stage that is the user's, and the steps are told" {
	node_setup
	mkdir src/sub
	echo one >src/sub/f
	ln -s nowhere src/l
	chmod 640 src/sub/f
	chgrp 65534 src/sub/f
	specs "in $work/src:data" "out results:$work/out/%j"
	umask 0
	hook prolog
	status_is 0
	reports "verdict ok staged in 2 files, 4 B in"
	grep -q "from $work/src\$" report
	[ "$(stat -c '%a %u %g' tier/7.0)" = "700 65534 65534" ]
	[ "$(cat tier/7.0/data/sub/f)" = one ]
	[ "$(readlink tier/7.0/data/l)" = nowhere ]
	record_says 7.0 ready true
	[ "$(stat -c '%a %u' state/jobs/7.0.json)" = "600 0" ]
	grep -qx "dir $work/tier/7.0" state/steps/7
	grep -q "^notice stagetool: n1: staged in 2 files" state/steps/7
}

@test "prolog: the second of two runs changes nothing and says the same" {
	node_setup
	echo one >src/f
	specs "in $work/src:data"
	hook prolog
	first=$(cat report)
	inode=$(stat -c %i tier/7.0/data/f)
	rm state/steps/7
	hook prolog
	status_is 0
	[ "$(cat report)" = "$first" ]
	[ "$(stat -c %i tier/7.0/data/f)" = "$inode" ]
	[ -e state/steps/7 ]
}

@test "prolog: standard descriptors may be closed" {
	node_setup
	echo one >src/f
	specs "in $work/src:data"
	"$STAGETOOL" prolog --conf=conf <&- >&- 2>&-
	[ "$(cat tier/7.0/data/f)" = one ]
	record_says 7.0 ready true
}

@test "prolog: names of every kind" {
	node_setup
	odd=$'src/a b\n"c\\\xff:,'
	mkdir "$odd"
	echo one >"$odd/"$'x\ty'
	specs "in $work/src:data"
	hook prolog
	status_is 0
	diff -r src tier/7.0/data
	specs "in $work/src/missing"$'\xff'":data"
	job 8
	hook prolog
	status_is 1
	reports "verdict job stage-in"
	[ "$(wc -l <report)" -eq 1 ]
}

@test "prolog: a source that is not there fails the job, with its path, and leaves nothing" {
	node_setup
	specs "in $work/src/missing:data"
	hook prolog
	status_is 1
	reports "verdict job stage-in $work/src/missing:data: "
	grep -q "No such file or directory" report
	tier_is_empty
	record_says 7.0 failed false
	grep -q "^failed stage-in $work/src/missing:data" state/steps/7
	first=$(cat report)
	hook prolog
	status_is 1
	[ "$(cat report)" = "$first" ]
}

@test "prolog: what root can read and the user can not is not staged" {
	node_setup
	echo secret >src/f
	chmod 700 src
	specs "in $work/src:data"
	hook prolog
	status_is 1
	reports "verdict job stage-in"
	grep -q "Permission denied" report
	tier_is_empty
}

@test "prolog: one file that can not be read fails the job, and is named" {
	node_setup
	echo one >src/f
	echo two >src/g
	chmod 600 src/g
	specs "in $work/src:data"
	hook prolog
	status_is 1
	reports "verdict job stage-in $work/src:data: $work/src/g: "
	tier_is_empty
	record_says 7.0 failed false
}

@test "prolog: nonsense for specs, and a tier that is not there, are the job's fault" {
	node_setup
	export SPANK_STAGE_SPECS="nonsense"
	hook prolog
	status_is 1
	reports "verdict job"
	specs "tier pmem" "in $work/src:data"
	hook prolog
	status_is 1
	reports "verdict job"
	grep -q nvme report
	tier_is_empty
}

@test "prolog: a broken tier, state_dir or configuration is the node's fault" {
	node_setup
	specs "in $work/src:data"
	mv tier away
	hook prolog
	status_is 6
	reports "verdict node tier nvme: $work/tier: No such file or directory"
	[ ! -e tier ]
	[ -z "$(find state/jobs -name '*.json')" ]
	mv away tier
	chmod 777 tier
	hook prolog
	status_is 6
	reports "verdict node tier nvme"
	chmod 700 tier
	hook prolog
	status_is 6
	grep -q "users can not enter it" report
	chmod 711 tier
	chmod 777 state
	hook prolog
	status_is 6
	grep -q "others may write" report
	chmod 711 state
	echo nonsense >>conf
	hook prolog
	status_is 6
	reports "verdict node"
	conf min_free=0
	hook prolog
	status_is 0
}

@test "prolog: a read-only tier is the node's fault" {
	node_setup
	need_mounts
	specs "in $work/src:data"
	run unshare -m --propagation private bash -c '
		mount -t tmpfs -o mode=711,ro tier tier && exec "$0" prolog --conf=conf' "$STAGETOOL"
	status_is 6
	says "Read-only file system"
}

# in_small TIER_OPTIONS: runs the prolog with a small tmpfs as the tier, and shows what is left on it.
in_small() {
	run unshare -m --propagation private bash -c '
		mount -t tmpfs -o "mode=711,$1" tier tier || exit 99
		STAGE_REPORT_FD=9 "$0" prolog --conf=conf 9>report
		status=$?
		ls -A tier
		exit $status' "$STAGETOOL" "$1"
}

@test "prolog: what does not fit is refused before a byte moves: bytes" {
	node_setup
	need_mounts
	head -c 3M /dev/urandom >src/f
	specs "in $work/src:data"
	in_small size=2m
	status_is 1
	reports "verdict job does not fit on tier nvme of n1: 3.0 MiB of space are needed, 2.0 MiB are"
	says_not 7.0
	job 8
	in_small size=8m
	status_is 0
}

@test "prolog: what does not fit is refused before a byte moves: inodes" {
	node_setup
	need_mounts
	(cd src && seq 100 | xargs touch)
	specs "in $work/src:data"
	in_small size=8m,nr_inodes=50
	status_is 1
	grep -q "inodes are needed" report
	says_not 7.0
}

@test "prolog: --stage-size counts, and so does what other jobs were promised" {
	node_setup
	need_mounts
	echo one >src/f
	run unshare -m --propagation private bash -c '
		mount -t tmpfs -o mode=711,size=10m tier tier || exit 99
		export STAGE_REPORT_FD=9
		export SPANK_STAGE_SPECS="stagetool 1
in $PWD/src:data
size $((6 * 1048576))
"
		"$0" prolog --conf=conf 9>report || exit 1
		SLURM_JOB_ID=8 "$0" prolog --conf=conf 9>report && exit 2
		"$0" epilog --conf=conf 9>>report || exit 3
		SLURM_JOB_ID=9 "$0" prolog --conf=conf 9>>report || exit 4' "$STAGETOOL"
	status_is 0
	grep -q "promised to 1 other jobs 6.0 MiB" report
}

@test "prolog: of jobs that start together those are staged that the tier has room for" {
	node_setup
	need_mounts
	echo one >src/f
	run unshare -m --propagation private bash -c '
		mount -t tmpfs -o mode=711,size=10m tier tier || exit 99
		export SPANK_STAGE_SPECS="stagetool 1
in $PWD/src:data
size $((3 * 1048576))
"
		for id in 11 12 13 14 15 16; do
			SLURM_JOB_ID=$id "$0" prolog --conf=conf &
		done
		wait
		ls tier' "$STAGETOOL"
	status_is 0
	[ "$(grep -c '^1[1-6]\.0$' <<<"$output")" -eq 3 ]
	[ "$(grep -c 'does not fit on tier nvme' <<<"$output")" -eq 3 ]
}

@test "prolog: killed while it copies, the next one begins anew" {
	node_setup
	big_source
	specs "in $work/src:data"
	start_hook prolog staging
	kill -9 "$hook_pid"
	wait "$hook_pid" || true
	worker_is_gone
	record_says 7.0 staging true
	[ -d tier/7.0 ]
	hook prolog
	status_is 0
	diff -r src tier/7.0/data
	record_says 7.0 ready true
}

@test "prolog: SIGTERM stops it: nothing is left, the record says why" {
	node_setup
	big_source
	specs "in $work/src:data"
	start_hook prolog staging
	kill "$hook_pid"
	code=0
	wait "$hook_pid" || code=$?
	[ "$code" -eq 1 ]
	reports "verdict job the stage-in was cancelled"
	tier_is_empty
	record_says 7.0 failed false
	grep -q "cancelled" state/steps/7
}

@test "prolog: a worker that is killed is a failed stage-in" {
	node_setup
	big_source
	specs "in $work/src:data"
	start_hook prolog staging
	kill -9 "$(cat "/proc/$hook_pid/task/$hook_pid/children")"
	code=0
	wait "$hook_pid" || code=$?
	[ "$code" -eq 1 ]
	reports "verdict job the copying process was killed by signal 9"
	tier_is_empty
}

@test "prolog: of two that start together one works and both succeed" {
	node_setup
	big_source
	specs "in $work/src:data"
	start_hook prolog staging
	hook prolog
	status_is 0
	reports "verdict ok"
	wait "$hook_pid"
	diff -r src tier/7.0/data
}

@test "prolog: a requeued job clears away its earlier attempt, but not its results" {
	node_setup
	echo one >src/f
	specs "in $work/src:data" "out results:$work/out"
	hook prolog
	job 7 1
	hook prolog
	status_is 0
	[ ! -e tier/7.0 ]
	record_says 7.0 done false
	as_job mkdir results
	as_job touch results/r
	job 7 2
	hook prolog
	status_is 0
	[ -e tier/7.1/results/r ]
	record_says 7.1 kept true
	record_says 7.2 ready true
	as_job sh -c 'echo more >>data/f'
	job 7 3
	hook prolog
	status_is 0
	record_says 7.2 kept true
	[ -d tier/7.2 ]
}

@test "prolog: an attempt that is not the last one any more stops" {
	node_setup
	specs "in $work/src:data"
	job 7 2
	hook prolog
	job 7 1
	hook prolog
	status_is 1
	reports "verdict job restart 2 of job 7 was started since"
	record_says 7.2 ready true
	[ -d tier/7.2 ]
	[ ! -e tier/7.1 ]
}

@test "prolog: a directory that no record knows is moved aside, never removed" {
	node_setup
	specs "in $work/src:data"
	mkdir tier/7.0
	echo precious >tier/7.0/f
	hook prolog
	status_is 0
	says "no record knows"
	[ "$(cat tier/lost.7.0.*/f)" = precious ]
	[ ! -e tier/7.0/f ]
}

@test "prolog: results that are kept are never touched by a job of the same number" {
	node_setup
	specs "out results:/proc/nowhere"
	hook prolog
	as_job mkdir results
	as_job touch results/r
	hook epilog
	record_says 7.0 kept true
	hook prolog
	status_is 1
	reports "verdict job"
	record_says 7.0 kept true
	[ -e tier/7.0/results/r ]
}

@test "prolog: a record that is damaged is the node's fault and is not overwritten" {
	node_setup
	specs "in $work/src:data"
	hook prolog
	echo '{"version": 99}' >state/jobs/7.0.json
	hook prolog
	status_is 6
	grep -q "version 99, expected 1" report
	[ "$(cat state/jobs/7.0.json)" = '{"version": 99}' ]
	[ -d tier/7.0 ]
}

@test "prolog: a wrong environment is refused" {
	node_setup
	specs "in $work/src:data"
	for wrong in SLURM_JOB_ID=../7 SLURM_JOB_ID= SLURM_JOB_UID=-1 SLURM_JOB_UID=root \
		SLURM_JOB_GID=4294967295 SLURM_JOB_RESTART_COUNT=x; do
		run env "$wrong" "$STAGETOOL" prolog --conf=conf
		status_is 2
	done
	run as_user env STAGETOOL_TEST=1 "$STAGETOOL" prolog --conf=conf
	[ "$status" -ne 0 ]
	tier_is_empty
}

@test "prolog: dist=first needs to know which node this is" {
	node_setup
	specs "in $work/src:data,dist=first"
	export STAGE_NODE_COUNT=2
	hook prolog
	status_is 1
	grep -q STAGE_NODE_INDEX report
	job 8
	export STAGE_NODE_INDEX=1
	hook prolog
	status_is 0
	[ ! -e tier/8.0/data ]
	job 9
	export STAGE_NODE_INDEX=0
	hook prolog
	status_is 0
	[ -e tier/9.0/data ]
}

@test "prolog: --json" {
	node_setup
	specs "in $work/src:data"
	"$STAGETOOL" prolog --conf=conf --json 2>said | grep -q '"verb": *"prolog"'
}
