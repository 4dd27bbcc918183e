#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# stagetool reap, as the timer and the unit at boot run it.
load helpers
load node

# ended SPEC...: a job that is over, whose stage has one result.
ended() {
	node_setup
	mkdir closed
	touch slurm-7.out
	chown 65534 slurm-7.out
	export STAGE_JOB_STDOUT=$work/slurm-7.out STAGE_JOB_STATE=COMPLETED
	specs "$@"
	hook prolog
	status_is 0
	as_job mkdir results
	as_job sh -c 'echo result >results/r'
}

# The job's results could not be delivered.
kept() {
	ended "out results:$work/closed/x"
	hook epilog
	record_says 7.0 kept true
}

reap() {
	run stagetool reap --conf=conf "$@"
}

# edit ID.RESTART KEY VALUE: a number or a string of the record becomes another one.
edit() {
	local json=state/jobs/$1.json

	grep -q "\"$2\": " "$json"
	sed -i "s|\"$2\": [^,]*|\"$2\": $3|" "$json"
	grep -q "\"$2\": $3" "$json"
}

@test "reap: once the cause is gone, results are delivered, the user is told, the stage goes" {
	kept
	reap --now
	status_is 1
	says "job 7.0: kept, tried in vain in $work/tier/7.0: stage-out results:$work/closed/x: "
	record_says 7.0 kept true
	chown 65534 closed
	reap --now
	status_is 0
	says "job 7.0: all results are back, its stage is removed"
	[ "$(cat closed/x/r)" = result ]
	[ "$(stat -c %u closed/x/r)" = 65534 ]
	tier_is_empty
	record_says 7.0 done false
	[ "$(grep -c "kept in" slurm-7.out)" -eq 1 ]
	tail -n 1 slurm-7.out | grep -q "^stagetool: n1: stage-out results:.*: staged out 1 file, 7 B"
	reap
	status_is 0
	[ -z "$output" ]
}

@test "reap: a try that failed is not repeated before its time, nor kept for longer" {
	kept
	chown 65534 closed
	until=$(grep '"until"' state/jobs/7.0.json)
	reap
	status_is 1
	says "job 7.0: kept, to be tried later"
	[ ! -e closed/x ]
	chown 0 closed
	for expected in 120 240 480 960; do
		reap --now
		next=$(sed -n 's/.*"next_try": \([0-9]*\).*/\1/p' state/jobs/7.0.json)
		changed=$(sed -n 's/^ "changed": \([0-9]*\).*/\1/p' state/jobs/7.0.json)
		[ $((next - changed)) -ge $((expected - 2)) ]
		[ $((next - changed)) -le $expected ]
	done
	[ "$(grep '"until"' state/jobs/7.0.json)" = "$until" ]
	edit 7.0 tries 40
	reap --now
	next=$(sed -n 's/.*"next_try": \([0-9]*\).*/\1/p' state/jobs/7.0.json)
	[ $((next - $(date +%s))) -le 21600 ]
	chown 65534 closed
	edit 7.0 next_try 1
	reap
	status_is 0
	[ -e closed/x/r ]
}

@test "reap: a clock that was set back does not keep anybody waiting for ever" {
	kept
	chown 65534 closed
	edit 7.0 next_try $(($(date +%s) + 1000000))
	reap
	status_is 0
	[ -e closed/x/r ]
}

@test "reap: what was delivered by the first try is not sent again" {
	ended "out results:$work/closed/x" "out results:$work/out"
	hook epilog
	[ -e out/r ]
	before=$(stat -c '%i %z' out/r)
	chown 65534 closed
	reap --now
	status_is 0
	[ "$(stat -c '%i %z' out/r)" = "$before" ]
	[ -e closed/x/r ]
	tier_is_empty
}

@test "reap: at the end of keep_failed it is tried once more, then the user is told, then it goes" {
	kept
	edit 7.0 until 1000000
	reap
	status_is 1
	says "job 7.0: its time was over, its stage is removed: expired: stage-out"
	tier_is_empty
	record_says 7.0 failed false
	tail -n 1 slurm-7.out | grep -q "what is left in $work/tier/7.0 on n1 is removed now"
	reap
	status_is 0
	[ -z "$output" ]
}

@test "reap: at the end of keep_failed what can be delivered is delivered" {
	kept
	chown 65534 closed
	edit 7.0 until 1000000
	reap
	status_is 0
	[ -e closed/x/r ]
}

@test "reap: where the user can not be told, their results stay for another day" {
	kept
	chown 0 slurm-7.out
	chmod 600 slurm-7.out
	edit 7.0 until $(($(date +%s) - 60))
	reap
	status_is 1
	[ -e tier/7.0/results/r ]
	record_says 7.0 kept true
	edit 7.0 until $(($(date +%s) - 90000))
	reap
	tier_is_empty
	record_says 7.0 failed false
}

