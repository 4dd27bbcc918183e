# shellcheck shell=bash disable=SC2016
# The plugin on a real Slurm, with a tool that does what a job's name says: what the real one does only
# when something is badly wrong.

load helpers

setup_file() {
	export STAGETOOL_TOOL=$BATS_TEST_DIRNAME/fake-tool
	cluster_up -n 3
	mkdir -m 0755 "$CLUSTER/fake"
	install "$STAGETOOL_BUILD/tests/slurm/write-handoff" "$CLUSTER/fake/handoff"
	user salloc --no-shell -w n3 -J held
	HELD=$(root squeue -h -n held -o %i)
	export HELD
	# Those that take their time run beside the others.
	LONG=$(submit -J slow12 -t 5 --stage-in=/proj/data -w n3 --wrap true)
	DEAF=$(submit -J deaf --stage-in=/proj/data -w n3 --wrap true)
	export LONG DEAF
	wait_until test -e "$CLUSTER/fake/prolog.$DEAF.n3"
	root scancel "$DEAF"
	DEAF_SINCE=$SECONDS
	export DEAF_SINCE
}

teardown() {
	nodes_fine || undrain
}

teardown_file() {
	cluster_down
}

# A variable that the tool was given: given VERB JOB NODE NAME
given() {
	local value
	while IFS= read -r -d '' value; do
		[[ $value != "$4="* ]] || printf '%s' "${value#*=}"
	done <"$CLUSTER/fake/$1.$2.$3"
}

pending_but_long() {
	root squeue -h -t PD,R -u nobody -o %i | grep -vxE "$LONG|$DEAF|$HELD"
}

script() {
	cat >"$CLUSTER/shared/$1"
	chmod 755 "$CLUSTER/shared/$1"
}

@test "a job without stage options has nothing to do with the tool" {
	job=$(submit -N2 --wrap 'echo "dir=$STAGE_DIR"')
	expect "$job" COMPLETED 0:0
	[ "$(output "$job")" = "dir=" ]
	run ls "$CLUSTER"/fake/prolog."$job".*
	[ "$status" -ne 0 ]
	nodes_fine
}

@test "the tool in the prolog is given what the contract says, and nothing of others" {
	job=$(submit -J fine -N2 -w n1,n2 --array=7 --stage-in=/proj/data --wrap true)
	expect "$job" COMPLETED 0:0
	[ "$(given prolog "$job" n1 STAGE_JOB_NAME)" = fine ]
	[ "$(given prolog "$job" n1 STAGE_ARRAY_JOB_ID)" = "$job" ]
	[ "$(given prolog "$job" n1 STAGE_ARRAY_TASK_ID)" = 7 ]
	[ "$(given prolog "$job" n1 STAGE_NODE_INDEX)" = 0 ]
	[ "$(given prolog "$job" n2 STAGE_NODE_INDEX)" = 1 ]
	[ "$(given prolog "$job" n2 STAGE_NODE_COUNT)" = 2 ]
	[ "$(given prolog "$job" n1 STAGE_JOB_STDOUT)" = "$CLUSTER/out/$job.out" ]
	[ "$(given prolog "$job" n1 STAGE_CONF)" = "$CLUSTER/etc/stagetool.conf" ]
	[ "$(given prolog "$job" n1 STAGE_JOB_STATE)" = "" ]
	[ "$(given epilog "$job" n1 STAGE_JOB_STATE)" = COMPLETED ]
	[ "$(given epilog "$job" n2 STAGE_JOB_STDOUT)" = "$CLUSTER/out/$job.out" ]
	[ -n "$(given prolog "$job" n1 PATH)" ]
	names=$(tr '\0' '\n' <"$CLUSTER/fake/prolog.$job.n1" | sed -n 's/^\([A-Z_0-9]*\)=.*/\1/p')
	refute grep -vE '^(PATH|PWD|SHLVL|_|SLURM.*|STAGE_.*|SPANK_STAGE_SPECS)$' <<<"$names"
}

