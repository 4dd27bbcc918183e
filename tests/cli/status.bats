#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# stagetool status, for a user and for root.
load helpers
load node

# Two jobs, of two users.
two_jobs() {
	node_setup
	echo one >src/f
	cp "$STAGETOOL" stagetool-binary
	specs "in $work/src:data" "out results:$work/out"
	hook prolog
	status_is 0
	export SLURM_JOB_UID=65533 SLURM_JOB_USER=other
	job 8
	hook prolog
	status_is 0
}

# status_as UID WORD...
status_as() {
	local uid=$1

	shift
	run setpriv --reuid "$uid" --regid 65534 --clear-groups ./stagetool-binary status --conf=conf "$@"
}

@test "status: a user sees their own jobs and no others" {
	two_jobs
	status_as 65534
	status_is 0
	says "job 7 of nobody on n1: ready"
	says "stage $work/tier/7.0 on tier nvme"
	says "stage-in $work/src:data: here, 1 file, 4 B"
	says "stage-out results:$work/out: at the end of the job"
	says_not "job 8"
	status_as 65533
	says "job 8 of other"
	says_not "job 7"
	status_as 65534 8
	status_is 1
	says "no job 8 of yours on this node"
	status_as 1000
	status_is 0
	says "no jobs on this node"
	status_as 65534 7
	status_is 0
}

@test "status: the copies of one user are closed to others, without a hole by other ways" {
	two_jobs
	run setpriv --reuid 65533 --regid 65534 --clear-groups cat state/status/65534/7.0.json
	[ "$status" -ne 0 ]
	run setpriv --reuid 65533 --regid 65534 --clear-groups ls state/status/65534 state/jobs
	[ "$status" -ne 0 ]
	run setpriv --reuid 65534 --regid 65534 --clear-groups touch state/status/65534/x state/jobs/x
	[ "$status" -ne 0 ]
	[ ! -e state/status/65534/x ]
}

@test "status: root sees all, by the records, whatever users do to their copies" {
	two_jobs
	setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'echo "{}" >state/status/65534/7.0.json'
	run stagetool status --conf=conf
	status_is 0
	says "job 7 of nobody"
	says "job 8 of other"
	status_as 65534
	status_is 0
	hook epilog
	echo nonsense >state/jobs/9.0.json
	run stagetool status --conf=conf
	status_is 0
	says "1 records can not be read"
}

@test "status: --json" {
	two_jobs
	status_as 65534 --json
	status_is 0
	[ "$(jq -r '.jobs[0].job + " " + .jobs[0].state' <<<"$output")" = "7 ready" ] ||
		[[ $output == *'"job":"7"'*'"state":"ready"'* ]]
	status_as 65534 --json 8
	status_is 1
}

@test "status: what is kept, why, and until when" {
	node_setup
	mkdir closed
	specs "out results:$work/closed/x"
	hook prolog
	as_job mkdir results
	as_job touch results/r
	hook epilog
	cp "$STAGETOOL" stagetool-binary
	status_as 65534
	says "job 7 of nobody on n1: kept"
	says "stage $work/tier/7.0"
	says "kept until 20"
	says "reason: stage-out results:$work/closed/x: "
	says "NOT SENT"
}

@test "status: wrong usage, and nothing to show" {
	node_setup
	run stagetool status --conf=conf nonsense
	status_is 2
	run stagetool status --conf=conf 1 2
	status_is 2
	run stagetool status --conf=missing
	status_is 1
	run stagetool status --conf=conf
	status_is 0
	says "no jobs on this node"
	rm -r state
	run stagetool status --conf=conf
	status_is 0
	[ ! -e state ]
}
