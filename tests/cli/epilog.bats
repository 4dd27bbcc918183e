#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# stagetool epilog, as slurmd or a site's own Epilog runs it, without Slurm.
load helpers
load node

# ready SPEC...: a job whose stage holds what the specs bring, and a results directory with one file.
ready() {
	node_setup
	echo one >src/f
	specs "$@"
	hook prolog
	status_is 0
	as_job mkdir results
	as_job sh -c 'echo result >results/r'
	export STAGE_JOB_STATE=COMPLETED
}

# The job's output file.
output_file() {
	touch slurm-7.out
	chown 65534 slurm-7.out
	export STAGE_JOB_STDOUT=$work/slurm-7.out
}

@test "epilog: results are back, the user is told, nothing is left" {
	ready "in $work/src:data" "out results:$work/out/%j.%N"
	output_file
	echo script >slurm-7.out
	hook epilog
	status_is 0
	reports "verdict ok all results are back"
	[ "$(cat out/7.n1/r)" = result ]
	[ "$(stat -c %u out/7.n1/r)" = 65534 ]
	tier_is_empty
	record_says 7.0 done false
	[ ! -e state/steps/7 ]
	[ "$(sed -n 1p slurm-7.out)" = script ]
	[ "$(wc -l <slurm-7.out)" -eq 2 ]
	grep -q "^stagetool: n1: stage-out results:.*: staged out 1 file, 7 B" slurm-7.out
	hook epilog
	status_is 0
	[ "$(wc -l <slurm-7.out)" -eq 2 ]
}

@test "epilog: goes by the record: without specs, and with the restart count of the next attempt" {
	ready "out results:$work/out"
	unset SPANK_STAGE_SPECS
	job 7 1
	hook epilog
	status_is 0
	[ -e out/r ]
	tier_is_empty
}

@test "epilog: a job that has nothing to do with staging is told nothing" {
	node_setup
	hook epilog
	status_is 0
	[ -z "$output" ]
	[ ! -s report ]
	rm -r conf state
	hook epilog
	status_is 0
	[ -z "$output" ]
	[ ! -e state ]
}

@test "epilog: after a failed stage-in there is nothing to send, and the steps' word goes" {
	node_setup
	specs "in $work/missing:data" "out results:$work/out"
	hook prolog
	status_is 1
	hook epilog
	status_is 0
	reports "verdict ok"
	[ ! -e state/steps/7 ]
	record_says 7.0 failed false
	[ -z "$(ls out)" ]
}

@test "epilog: a stage-in that died is cleared away" {
	node_setup
	big_source
	specs "in $work/src:data" "out results:$work/out"
	start_hook prolog staging
	kill -9 "$hook_pid"
	wait "$hook_pid" || true
	worker_is_gone
	hook epilog
	status_is 0
	tier_is_empty
	record_says 7.0 failed false
}

@test "epilog: when= goes by the job's final state" {
	for pair in COMPLETED:yes:no FAILED:no:yes TIMEOUT:no:yes CANCELLED:no:yes REQUEUED:no:yes; do
		IFS=: read -r state success failure <<<"$pair"
		rm -rf tier state out src conf
		mkdir -p s
		ready "out results:$work/out/always" "out results:$work/out/success,when=success" \
			"out results:$work/out/failure,when=failure"
		export STAGE_JOB_STATE=$state
		hook epilog
		status_is 0
		tier_is_empty
		[ -e out/always/r ]
		{ [ -e out/success ] && echo yes || echo no; } | grep -qx "$success"
		{ [ -e out/failure ] && echo yes || echo no; } | grep -qx "$failure"
	done
}

@test "epilog: without the plugin the exit code tells success from failure" {
	ready "out results:$work/out/success,when=success" "out results:$work/out/failure,when=failure"
	unset STAGE_JOB_STATE
	export SLURM_JOB_EXIT_CODE=256
	hook epilog
	[ -e out/failure/r ]
	[ ! -e out/success ]
}

