# shellcheck shell=bash disable=SC2016
# Ends that nobody asked for: everything killed at once, preemption, two that write one name.

load helpers

setup_file() {
	unset STAGETOOL_TOOL
	STAGETOOL_SLURM_CONF='PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=again Nodes=ALL MaxTime=INFINITE State=UP DefMemPerCPU=100 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=never Nodes=ALL MaxTime=INFINITE State=UP DefMemPerCPU=100 PriorityTier=1 PreemptMode=CANCEL
PartitionName=first Nodes=ALL MaxTime=INFINITE State=UP DefMemPerCPU=100 PriorityTier=10 PreemptMode=OFF' \
		cluster_up -n 2
	mkdir -p "$CLUSTER/shared/data" "$CLUSTER/shared/many"
	echo "file 1" >"$CLUSTER/shared/data/1"
	(cd "$CLUSTER/shared/many" && seq 20000 | xargs touch)
	mkdir -m 1777 "$CLUSTER/shared/out"
	# Slurm misses a job when its node registers, and 20 s after it heard of it at the earliest.
	IN=$(submit -w n1 --no-requeue --stage-in=many --stage-out=r:in/ --wrap "$(results) echo ran")
	wait_until record n1 "$IN.0" staging
	kill_all n1
	OUT=$(submit -w n2 --stage-out=many:out/ --wrap \
		'mkdir $STAGE_DIR/many; for i in $(seq 8000); do : >$STAGE_DIR/many/$i; done')
	wait_until record n2 "$OUT.0" returning
	kill_all n2
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" n2 start
	export IN OUT
}

teardown_file() {
	cluster_down
}

teardown() {
	nodes_fine || undrain
}

results() {
	printf '%s' 'mkdir $STAGE_DIR/r; echo "result of $SLURM_JOB_ID" >$STAGE_DIR/r/result;'
}

nothing_left() {
	[ -z "$(find "$CLUSTER"/tier/*/* -mindepth 1 -name "$1.*")" ]
}

# reap NODE [OPTION]...
reap() {
	local node=$1
	shift
	root env SLURMD_NODENAME="$node" stagetool reap --conf="$CLUSTER/etc/stagetool.conf" "$@"
}

# The processes of this cluster whose command line matches.
ours() {
	local pid
	for pid in $(pgrep -f "$1"); do
		! grep -qzxF -e "STAGETOOL_CLUSTER=$CLUSTER" -e "SLURM_CONF=$CLUSTER/etc/slurm.conf" \
			"/proc/$pid/environ" 2>/dev/null || echo "$pid"
	done
}

# kill_all NODE: its slurmd, slurmstepds, tool and worker at once; waits until they are gone.
kill_all() {
	local pids pid
	pids=$(ours "^slurmd -N $1" && ours 'slurmstepd' && pgrep -f "^$CLUSTER/bin/stagetool (prolog|epilog)")
	[ "$(wc -w <<<"$pids")" -ge 3 ]
	# shellcheck disable=SC2086
	kill -KILL $pids 2>/dev/null || true
	for pid in $pids; do
		wait_until refute_alive "$pid"
	done
}

