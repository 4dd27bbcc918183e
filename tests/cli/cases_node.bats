#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2030,SC2031,SC2154
# Situations in which other staging tools were seen to go wrong in public, by their number in tests/cases.md:
# those of jobs on a node.
load helpers
load node

# A job whose stage holds "data" and one result.
ran() {
	hook prolog
	status_is 0
	as_job sh -c "mkdir results && echo 'result of $SLURM_JOB_ID' >results/r"
	export STAGE_JOB_STATE=COMPLETED
}

@test "M03: a stage of read-only directories can be removed at the end of the job" {
	node_setup
	mkdir -p src/a/b
	echo x >src/a/b/f
	chmod -R a-w src/a
	specs "in $work/src:data"
	hook prolog
	status_is 0
	[ "$(stat -c %a tier/7.0/data/a tier/7.0/data/a/b | tr '\n' ' ')" = "555 555 " ]
	[ "$(cat tier/7.0/data/a/b/f)" = x ]
	hook epilog
	status_is 0
	tier_is_empty
	[ -e src/a/b/f ]
}

@test "M10: a job's setuid files lose the bit, and the job is told" {
	node_setup
	cp /bin/true src/t
	chmod 6755 src/t
	specs "in $work/src:data"
	hook prolog
	status_is 0
	[ "$(stat -c %a tier/7.0/data/t)" = 755 ]
	grep -q "1 without its special bits" report
	grep -q "1 without its special bits" state/steps/7
}

@test "E03: results that can not be delivered: the job's record says so, and the data is kept" {
	node_setup
	specs "out results:/proc/nope/"
	ran
	hook epilog
	reports "verdict job stage-out results:/proc/nope/: "
	record_says 7.0 kept true
	[ "$(cat tier/7.0/results/r)" = "result of 7" ]
	run stagetool status --conf=conf 7
	status_is 0
	says "kept until 20"
	says "/proc/nope"
	stagetool status --conf=conf --json 7 >status.json
	jq -e '.jobs[0].state == "kept"' status.json
	jq -e '.outcomes[0] | .files == 0 and (.delivered | not)' state/jobs/7.0.json
}

@test "T01: results are out without the script's help when it was killed" {
	node_setup
	specs "in $work/src:data" "out results:$work/out/"
	hook prolog
	export STAGE_JOB_STATE=TIMEOUT
	mkfifo started
	chmod 666 started
	(
		cd tier/7.0
		exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \
			'mkdir results; echo r >results/o; echo >"$1"; sleep 600; echo never >results/o' - "$work/started"
	) 3>&- &
	pid=$!
	read -r <started
	run stagetool status --conf=conf 7
	says "7"
	kill -9 $pid
	wait $pid || true
	hook epilog
	status_is 0
	[ "$(cat out/results/o)" = r ]
	record_says 7.0 done false
	[ "$(jq -r .job_state state/jobs/7.0.json)" = TIMEOUT ]
}

@test "T03: a stage-out that failed: the user learns the path, the node and until when, and can fetch it" {
	node_setup
	mkdir closed
	touch slurm-7.out
	chown 65534 slurm-7.out
	export STAGE_JOB_STDOUT=$work/slurm-7.out
	specs "out results:$work/closed/"
	ran
	hook epilog
	record_says 7.0 kept true
	[ "$(cat tier/7.0/results/r)" = "result of 7" ]
	grep -q "the data is kept in $work/tier/7.0 on n1 until 20..-" slurm-7.out
	grep -q "(stagetool resume 7 there tries again)" slurm-7.out
	chown 65534 closed
	chmod 711 state
	cp "$STAGETOOL" tool
	run as_user ./tool resume --conf=conf 7
	status_is 0
	[ "$(cat closed/results/r)" = "result of 7" ]
	[ "$(stat -c %u closed/results/r)" = 65534 ]
}