@test "every value of a repeated option arrives, however the job is submitted" {
	script carriers.sh <<-'END'
		#!/bin/sh
		#SBATCH --stage-in=/proj/one
		#SBATCH --stage-in="/proj/with space:two"
		#SBATCH --stage-out=results:/proj/back
		true
	END
	jobs=
	for options in "" "--export=NONE" "--export=NIL"; do
		# shellcheck disable=SC2086
		jobs+=" $(submit -J fine -w n1 $options --stage-in=/proj/three --stage-tier=pmem --stage-size=5M carriers.sh)"
	done
	for job in $jobs; do
		expect "$job" COMPLETED 0:0
		specs=$(given prolog "$job" n1 SPANK_STAGE_SPECS)
		for part in /proj/one "with space" two /proj/three results /proj/back pmem; do
			grep -qF -- "$part" <<<"$specs"
		done
		[ "$specs" = "$(given epilog "$job" n1 SPANK_STAGE_SPECS)" ]
	done
}

@test "--wrap, an array, salloc and srun carry them too" {
	wrap=$(submit -J fine -w n1 --stage-in=/proj/one --stage-in=/proj/two --wrap true)
	array=$(submit -J fine -w n1 -a 1-2 --stage-in=/proj/one --stage-in=/proj/two --wrap true)
	user salloc -J fine -w n1 --stage-in=/proj/one --stage-in=/proj/two true
	user srun -J fine -w n1 --stage-in=/proj/one --stage-in=/proj/two true
	expect "$wrap" COMPLETED 0:0
	expect "$array" COMPLETED
	wanted=$(given prolog "$wrap" n1 SPANK_STAGE_SPECS)
	grep -q /proj/one <<<"$wanted" && grep -q /proj/two <<<"$wanted"
	for ((job = wrap; job <= wrap + 4; job++)); do
		[ "$(given prolog "$job" n1 SPANK_STAGE_SPECS)" = "$wanted" ]
	done
}

@test "names of every kind survive the way through the environment" {
	name=$'/proj/a b\'c"d;e$f`g\\:i\\,j\\\\k\xff\xc3\xa4:here'
	job=$(submit -J fine -w n1 --stage-in="$name" --wrap true)
	expect "$job" COMPLETED 0:0
	run user srun -w n1 --stage-in=$'/proj/a\nb:here' true
	[ "$status" -ne 0 ]
	[[ $output == *"column 8"* ]]
}

@test "what is wrong is refused at submit, with the reason" {
	run submit --stage-in=/proj/a:../b --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *'/proj/a:../b'* && $output == *column* ]]
	run submit --stage-in=/proj/a:x --stage-in=/proj/b:x --wrap true
	[ "$status" -ne 0 ]
	[[ $output == */proj/a:x* && $output == */proj/b:x* ]]
	run user salloc --stage-size=much true
	[ "$status" -ne 0 ]
	[[ $output == *much* ]]
	run user srun --stage-tier= true
	[ "$status" -ne 0 ]
	run submit --stage-in=/proj/a,as=lazy --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *lazy* ]]
	script wrong.sh <<<$'#!/bin/sh\n#SBATCH --stage-out=results'
	run submit wrong.sh
	[ "$status" -ne 0 ]
	refute pending_but_long
}

@test "stage options in a heterogeneous job are refused, not mixed up" {
	run submit -w n1 --stage-in=/proj/a : -w n2 --stage-in=/proj/b --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *heterogeneous* ]]
	run submit -w n1 : -w n2 --stage-in=/proj/b --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *heterogeneous* ]]
	run user srun -w n1 --stage-in=/proj/a true : -w n2 true
	[ "$status" -ne 0 ]
	[[ $output == *heterogeneous* ]]
	user srun -w n1 true : -w n2 true
}