@test "epilog: results that can not be delivered are kept, and the user learns where" {
	ready "out results:$work/closed/x" "out results:$work/out"
	mkdir closed
	output_file
	hook epilog
	status_is 0
	reports "verdict job stage-out results:$work/closed/x: "
	grep -q "Permission denied" report
	[ -e tier/7.0/results/r ]
	[ "$(stat -c '%a %u' tier/7.0)" = "700 65534" ]
	[ -e out/r ]
	record_says 7.0 kept true
	grep -q "the data is kept in $work/tier/7.0 on n1 until 20" slurm-7.out
	grep -q "stage-out results:$work/out: staged out 1 file" slurm-7.out
	run stagetool status --conf=conf 7
	says "kept until 20"
	hook epilog
	record_says 7.0 kept true
}

@test "epilog: a FROM that was never made: nothing else is new, so nothing is kept" {
	ready "in $work/src:data" "out nothing:$work/out/x"
	output_file
	as_job rm -r results
	hook epilog
	status_is 0
	reports "verdict ok"
	tier_is_empty
	record_says 7.0 done false
	grep -q "nothing was sent, it is not in the stage" slurm-7.out
}

@test "epilog: a FROM that was never made: something else is new, so the stage is kept" {
	ready "in $work/src:data" "out nothing:$work/out/x"
	hook epilog
	status_is 0
	reports "verdict job"
	[ -e tier/7.0/results/r ]
	record_says 7.0 kept true
}

@test "epilog: a FROM that was never made: what was staged was changed, so the stage is kept" {
	ready "in $work/src:data" "out nothing:$work/out/x" "out results:$work/out"
	as_job sh -c 'echo more >>data/f'
	hook epilog
	record_says 7.0 kept true
	[ -e out/r ]
}

@test "epilog: a FROM that was never made: all that is new was sent by another stage-out" {
	ready "in $work/src:data" "out nothing:$work/out/x" "out results:$work/out/y"
	hook epilog
	record_says 7.0 done false
	tier_is_empty
	[ -e out/y/r ]
}

@test "epilog: conflict=fail keeps the stage, conflict=keep delivers beside" {
	ready "out results:$work/out/a,conflict=fail"
	mkdir out/a
	echo other >out/a/r
	chown -R 65534 out
	hook epilog
	reports "verdict job"
	record_says 7.0 kept true
	[ "$(cat out/a/r)" = other ]
	job 8
	specs "out results:$work/out/a"
	hook prolog
	as_job mkdir results
	as_job sh -c 'echo result >results/r'
	hook epilog
	reports "verdict ok"
	[ "$(cat out/a/r)" = other ]
	[ "$(cat out/a/r.conflict-8-n1)" = result ]
	[ ! -e tier/8.0 ]
}

@test "epilog: directories that TO needs are made as open as most" {
	ready "out results:$work/out/a/b/c"
	hook epilog
	status_is 0
	[ "$(stat -c %a out/a out/a/b)" = $'755\n755' ]
}

@test "epilog: an unchanged tree is not sent back" {
	ready "in $work/src:data,sync"
	as_job sh -c 'echo two >data/g'
	chown -R 65534 src
	before=$(stat -c '%i %z' src/f)
	hook epilog
	status_is 0
	[ "$(cat src/g)" = two ]
	[ "$(stat -c '%i %z' src/f)" = "$before" ]
}

@test "epilog: the output file is written as the user, never made, and only if it is a file" {
	ready "out results:$work/out/%j"
	export STAGE_JOB_STDOUT=$work/root-only
	touch root-only
	hook epilog
	status_is 0
	[ ! -s root-only ]
	for job in 8 9; do
		job $job
		hook prolog
		as_job mkdir results
		STAGE_JOB_STDOUT=$work/pipe
		[ $job = 9 ] && STAGE_JOB_STDOUT=$work/missing
		[ -p pipe ] || mkfifo -m 666 pipe
		hook epilog
		status_is 0
		tier_is_empty
	done
	[ ! -e missing ]
}