@test "reap: an epilog that was killed, with its worker, while it sent is finished" {
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
	reap
	status_is 0
	says "job 7.0: all results are back"
	[ -z "$(comm -23 <(cd src && find . | sort) <(cd out/x && find . | sort))" ]
	tier_is_empty
}

@test "reap: one that died while it tried again is finished by the next, whatever its time was" {
	kept
	chown 65534 closed
	edit 7.0 state '"returning"'
	reap
	status_is 0
	[ -e closed/x/r ]
	record_says 7.0 done false
}

@test "reap: what a prolog that was killed has left is cleared away" {
	node_setup
	big_source
	specs "in $work/src:data" "out results:$work/out"
	start_hook prolog staging
	kill -9 "$hook_pid"
	wait "$hook_pid" || true
	worker_is_gone
	reap
	status_is 0
	says "job 7.0: its stage is removed"
	tier_is_empty
	record_says 7.0 failed false
}

@test "reap: a prolog that is at work is left alone" {
	node_setup
	big_source
	specs "in $work/src:data"
	start_hook prolog staging
	reap --now --boot
	status_is 0
	wait "$hook_pid"
	record_says 7.0 ready true
	diff -r src tier/7.0/data
}

@test "reap: running jobs are left alone; after a reboot their results are sent, as of a failure" {
	ended "out results:$work/out/always" "out results:$work/out/success,when=success" \
		"out results:$work/out/failure,when=failure"
	for options in "" --now --boot "--now --boot"; do
		# shellcheck disable=SC2086
		reap $options
		status_is 0
		record_says 7.0 ready true
	done
	edit 7.0 boot_id '"another"'
	reap --now
	record_says 7.0 ready true
	[ -e state/steps/7 ]
	reap --boot
	status_is 0
	[ -e out/always/r ]
	[ -e out/failure/r ]
	[ ! -e out/success ]
	tier_is_empty
	record_says 7.0 done false
	[ ! -e state/steps/7 ]
}

@test "reap: two at once do each job once" {
	ended "out results:$work/closed/x"
	hook epilog
	for id in 8 9 10 11; do
		job $id
		specs "out results:$work/closed/$id"
		hook prolog
		as_job mkdir results
		as_job sh -c 'echo result >results/r'
		hook epilog
	done
	chown 65534 closed
	stagetool reap --now --conf=conf 2>one &
	stagetool reap --now --conf=conf 2>two || true
	wait
	tier_is_empty
	[ "$(cat one two | grep -c "all results are back")" -eq 5 ]
	[ "$(ls closed)" = "$(printf '%s\n' 10 11 8 9 x)" ]
	[ "$(grep -c "staged out 1 file" slurm-7.out)" -eq 5 ]
}

@test "reap: an attempt that another one came after is not published, is kept, and goes in the end" {
	kept
	job 7 1
	specs "out results:$work/closed/x"
	hook prolog
	as_job mkdir results
	as_job sh -c 'echo second >results/r'
	chown 65534 closed
	reap --now
	status_is 1
	says "job 7.0: kept, not sent over a later attempt's results in $work/tier/7.0"
	[ ! -e closed/x ]
	[ "$(grep -c "came after" slurm-7.out)" -eq 0 ]
	hook epilog
	[ "$(cat closed/x/r)" = second ]
	reap --now
	status_is 1
	record_says 7.0 kept true
	[ "$(cat closed/x/r)" = second ]
	[ "$(grep -c "restart 1 of the job came after it: they are kept in $work/tier/7.0" slurm-7.out)" -eq 1 ]
	rm state/jobs/7.1.json
	reap --now
	[ "$(cat closed/x/r)" = second ]
	edit 7.0 until 1000000
	reap
	tier_is_empty
	[ "$(cat closed/x/r)" = second ]
}

@test "epilog: an attempt that another one came after is not published" {
	ended "out results:$work/out/x"
	cp state/jobs/7.0.json state/saved
	job 7 1
	hook prolog
	as_job mkdir results
	as_job sh -c 'echo second >results/r'
	# as if the prolog had not been able to settle it
	cp state/saved state/jobs/7.0.json
	hook epilog
	[ "$(cat out/x/r)" = second ]
	record_says 7.0 kept true
	[ -e tier/7.0/results/r ]
	[ "$(ls out)" = x ]
}