@test "too many options are refused at submit, not by the kernel on the node" {
	options=()
	for ((i = 0; i < 400; i++)); do
		options+=("--stage-in=/proj/$i$(printf '%0200d' 0):$i")
	done
	run submit "${options[@]}" --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *65536* ]]
	job=$(submit -J fine -w n1 "${options[@]:0:200}" --wrap true)
	expect "$job" COMPLETED 0:0
}

@test "STAGE_DIR and STAGE_TIER are in the script, in each step and in a shell of salloc" {
	job=$(submit -J fine -N2 -w n1,n2 --stage-in=/proj/data --wrap \
		'echo "script $STAGE_DIR $STAGE_TIER"; srun -l sh -c "echo step \$STAGE_DIR \$STAGE_TIER"')
	expect "$job" COMPLETED 0:0
	output "$job"
	grep -qx "script $CLUSTER/tier/n1/$job nvme" "$CLUSTER/out/$job.out"
	grep -qx "0: step $CLUSTER/tier/n1/$job nvme" "$CLUSTER/out/$job.out"
	grep -qx "1: step $CLUSTER/tier/n2/$job nvme" "$CLUSTER/out/$job.out"
	run user srun -J fine -w n1 --stage-in=/proj/data sh -c 'echo "direct $STAGE_DIR $STAGE_TIER"'
	[ "$status" -eq 0 ]
	[[ $output == *"direct $CLUSTER/tier/n1/"*" nvme"* ]]
	# Without a command salloc starts a shell on the first node, as an interactive step.
	run user script -qec "salloc -J fine -w n2 --stage-in=/proj/data" /dev/null <<<'echo "shell $STAGE_DIR $STAGE_TIER"; exit'
	[[ $output == *"shell $CLUSTER/tier/n2/"*" nvme"* ]]
}

@test "a batch job's output begins with the stage-in's line" {
	job=$(submit -J fine -N2 -w n1,n2 --stage-in=/proj/data --wrap 'echo script')
	expect "$job" COMPLETED 0:0
	[ "$(output "$job")" = $'stage-in: 3 files on n1\nscript' ]
}

@test "what a user forges in the environment changes nothing" {
	job=$(submit -J fine -w n1 --stage-in=/proj/data --export=ALL,STAGE_DIR=/forged,STAGE_TIER=forged,SLURMD_NODENAME=n2,SPANK_STAGE_SPECS=forged,SLURM_SPANK_STAGE_SPECS=forged \
		--wrap 'echo "$STAGE_DIR $STAGE_TIER"; STAGE_DIR=/forged SLURMD_NODENAME=n2 srun sh -c "echo \$STAGE_DIR"')
	expect "$job" COMPLETED 0:0
	[ "$(output "$job" | sed 1d)" = "$CLUSTER/tier/n1/$job nvme"$'\n'"$CLUSTER/tier/n1/$job" ]
	refute grep -qz forged "$CLUSTER/fake/prolog.$job.n1"
	# Specs without the options: nothing of the plugin's is asked for, so nothing is run.
	job=$(SPANK_STAGE_SPECS=forged SLURM_SPANK_STAGE_SPECS=forged submit -J fine -w n1 --wrap true)
	expect "$job" COMPLETED 0:0
	[ ! -e "$CLUSTER/fake/prolog.$job.n1" ]
}

@test "a job that is submitted from a job has nothing of its options" {
	job=$(submit -J fine -w n1 --stage-in=/proj/data --stage-tier=nvme --wrap \
		"sbatch -W --parsable -J inner -w n1 -o $CLUSTER/out/inner.out --wrap 'echo \"dir=\$STAGE_DIR\"; srun sh -c \"echo step=\\\$STAGE_DIR\"'")
	expect "$job" COMPLETED 0:0
	[ "$(cat "$CLUSTER/out/inner.out")" = $'dir=\nstep=' ]
}

