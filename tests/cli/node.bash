# Common to the tests of prolog, epilog and status: a node with a tier, a job of user 65534, no Slurm.
# shellcheck shell=bash disable=SC2154

# In memory where there is such a place: thousands of files are made and removed again.
[ -w /dev/shm ] && export TMPDIR=/dev/shm

# The tier, the state and the configuration. "src" is the shared side, "out" a place for results.
node_setup() {
	need_root
	mkdir tier state out src
	chmod 711 tier
	chown 65534:65534 out
	rmdir s
	conf min_free=0
	export SLURM_JOB_UID=65534 SLURM_JOB_GID=65534 SLURM_JOB_USER=nobody SLURMD_NODENAME=n1
	unset SPANK_STAGE_SPECS STAGE_JOB_STDOUT STAGE_JOB_STATE SLURM_JOB_EXIT_CODE STAGE_REPORT_FD \
		STAGE_CONF SLURM_JOB_RESTART_COUNT SLURM_RESTART_COUNT STAGE_NODE_INDEX STAGE_NODE_COUNT
	job 7
}

# conf [LINE OF THE TIER]...
conf() {
	{
		printf '[stagetool]\nstate_dir = %s\n' "$work/state"
		printf '[tier nvme]\npath = %s\n' "$work/tier"
		printf '%s\n' "$@"
	} >conf
}

# job ID [RESTART]: the job that prolog and epilog are run for from now on.
job() {
	export SLURM_JOB_ID=$1 SLURM_JOB_RESTART_COUNT=${2:-0}
}

# specs LINE...: what the job asks for.
specs() {
	SPANK_STAGE_SPECS=$(printf 'stagetool 1\n' && printf '%s\n' "$@" && echo x)
	export SPANK_STAGE_SPECS=${SPANK_STAGE_SPECS%x}
}

# hook prolog|epilog: runs it; what it reports is in the file "report".
hook() {
	: >report
	run env STAGE_REPORT_FD=9 "$STAGETOOL" "$1" --conf=conf 9>>report
}

# reports LINE: the last hook's last line on the report pipe begins so.
reports() {
	[[ $(tail -n 1 report) == "$1"* ]] && return 0
	echo "not reported: $1; report:" >&2
	cat report >&2
	return 1
}

# record_says ID.RESTART STATE [PRESENT]: the record on disk.
record_says() {
	local json=state/jobs/$1.json

	grep -q "\"state\": \"$2\"" "$json" && grep -q "\"present\": ${3:-}" "$json" && return 0
	cat "$json" >&2
	return 1
}

# Nothing of any job is left on the tier.
tier_is_empty() {
	[ -z "$(ls -A tier)" ] && return 0
	find tier >&2
	return 1
}

# as_job CMD...: what the job's script does, in its stage.
as_job() {
	(cd "tier/$SLURM_JOB_ID.$SLURM_JOB_RESTART_COUNT" && as_user "$@")
}

# A tree that takes a while to copy: 40 directories of some files.
big_source() {
	local i

	for i in $(seq 40); do
		mkdir "src/$i"
		(cd "src/$i" && seq "${1:-250}" | xargs touch)
	done
}

# start_hook prolog|epilog STATE: runs it in the background until the record has come to STATE; its pid is
# in "hook_pid".
start_hook() {
	local json=state/jobs/$SLURM_JOB_ID.$SLURM_JOB_RESTART_COUNT.json

	: >report
	STAGE_REPORT_FD=9 "$STAGETOOL" "$1" --conf=conf 9>>report 2>said 3>&- &
	hook_pid=$!
	while ! grep -q "\"state\": \"$2\"" "$json" 2>/dev/null; do
		kill -0 $hook_pid || return 1
	done
}

# The worker of a hook that was killed is gone too: it holds the attempt's lock while it lives.
worker_is_gone() {
	flock -w 20 "state/jobs/$SLURM_JOB_ID.$SLURM_JOB_RESTART_COUNT.lock" true
}