@test "C08: what root can not reach is staged as the user, with all of the user's groups" {
	node_setup
	need_mounts
	mkdir -m 700 home
	echo mine >home/f
	chown -R 65534:65534 home
	mkdir -m 750 project
	echo ours >project/f
	chmod 640 project/f
	chown -R 1:4711 project
	mkdir -m 700 back
	chown 65534:65534 back
	cp /etc/group group
	echo "stagetool-test:x:4711:nobody" >>group
	specs "in $work/home:home" "in $work/project:project" "out home:$work/back/"
	# as on a server that takes root for nobody
	run unshare -m --propagation private bash -c 'mount --bind group /etc/group || exit 99
		setpriv --bounding-set -dac_override,-dac_read_search --inh-caps -all \
			bash -c "! cat home/f project/f && exec \"\$0\" prolog --conf=conf" "$0" 2>/dev/null' "$STAGETOOL"
	[ "$status" -ne 99 ] || skip "no bind mounts"
	status_is 0
	[ "$(cat tier/7.0/home/f tier/7.0/project/f)" = $'mine\nours' ]
	[ "$(stat -c %u tier/7.0/home/f tier/7.0/project/f | sort -u)" = 65534 ]
	as_job sh -c 'echo changed >home/f'
	export STAGE_JOB_STATE=COMPLETED
	hook epilog
	[ "$(cat back/home/f)" = changed ]
	[ "$(stat -c %u:%g back/home/f)" = 65534:65534 ]
}

@test "X03: the end of a job on one node takes nothing of its other nodes" {
	node_setup
	mkdir tier/n1 tier/n2
	chmod 711 tier/n1 tier/n2
	{
		printf '[stagetool]\nstate_dir = %s/state/%%N\n' "$work"
		printf '[tier nvme]\npath = %s/tier/%%N\nmin_free = 0\n' "$work"
	} >conf
	chmod 711 state
	echo one >src/f
	specs "in $work/src:data"
	export STAGE_NODE_COUNT=2
	for node in n1 n2; do
		SLURMD_NODENAME=$node hook prolog
		status_is 0
	done
	SLURMD_NODENAME=n2 hook epilog
	status_is 0
	[ -z "$(ls -A tier/n2)" ]
	[ "$(cat tier/n1/7.0/data/f)" = one ]
	SLURMD_NODENAME=n1 hook epilog
	[ -z "$(ls -A tier/n1)" ]
	[ "$(cat src/f)" = one ]
}

@test "X07: the end of a job takes nothing of another job of the same user" {
	node_setup
	echo one >src/f
	specs "in $work/src:data" "out results:$work/out/%j"
	job 1
	ran
	job 12
	ran
	job 1
	hook epilog
	status_is 0
	[ ! -e tier/1.0 ]
	[ "$(cat tier/12.0/results/r)" = "result of 12" ]
	record_says 12.0 ready true
	[ ! -e out/12 ]
	# what can not be looked up is not removed
	echo nonsense >state/jobs/12.0.json
	job 12
	hook epilog
	status_is 6
	[ "$(cat tier/12.0/results/r)" = "result of 12" ]
	job 99
	hook epilog
	status_is 0
	[ -e tier/12.0 ]
}

@test "K05: what a killed job left goes with the timer, results that nobody has fetched stay until they expire" {
	node_setup
	mkdir closed
	specs "out results:$work/closed/"
	job 6
	ran
	hook epilog
	record_says 6.0 kept true
	big_source
	specs "in $work/src:data"
	job 7
	start_hook prolog staging
	kill -9 "$hook_pid"
	wait "$hook_pid" || true
	worker_is_gone
	[ -d tier/7.0 ]
	job 8
	hook prolog
	status_is 0
	run stagetool reap --conf=conf
	[ ! -e tier/7.0 ]
	[ -e tier/8.0/data ]
	[ "$(cat tier/6.0/results/r)" = "result of 6" ]
	sed -i 's/"until": [0-9]*/"until": 1/' state/jobs/6.0.json
	run stagetool reap --conf=conf
	[ ! -e tier/6.0 ]
	[ -e tier/8.0/data ]
}