refute_alive() {
	[ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

# record NODE JOB.RESTART STATE: its record is there, with this state.
record() {
	grep -qs "\"state\": \"$3\"" "$CLUSTER/state/$1/jobs/$2.json"
}

# Starts n1's slurmd again, once Slurm will miss the job.
n1_is_back() {
	old() { is_over "$IN" || [ "$(root squeue -h -j "$IN" -o %M | tr -d :)" -gt 21 ]; }
	[ -z "$(ours '^slurmd -N n1')" ] || return 0
	wait_until old
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" n1 start
	expect "$IN" NODE_FAIL
}

@test "slurmd, tool and worker are killed at once in a stage-out: reap sends the rest" {
	record n2 "$OUT.0" returning
	sent=$(find "$CLUSTER/shared/out" -type f ! -name '.stagetool-tmp.*' | wc -l)
	[ "$sent" -lt 8000 ]
	reap n2
	[ "$(find "$CLUSTER/shared/out/many" -type f | wc -l)" = 8000 ]
	nothing_left "$OUT"
	output "$OUT" | grep -q '^stagetool: n2: stage-out many:.*staged out'
	# slurmctld asks for the epilog again after two minutes at the latest; it finds nothing to do
	WAIT=150 expect "$OUT" COMPLETED 0:0
	[ "$(find "$CLUSTER/shared/out/many" -type f | wc -l)" = 8000 ]
	[ "$(output "$OUT" | grep -c 'staged out')" = 1 ]
}

@test "slurmd, tool and worker are killed at once in a stage-in: the job ends, and nothing stays" {
	n1_is_back
	expect "$IN" NODE_FAIL
	reap n1
	nothing_left "$IN"
	[ ! -e "$CLUSTER/shared/in" ]
	refute grep -q ran "$CLUSTER/out/$IN.out"
	wait_until nodes_fine
}

@test "a job that is preempted and cancelled has its results back" {
	n1_is_back
	job=$(submit -p never -w n1 -n 8 --stage-in=data --stage-out=r:never/ --wrap "$(results) echo begun; sleep 300")
	wait_until grep -q begun "$CLUSTER/out/$job.out"
	other=$(submit -p first -w n1 -n 8 --wrap 'true')
	expect "$job" PREEMPTED
	[ "$(cat "$CLUSTER/shared/never/r/result")" = "result of $job" ]
	output "$job" | grep -q '^stagetool: n1: stage-out r:'
	expect "$other" COMPLETED 0:0
	nothing_left "$job"
	wait_until nodes_fine
}

@test "a job that is preempted and queued again is staged again, and each attempt's results are there" {
	n1_is_back
	job=$(submit -p again -w n1 -n 8 --stage-in=data --stage-out=r:again/ --stage-out=r:over/,conflict=overwrite --wrap \
		'[ -e $STAGE_DIR/r ] && echo stale; cat $STAGE_DIR/data/1; mkdir $STAGE_DIR/r
		echo "attempt ${SLURM_RESTART_COUNT:-0}" >$STAGE_DIR/r/result
		[ "$SLURM_RESTART_COUNT" ] || { echo early >$STAGE_DIR/r/early; echo begun; sleep 300; }')
	wait_until grep -q begun "$CLUSTER/out/$job.out"
	other=$(submit -p first -w n1 -n 8 --wrap 'true')
	expect "$other" COMPLETED 0:0
	WAIT=150 expect "$job" COMPLETED 0:0
	refute grep -q stale "$CLUSTER/out/$job.out"
	reap n1
	[ "$(cat "$CLUSTER/shared/again/r/early")" = early ]
	# what the first attempt sent is not replaced without being asked for
	[ "$(cat "$CLUSTER/shared/again/r/result")" = "attempt 0" ]
	[ "$(cat "$CLUSTER/shared/again/r/result.conflict-$job-n1")" = "attempt 1" ]
	[ "$(cat "$CLUSTER/shared/over/r/result")" = "attempt 1" ]
	[ "$(find "$CLUSTER/shared/over/r" -type f | wc -l)" = 2 ]
	output "$job" | grep -q '^stagetool: n1: stage-out r:.*1 conflict'
	nothing_left "$job"
	wait_until nodes_fine
}

@test "gather=merge: one name with different content on two nodes is a conflict, both are kept" {
	n1_is_back
	job=$(submit -N2 -w n1,n2 --stage-out=r:merged/,gather=merge --wrap \
		'srun sh -c "mkdir \$STAGE_DIR/r; echo same >\$STAGE_DIR/r/\$SLURMD_NODENAME; echo from \$SLURMD_NODENAME >\$STAGE_DIR/r/result"')
	expect "$job" COMPLETED 0:0
	[ "$(cat "$CLUSTER"/shared/merged/r/result* | sort | xargs)" = "from n1 from n2" ]
	[ "$(cat "$CLUSTER/shared/merged/r"/n[12] | xargs)" = "same same" ]
	[ "$(output "$job" | grep -c '^stagetool: n[12]: .*1 conflict')" = 1 ]
	nothing_left "$job"
	nodes_fine
}

@test "X02: two jobs that send one name: one is there whole, the other beside it" {
	n1_is_back
	for n in 1 2; do
		jobs[n]=$(submit -w "n$n" --stage-out=r:both/ --wrap \
			"mkdir \$STAGE_DIR/r; yes $n | head -n 200000 >\$STAGE_DIR/r/result")
	done
	for n in 1 2; do
		expect "${jobs[n]}" COMPLETED 0:0
		nothing_left "${jobs[n]}"
	done
	[ "$(find "$CLUSTER/shared/both/r" -type f | wc -l)" = 2 ]
	[ -e "$CLUSTER/shared/both/r/result" ]
	for file in "$CLUSTER"/shared/both/r/result*; do
		[ "$(wc -l <"$file")" = 200000 ]
		[ "$(sort -u "$file" | wc -l)" = 1 ]
	done
	[ "$(cat "$CLUSTER/out/${jobs[1]}.out" "$CLUSTER/out/${jobs[2]}.out" | grep -c '1 conflict')" = 1 ]
}