@test "reap: one that hangs on what is kept keeps no epilog waiting" {
	kept
	job 7 1
	specs "out results:$work/out/%j"
	hook prolog
	as_job mkdir results
	as_job touch results/second
	exec 8>state/jobs/7.0.lock
	flock 8
	hook epilog
	exec 8>&-
	status_is 0
	reports "verdict ok"
	[ -e out/7/second ]
	record_says 7.0 kept true
}

@test "reap: SIGTERM ends it; what it was at is kept, and tried again by the next" {
	node_setup
	mkdir closed
	big_source 400
	specs "in $work/src:data" "out data:$work/closed/x"
	hook prolog
	as_job sh -c 'find data -type f -exec touch {} +'
	hook epilog
	record_says 7.0 kept true
	chown 65534 closed
	"$STAGETOOL" reap --now --conf=conf 2>said 3>&- &
	pid=$!
	wait_until grep -q '"state": "returning"' state/jobs/7.0.json
	kill $pid
	wait $pid && ended=0 || ended=$?
	if ! grep -q '"state": "done"' state/jobs/7.0.json; then
		[ "$ended" -ne 0 ]
		reap
	fi
	record_says 7.0 done false
	diff -rq src closed/x
}

@test "reap: directories that no record knows are named, and go only if told and old" {
	node_setup
	mkdir -p tier/5.0/d tier/lost.5.0.12345 tier/other tier/6.x
	reap
	status_is 0
	says "no record knows $work/tier/5.0"
	says "no record knows $work/tier/lost.5.0.12345"
	[[ $output != *other* && $output != *6.x* ]]
	reap --orphans
	[ -d tier/5.0/d ]
	sed -i 's/^\[stagetool\]/&\nkeep_failed = 1s/' conf
	sleep 2.1
	reap
	[ -d tier/5.0/d ]
	reap --orphans
	status_is 0
	[ "$(ls tier)" = "$(printf '6.x\nother')" ]
}

@test "reap: a running job's stage is no orphan" {
	ended "out results:$work/out"
	sed -i 's/^\[stagetool\]/&\nkeep_failed = 1s/' conf
	sleep 2.1
	reap --orphans
	status_is 0
	[[ $output != *"no record"* ]]
	[ -e tier/7.0/results/r ]
}

@test "reap: what a user writes into the copy of the status changes nothing" {
	kept
	sed "s|$work/closed|$work/out|g; s|\"kept\"|\"done\"|g; s|\"uid\": *[0-9]*|\"uid\":0|g" \
		state/status/65534/7.0.json >forged
	as_user sh -c 'cat >"$0"' "$work/state/status/65534/7.0.json" <forged
	reap --now
	status_is 1
	[ -z "$(ls out)" ]
	record_says 7.0 kept true
	[ -e tier/7.0/results/r ]
	grep -q "$work/closed" state/status/65534/7.0.json
}

@test "reap: a symlink in the place of the stage is not followed" {
	kept
	mkdir precious
	touch precious/f
	mv tier/7.0 tier/away
	ln -s ../precious tier/7.0
	edit 7.0 until 1000000
	reap
	[ -e precious/f ]
	[ "$(stat -c %u precious)" = 0 ]
	[ -e tier/away/results/r ]
}

@test "reap: a record that can not be read is the node's trouble, and the others get their turn" {
	kept
	chown 65534 closed
	echo nonsense >state/jobs/6.0.json
	reap --now
	status_is 6
	[ -e closed/x/r ]
	[ -e state/jobs/6.0.json ]
}

@test "reap: a tier that is away costs no results" {
	kept
	chown 65534 closed
	mv tier away
	reap --now
	status_is 6
	record_says 7.0 kept true
	mv away tier
	reap --now
	status_is 0
	[ -e closed/x/r ]
}

@test "reap: an empty directory in the place of a tier that is not mounted yet costs no results" {
	kept
	chown 65534 closed
	mv tier away
	mkdir -m 711 tier
	reap --now
	status_is 1
	says "is it not mounted?"
	record_says 7.0 kept true
	rmdir tier
	mv away tier
	reap --now
	status_is 0
	[ -e closed/x/r ]
}

@test "reap: as one JSON object" {
	kept
	run bash -c '"$0" reap --conf=conf --json 2>/dev/null' "$STAGETOOL"
	status_is 1
	for part in '"job":"7"' '"restart":0' '"result":"waiting"' "\"dir\":\"$work/tier/7.0\"" \
		'"status":1' '"orphans":\[\]'; do
		grep -q "$part" <<<"$output"
	done
}

@test "reap: only root; where nothing was ever staged it makes nothing" {
	node_setup
	rm -r state
	reap
	status_is 0
	[ -z "$output" ]
	[ ! -e state ]
	cp "$STAGETOOL" tool
	run as_user ./tool reap --conf=conf
	status_is 1
	says "only root"
}
