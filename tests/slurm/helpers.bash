# For the tests on a real Slurm: one cluster for each file of tests.
# shellcheck shell=bash

CLUSTER_SCRIPT=$BATS_TEST_DIRNAME/cluster

# Boots the file's cluster with the plugin. $CLUSTER/shared is the shared filesystem, $CLUSTER/out is where
# jobs' output goes; jobs are submitted from $CLUSTER/shared.
cluster_up() {
	[[ -n ${STAGETOOL_BUILD:-} ]] || {
		echo "STAGETOOL_BUILD (the build tree to test) is not set" >&2
		return 1
	}
	export STAGETOOL_BUILD
	CLUSTER=$("$CLUSTER_SCRIPT" start "$@") || return 1
	export CLUSTER
	mkdir -m 1777 "$CLUSTER"/{shared,out}
}

cluster_down() {
	[[ -z ${CLUSTER:-} ]] || "$CLUSTER_SCRIPT" stop "$CLUSTER"
}

# A command as an ordinary user ($AS, default nobody), and one as root.
user() {
	(cd "$CLUSTER/shared" && exec "$CLUSTER_SCRIPT" as "${AS:-nobody}" "$CLUSTER" "$@")
}

root() {
	"$CLUSTER_SCRIPT" run "$CLUSTER" "$@"
}

# sbatch; prints the job's id. Its output is $CLUSTER/out/ID.out (of an array: ARRAY_TASK.out).
submit() {
	user sbatch --parsable -o "$CLUSTER/out/%j.out" "$@"
}

output() {
	cat "$CLUSTER/out/$1.out"
}

# One field of a job: JobState, ExitCode, Comment, AdminComment, Reason ...
field() {
	root scontrol -o show job "$1" | sed -n "s/.* $2=\\(.*\\)/\\1/p" | sed 's/ [A-Za-z:/]*=.*//; s/ *$//'
}

# True if the command fails: "!" alone does not fail a test.
refute() {
	if "$@"; then
		echo "did not fail: $*" >&2
		return 1
	fi
}

state() {
	root squeue -h -t all -j "$1" -o %T
}

# Waits until a command succeeds; for at most $WAIT seconds (default 30).
wait_until() {
	local end=$((SECONDS + ${WAIT:-30}))
	until "$@" 2>/dev/null; do
		((SECONDS < end)) || {
			echo "waited in vain for: $*" >&2
			return 1
		}
		sleep 0.1
	done
}

is_over() {
	[[ -n $(state "$1") ]] && ! state "$1" | grep -qE 'PENDING|CONFIGURING|RUNNING|COMPLETING'
}

# Waits until the job and its epilogs are over, then checks state and exit code.
expect() {
	local job=$1 state=$2 code=${3:-}
	wait_until is_over "$job" || {
		root scontrol show job "$job"
		return 1
	}
	[[ $(state "$job" | sort -u) = "$state" ]] && [[ -z $code || $(field "$job" ExitCode) = "$code" ]] && return
	root scontrol show job "$job"
	cat "$CLUSTER/out/$job".out
	return 1
}

runs() {
	[[ $(state "$1") = RUNNING ]]
}

nodes_fine() {
	[[ $(root sinfo -h -N -o '%N %t' | grep -cvE 'idle|mix|alloc|comp') = 0 ]] && [[ -z $(root sinfo -h -R) ]]
}

# Brings drained nodes back, so that one test does not hurt the next.
undrain() {
	local node
	for node in $(root sinfo -h -N -o %N); do
		root scontrol update NodeName="$node" State=RESUME 2>/dev/null || true
	done
	wait_until nodes_fine
}