@test "srun with stage options inside a job is refused and says what to do" {
	job=$(submit -J fine -w n1 --stage-in=/proj/data --wrap \
		'srun --stage-in=/proj/more true; echo "rc $?"; srun true; echo "rc $?"; srun --stage-tier=pmem true; echo "rc $?"')
	expect "$job" COMPLETED 0:0
	output "$job" | grep -q "stagetool in"
	[ "$(output "$job" | grep -c '^rc 0$')" = 1 ]
	[ "$(output "$job" | grep -c '^rc [1-9]')" = 2 ]
	# The same without the environment of a job.
	run user srun --jobid="$HELD" --stage-in=/proj/more true
	root scancel "$HELD"
	[ "$status" -ne 0 ]
	[[ $output == *"stagetool in"* ]]
}

@test "a failed stage-in fails a batch job, with the reason of another node in its output" {
	job=$(submit -J missing@n2 -N2 -w n1,n2 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran; srun touch $CLUSTER/out/ran")
	expect "$job" FAILED 1:0
	grep -q "stage-in failed on n2: /proj/data: No such file or directory" "$CLUSTER/out/$job.out"
	[ "$(field "$job" Comment)" = "stage-in failed on n2: /proj/data: No such file or directory" ]
	[ "$(field "$job" AdminComment)" = "stage-in failed on n2: /proj/data: No such file or directory" ]
	[ ! -e "$CLUSTER/out/ran" ]
	[ "$(field "$job" Restarts)" = "" ] || [ "$(field "$job" Restarts)" = 0 ]
	nodes_fine
	# The epilog still runs everywhere.
	[ -e "$CLUSTER/fake/epilog.$job.n1" ] && [ -e "$CLUSTER/fake/epilog.$job.n2" ]
	[ "$(given epilog "$job" n1 STAGE_JOB_STATE)" = FAILED ]
}

@test "a failed stage-in leaves the user's own comment alone" {
	job=$(submit -J missing@n2 -N2 -w n1,n2 --comment="my own" --stage-in=/proj/data --wrap true)
	expect "$job" FAILED 1:0
	grep -q "stage-in failed on n2: /proj/data: No such file or directory" "$CLUSTER/out/$job.out"
	[ "$(field "$job" Comment)" = "my own" ]
	[ "$(field "$job" AdminComment)" = "stage-in failed on n2: /proj/data: No such file or directory" ]
}

@test "a failed stage-in of one array task leaves the others alone" {
	# The last task has the id of the array itself.
	job=$(user sbatch --parsable -o "$CLUSTER/out/%A_%a.out" -J missing@n2 -a 1-3 -N1 --exclusive -w n2 --stage-in=/proj/data --wrap true)
	expect "$job" FAILED
	job=$(user sbatch --parsable -o "$CLUSTER/out/%A_%a.out" -J missing@n2 -a 1-2 -N1 --exclusive -x n3 --stage-in=/proj/data --wrap 'echo ran')
	wait_until is_over "$job"
	[ "$(state "$job" | sort | xargs)" = "COMPLETED FAILED" ]
	[ "$(cat "$CLUSTER/out/$job"_*.out | grep -c '^ran$')" = 1 ]
	[ "$(cat "$CLUSTER/out/$job"_*.out | grep -c 'stage-in failed on n2')" = 1 ]
	[ "$(root scontrol -o show job "$job" | grep -c ' Comment=stage-in failed')" = 1 ]
}

@test "a failed stage-in is on srun's terminal, and nothing is started" {
	run user srun -J missing@n2 -N2 -w n1,n2 --stage-in=/proj/data touch "$CLUSTER/out/ran"
	[ "$status" -eq 1 ]
	[[ $output == *"stage-in failed on n2: /proj/data: No such file or directory"* ]]
	job=$(root squeue -h -t all -n missing@n2 -o %i | sort -n | tail -n 1)
	expect "$job" FAILED 1:0
	[[ $(field "$job" Comment) == "stage-in failed on n2"* ]]
	[ ! -e "$CLUSTER/out/ran" ]
	nodes_fine
}

@test "a failed stage-in is on salloc's terminal, and its command is not started" {
	run user salloc -J missing@n2 -N2 -w n1,n2 --stage-in=/proj/data touch "$CLUSTER/out/ran"
	[ "$status" -eq 1 ]
	[[ $output == *"stage-in failed on n2: /proj/data: No such file or directory"* ]]
	job=$(root squeue -h -t all -n missing@n2 -o %i | sort -n | tail -n 1)
	expect "$job" FAILED 1:0
	[[ $(field "$job" Comment) == "stage-in failed on n2"* ]]
	[ ! -e "$CLUSTER/out/ran" ]
	nodes_fine
}

@test "a tool that crashes, says nothing or ends wrongly is a failed stage-in" {
	crash=$(submit -J crash@n2 -N2 -w n1,n2 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	late=$(submit -J late-crash -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	silent=$(submit -J silent -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	lying=$(submit -J lying -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	odd=$(submit -J odd -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	for job in $crash $late $silent $lying $odd; do
		expect "$job" FAILED 1:0
	done
	grep -q "stage-in failed on n2: .*signal 11" "$CLUSTER/out/$crash.out"
	grep -q "stage-in failed on n1: .*signal 9" "$CLUSTER/out/$late.out"
	grep -q "status 3.*something went wrong" "$CLUSTER/out/$silent.out"
	grep -q "status 3" "$CLUSTER/out/$lying.out"
	grep -qF '/proj/a\tb: No such file' "$CLUSTER/out/$odd.out"
	[ ! -e "$CLUSTER/out/ran" ]
	nodes_fine
}

@test "scancel in the prolog stops the tool, and nothing is drained" {
	job=$(submit -J slow60 -N2 -w n1,n2 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	wait_until test -e "$CLUSTER/fake/prolog.$job.n2"
	root scancel "$job"
	expect "$job" CANCELLED 0:0
	[ -e "$CLUSTER/fake/term.$job.n1" ] && [ -e "$CLUSTER/fake/term.$job.n2" ]
	[ "$(given epilog "$job" n1 STAGE_JOB_STATE)" = CANCELLED ]
	[ ! -e "$CLUSTER/out/ran" ]
	[[ $(field "$job" Comment) != *failed* ]]
	nodes_fine
}

@test "progress is in the job's admin comment" {
	job=$(submit -J slow8 -w n1 --stage-in=/proj/data --wrap true)
	saw() { [[ $(field "$job" AdminComment) == "stage-in: "*" tenths" ]]; }
	wait_until saw
	expect "$job" COMPLETED 0:0
	[ "$(field "$job" AdminComment)" = "stage-in: 3 files" ]
}

@test "a broken node is drained with its reason, and the job runs elsewhere" {
	job=$(submit -J broken@n1 -N1 -x n3 --stage-in=/proj/data --wrap 'echo "on $SLURMD_NODENAME"')
	expect "$job" COMPLETED 0:0
	grep -qx "on n2" "$CLUSTER/out/$job.out"
	[ "$(root sinfo -h -N -n n1 -o '%t %E')" = "drain stagetool: tier nvme: Input/output error" ]
	[ "$(root sinfo -h -N -n n2 -o %t)" = idle ]
	[ "$(given prolog "$job" n1 SLURM_JOB_RESTART_COUNT)" = 0 ]
	[ "$(given epilog "$job" n1 STAGE_JOB_STATE)" = REQUEUED ]
	[ "$(given prolog "$job" n2 SLURM_JOB_RESTART_COUNT)" = 1 ]
	undrain
}

@test "on a broken node a job that may not be queued again fails, with the reason" {
	job=$(submit -J broken@n1 -w n1 --no-requeue --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	expect "$job" FAILED 1:0
	grep -q "stage-in failed on n1: tier nvme: Input/output error" "$CLUSTER/out/$job.out"
	[[ $(root sinfo -h -N -n n1 -o '%t') == drain* ]]
	undrain
	run user srun -J broken@n1 -w n1 --stage-in=/proj/data touch "$CLUSTER/out/ran"
	[ "$status" -eq 1 ]
	[[ $output == *"stage-in failed on n1: tier nvme: Input/output error"* ]]
	[ ! -e "$CLUSTER/out/ran" ]
	undrain
}

@test "a failure of an earlier attempt is not held against the next one" {
	job=$(submit -J missing -w n1 --stage-in=/proj/data --wrap 'echo ran')
	expect "$job" FAILED 1:0
	root scontrol requeue "$job"
	root scontrol update JobId="$job" JobName=fine
	expect "$job" COMPLETED 0:0
	grep -qx ran "$CLUSTER/out/$job.out"
	again=$(submit -J fine -w n1 --stage-in=/proj/data --wrap '[ "$SLURM_RESTART_COUNT" ] || sleep 60')
	wait_until runs "$again"
	root scontrol update JobId="$again" JobName=missing
	root scontrol requeue "$again"
	expect "$again" FAILED 1:0
	grep -q "stage-in failed on n1, restart 1: /proj/data" "$CLUSTER/out/$again.out"
}

@test "an epilog that fails or crashes drains nothing; one that finds a broken node does" {
	job=$(submit -J epilog-job -w n1 --stage-out=r:/proj/r --wrap true)
	crash=$(submit -J epilog-crash -w n1 --stage-out=r:/proj/r --wrap true)
	expect "$job" COMPLETED 0:0
	expect "$crash" COMPLETED 0:0
	nodes_fine
	job=$(submit -J epilog-node -w n1 --stage-out=r:/proj/r --wrap true)
	expect "$job" COMPLETED 0:0
	[ "$(root sinfo -h -N -n n1 -o '%t %E')" = "drain stagetool: tier nvme: gone" ]
	undrain
}

@test "the epilog knows how the job ended" {
	fail=$(submit -J fine -w n1 --stage-out=r:/proj/r --wrap 'exit 3')
	cancel=$(submit -J fine -w n1 --stage-out=r:/proj/r --wrap 'sleep 60')
	wait_until runs "$cancel"
	root scancel "$cancel"
	expect "$fail" FAILED 3:0
	expect "$cancel" CANCELLED
	[ "$(given epilog "$fail" n1 STAGE_JOB_STATE)" = FAILED ]
	[ "$(given epilog "$cancel" n1 STAGE_JOB_STATE)" = CANCELLED ]
	user srun -J fine-srun -w n1 --stage-out=r:/proj/r true
	job=$(root squeue -h -t all -n fine-srun -o %i)
	wait_until is_over "$job"
	[ "$(given epilog "$job" n1 STAGE_JOB_STDOUT)" = "" ]
}

@test "a tool that others can write is not run, and the job says so" {
	chmod g+w "$CLUSTER/bin/stagetool"
	job=$(submit -J fine -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	expect "$job" FAILED 1:0
	chmod g-w "$CLUSTER/bin/stagetool"
	grep -q "stage-in failed on n1: tool $CLUSTER/bin/stagetool: " "$CLUSTER/out/$job.out"
	[ ! -e "$CLUSTER/fake/prolog.$job.n1" ]
	[ ! -e "$CLUSTER/out/ran" ]
	grep -q "tool $CLUSTER/bin/stagetool: " "$CLUSTER/log/slurmd-n1.log"
	nodes_fine
}

@test "a configuration that can not be read fails jobs that stage, and no others" {
	mv "$CLUSTER/etc/stagetool.conf" "$CLUSTER/etc/away"
	job=$(submit -J fine -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	other=$(submit -J fine -w n1 --wrap 'srun echo ran')
	expect "$job" FAILED 1:0
	expect "$other" COMPLETED 0:0
	mv "$CLUSTER/etc/away" "$CLUSTER/etc/stagetool.conf"
	grep -q "stagetool.conf" "$CLUSTER/out/$job.out"
	[ "$(output "$other")" = ran ]
	[ ! -e "$CLUSTER/out/ran" ]
	nodes_fine
}

@test "where the node can not keep the reason, it is still in the output" {
	mv "$CLUSTER/state/n1" "$CLUSTER/state/away" 2>/dev/null || true
	touch "$CLUSTER/state/n1"
	job=$(submit -J missing -w n1 --stage-in=/proj/data --wrap "touch $CLUSTER/out/ran")
	expect "$job" FAILED 1:0
	rm "$CLUSTER/state/n1"
	[ ! -e "$CLUSTER/state/away" ] || mv "$CLUSTER/state/away" "$CLUSTER/state/n1"
	grep -q "stage-in failed on n1: /proj/data" "$CLUSTER/out/$job.out"
	[ ! -e "$CLUSTER/out/ran" ]
	nodes_fine
}

@test "a slurmd that is started again while a job runs changes nothing" {
	job=$(submit -J fine -w n1 --stage-in=/proj/data --wrap 'echo begun; sleep 3; srun sh -c "echo \$STAGE_DIR"')
	wait_until grep -q begun "$CLUSTER/out/$job.out"
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" n1 kill
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" n1 start
	expect "$job" COMPLETED 0:0
	[ "$(output "$job" | tail -n 1)" = "$CLUSTER/tier/n1/$job" ]
	[ -e "$CLUSTER/fake/epilog.$job.n1" ]
	nodes_fine
}

@test "a failure that is found while slurmctld is away is told when it is back" {
	# Not a batch job: slurmctld forgets to launch one that was in its prolog.
	user srun -J late-missing -w n1 --stage-in=/proj/data touch "$CLUSTER/out/ran" >"$CLUSTER/out/away" 2>&1 &
	srun=$!
	began() { job=$(root squeue -h -n late-missing -o %i) && [[ -e $CLUSTER/fake/prolog.$job.n1 ]]; }
	wait_until began
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" slurmctld term
	wait_until test -e "$CLUSTER/fake/late.$job"
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" slurmctld start
	expect "$job" FAILED
	refute wait "$srun"
	[ "$(field "$job" Comment)" = "stage-in failed on n1: /proj/data: No such file or directory" ]
	[ ! -e "$CLUSTER/out/ran" ]
	wait_until nodes_fine
}

# What slurm.conf says of PrologFlags, for one test.
prolog_flags() {
	sed -i "s/^#*PrologFlags=.*/$1/" "$CLUSTER/etc/slurm.conf"
	root scontrol reconfigure
}

@test "where Slurm does not wait for all prologs a failed stage-in ends the job too" {
	prolog_flags PrologFlags=Alloc
	alloc=$(submit -J missing@n2 -N2 -w n1,n2 --stage-in=/proj/data --wrap 'sleep 60; echo ran')
	expect "$alloc" FAILED 1:0
	prolog_flags '#PrologFlags='
	none=$(submit -J missing@n1 -w n1 --stage-in=/proj/data --wrap 'echo ran')
	expect "$none" FAILED 1:0
	step=$(submit -J missing@n2 -N2 -w n1,n2 --stage-in=/proj/data --wrap 'srun sh -c "echo ran on \$SLURMD_NODENAME"')
	expect "$step" FAILED
	prolog_flags PrologFlags=Alloc,DeferBatch
	[ "$(field "$alloc" Comment)" = "stage-in failed on n2: /proj/data: No such file or directory" ]
	refute grep -qs '^ran' "$CLUSTER/out/$alloc.out" "$CLUSTER/out/$none.out"
	refute grep -qs '^ran on n2' "$CLUSTER/out/$step.out"
	nodes_fine
}

@test "the time that a prolog took is given back" {
	wait_until is_over "$LONG"
	expect "$LONG" COMPLETED 0:0
	[ "$(field "$LONG" TimeLimit)" = 00:06:00 ]
}

@test "a tool that hears no SIGTERM is killed after its grace" {
	WAIT=60 expect "$DEAF" CANCELLED
	[ ! -e "$CLUSTER/fake/term.$DEAF.n3" ]
	nodes_fine
}