@test "epilog: a hostile stage goes, and nothing outside is touched" {
	ready "in $work/src:data"
	echo precious >precious
	as_job sh -c 'mkdir -p a/b && echo x >a/b/f && chmod 555 a/b a && mkdir none && chmod 0 none'
	as_job ln -s "$work/precious" link
	as_job ln -s "$work" dirlink
	as_job mkfifo fifo
	as_job ln "$work/tier/7.0/data/f" hard
	hook epilog
	status_is 0
	tier_is_empty
	[ "$(cat precious)" = precious ]
	[ "$(cat src/f)" = one ]
}

@test "epilog: a mount inside a stage is not entered; the node stays good" {
	ready "in $work/src:data"
	need_mounts
	as_job mkdir m
	mkdir other
	echo precious >other/f
	run unshare -m --propagation private bash -c '
		mount --bind other tier/7.0/m && "$0" epilog --conf=conf' "$STAGETOOL"
	status_is 0
	says "something is mounted here"
	[ "$(cat other/f)" = precious ]
	record_says 7.0 done true
	hook epilog
	status_is 0
	tier_is_empty
	record_says 7.0 done false
}

@test "epilog: killed while it sends, the next one finishes" {
	node_setup
	big_source 400
	chown -R 65534 src
	specs "in $work/src:data" "out data:$work/out/x"
	hook prolog
	as_job sh -c 'find data -type f -exec touch {} +'
	start_hook epilog returning
	kill -9 "$hook_pid"
	wait "$hook_pid" || true
	worker_is_gone
	record_says 7.0 returning true
	[ -d tier/7.0/data ]
	hook epilog
	status_is 0
	reports "verdict ok"
	[ -z "$(comm -23 <(cd src && find . | sort) <(cd out/x && find . | sort))" ]
	tier_is_empty
}

@test "epilog: SIGTERM leaves the rest kept" {
	node_setup
	big_source 400
	chown -R 65534 src
	specs "in $work/src:data" "out data:$work/out/x"
	hook prolog
	as_job sh -c 'find data -type f -exec touch {} +'
	start_hook epilog returning
	kill "$hook_pid"
	wait "$hook_pid"
	reports "verdict job the stage-out was interrupted"
	record_says 7.0 kept true
	[ -d tier/7.0/data ]
}

@test "epilog: a stage that somebody else removed is said to be lost" {
	ready "out results:$work/out"
	output_file
	rm -r tier/7.0
	hook epilog
	status_is 0
	reports "verdict job the stage is gone"
	record_says 7.0 failed false
	grep -q "lost" slurm-7.out
}

@test "epilog: a directory in the place of the stage is not taken for it" {
	ready "out results:$work/out"
	mv tier/7.0 tier/away
	mkdir -p tier/7.0/results
	echo forged >tier/7.0/results/r
	hook epilog
	[ ! -e out/r ]
	[ -e tier/7.0/results/r ]
	record_says 7.0 kept true
}

@test "epilog: a tier that is away is the node's fault, and the record waits" {
	ready "out results:$work/out"
	mv tier away
	hook epilog
	status_is 6
	reports "verdict node"
	record_says 7.0 kept true
}

@test "epilog: one attempt that is kept does not keep the other from its end" {
	ready "out results:$work/closed/x"
	mkdir closed
	hook epilog
	record_says 7.0 kept true
	job 7 1
	specs "out results:$work/out"
	hook prolog
	status_is 0
	as_job mkdir results
	as_job touch results/second
	hook epilog
	status_is 0
	record_says 7.0 kept true
	record_says 7.1 done false
	[ -e out/second ]
	[ -e tier/7.0/results/r ]
}

@test "epilog: records of jobs that are over go after a day, kept ones never" {
	ready "out results:$work/out"
	hook epilog
	[ -e state/status/65534/7.0.json ]
	job 8
	specs "out results:$work/closed/x"
	mkdir closed
	hook prolog
	as_job mkdir results
	hook epilog
	record_says 8.0 kept true
	touch -d '2 days ago' state/jobs/*.json
	job 9
	specs "out results:$work/out"
	hook epilog
	[ ! -e state/jobs/7.0.json ]
	[ ! -e state/status/65534/7.0.json ]
	[ -e state/jobs/8.0.json ]
}
