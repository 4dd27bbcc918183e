#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# stagetool resume: the user, or root, finishes what could not be delivered.
load helpers
load node

# A job whose results could not be delivered; the user has the binary.
kept() {
	node_setup
	mkdir closed
	cp "$STAGETOOL" tool
	chmod 711 state
	export STAGE_JOB_STATE=COMPLETED
	specs "out results:$work/closed/x" "out results:$work/out/y" \
		"out results:$work/out/failure,when=failure"
	hook prolog
	as_job mkdir results
	as_job sh -c 'echo result >results/r'
	hook epilog
	record_says 7.0 kept true
}

resume() {
	run as_user ./tool resume --conf=conf "$@"
}

@test "resume: the user sends what is kept, and the next reap removes the stage" {
	kept
	resume 7
	status_is 1
	says "Permission denied"
	chown 65534 closed
	resume 7
	status_is 0
	says "stage-out results:$work/closed/x: staged out 1 file"
	[ "$(cat closed/x/r)" = result ]
	[ ! -e out/failure ]
	[ -e tier/7.0/results/r ]
	record_says 7.0 kept true
	before=$(stat -c '%i %z' closed/x/r out/y/r)
	resume
	status_is 0
	run stagetool reap --now --conf=conf
	status_is 0
	tier_is_empty
	record_says 7.0 done false
	[ "$(stat -c '%i %z' closed/x/r out/y/r)" = "$before" ]
	resume 7
	status_is 1
	resume
	status_is 0
	says "nothing of yours is kept"
}

@test "resume: another user's job is not found, whoever's name its status bears" {
	kept
	chmod 777 closed
	run setpriv --reuid 65533 --regid 65533 --clear-groups -- ./tool resume --conf=conf 7
	status_is 1
	says "no job 7 of yours"
	mkdir -p state/status/65533
	cp state/status/65534/7.0.json state/status/65533
	chown -R 65533 state/status/65533
	run setpriv --reuid 65533 --regid 65533 --clear-groups -- ./tool resume --conf=conf 7
	status_is 1
	says "no job 7 of yours"
	sed -i 's/"uid": *65534/"uid":65533/g' state/status/65533/7.0.json
	run setpriv --reuid 65533 --regid 65533 --clear-groups -- ./tool resume --conf=conf 7
	status_is 1
	says "Permission denied"
	[ -z "$(ls closed)" ]
}

@test "resume: a job that is not over, and one that is not there" {
	kept
	job 8
	hook prolog
	resume 8
	status_is 1
	says "job 8: ready: nothing of it is kept to be sent"
	record_says 8.0 ready true
	resume 9
	status_is 1
	says "no job 9 of yours"
	resume x
	status_is 2
}

@test "resume: an attempt that another one came after is not sent over it" {
	kept
	job 7 1
	hook prolog
	as_job mkdir results
	as_job sh -c 'echo second >results/r'
	chown 65534 closed
	resume 7
	status_is 1
	says "restart 1 came after restart 0"
	[ ! -e closed/x ]
}

@test "resume: by root it is a reap of that job, now" {
	kept
	chown 65534 closed
	job 8
	specs "out results:$work/closed/8"
	hook prolog
	run stagetool resume --conf=conf 7
	status_is 0
	says "job 7.0: all results are back, its stage is removed"
	[ "$(stat -c %u closed/x/r)" = 65534 ]
	[ ! -e tier/7.0 ]
	record_says 8.0 ready true
	run stagetool resume --conf=conf 99
	status_is 1
	says "no job 99"
}

@test "resume: status does not show what resume needs" {
	kept
	run as_user ./tool status --conf=conf 7
	says "next try 20"
	run as_user ./tool status --conf=conf --json 7
	status_is 0
	[[ $output != *'"record"'* ]]
}
