# shellcheck shell=bash disable=SC2016
# The whole path on a real Slurm with the real tool: data in, job, results back, whatever the end was.

load helpers

setup_file() {
	unset STAGETOOL_TOOL
	cluster_up -n 2
	mkdir -p "$CLUSTER/shared/data/sub" "$CLUSTER/shared/only-n1/n1"
	for n in 1 2 3; do
		echo "file $n" >"$CLUSTER/shared/data/$n"
	done
	echo deep >"$CLUSTER/shared/data/sub/deep"
	echo here >"$CLUSTER/shared/only-n1/n1/x"
	# The time limit is a minute at least: it runs out beside the other tests.
	LIMIT=$(submit -w n2 -t 1 --stage-out=r:limit/ --stage-out=r:limit-success/,when=success \
		--stage-out=r:limit-failure/,when=failure --wrap "$(results) sleep 300")
	# Slurm misses a job when its node registers, and 20 s after it heard of it at the earliest.
	STEPD=$(submit -w n1 --no-requeue --stage-out=r:stepd/ --wrap "$(results) echo begun; sleep 300")
	wait_until grep -q begun "$CLUSTER/out/$STEPD.out"
	kill -KILL "$(stepd_of "$STEPD")"
	export LIMIT STEPD
}

teardown_file() {
	cluster_down
}

teardown() {
	nodes_fine || undrain
}

# A script's line that makes results.
results() {
	printf '%s' 'mkdir $STAGE_DIR/r; echo "result of $SLURM_JOB_ID" >$STAGE_DIR/r/result;'
}

# Whether the result of a job is below a directory.
came_back() {
	[ "$(cat "$CLUSTER/shared/$2/r/result")" = "result of $1" ]
}

# The process id of a job's batch step in this cluster.
stepd_of() {
	local pid
	for pid in $(pgrep -f "slurmstepd: \\[$1.batch\\]"); do
		if grep -qzxF "STAGETOOL_CLUSTER=$CLUSTER" "/proc/$pid/environ"; then
			echo "$pid"
			return
		fi
	done
	return 1
}

nothing_left() {
	[ -z "$(find "$CLUSTER"/tier/*/* -mindepth 1 -name "$1.*")" ]
}

script() {
	cat >"$CLUSTER/shared/$1"
	chmod 755 "$CLUSTER/shared/$1"
}

@test "data is there before the first line, results are back after the last, on two nodes" {
	script whole.sh <<-'END'
		#!/bin/bash
		#SBATCH -N2
		#SBATCH --stage-in=data
		#SBATCH --stage-out=results:whole/%x.%j
		echo "in script: $(cat $STAGE_DIR/data/1)"
		srun sh -c 'mkdir $STAGE_DIR/results; cat $STAGE_DIR/data/sub/deep >$STAGE_DIR/results/$SLURMD_NODENAME'
	END
	job=$(submit -J name whole.sh)
	expect "$job" COMPLETED 0:0
	output "$job"
	[ "$(cat "$CLUSTER/shared/whole/name.$job/n1/n1")" = deep ]
	[ "$(cat "$CLUSTER/shared/whole/name.$job/n2/n2")" = deep ]
	[ "$(stat -c %U "$CLUSTER/shared/whole/name.$job/n2/n2")" = nobody ]
	# One line first, the script's, then one for each node that sent something.
	[[ $(output "$job" | head -n 1) =~ ^stagetool:.*\ 4\ files ]]
	[ "$(output "$job" | sed -n 2p)" = "in script: file 1" ]
	[ "$(output "$job" | sed 1,2d | grep -c '^stagetool: n[12]: ')" = 2 ]
	[ "$(output "$job" | wc -l)" = 4 ]
	nothing_left "$job"
	nodes_fine
}

@test "data arrives however the options are given" {
	script carriers.sh <<-'END'
		#!/bin/bash
		#SBATCH --stage-in=data:one
		#SBATCH --stage-in=data/:two
		cat $STAGE_DIR/one/1 $STAGE_DIR/two/sub/deep $STAGE_DIR/three && echo "$STAGE_TIER"
	END
	file=$(submit -w n1 --stage-in=data/3:three --stage-tier=pmem carriers.sh)
	none=$(submit -w n1 --export=NONE --stage-in=data/3:three --stage-tier=pmem carriers.sh)
	wrap=$(submit -w n1 --stage-in=data:one --stage-in=data:two --stage-in=data/3:three --stage-tier=pmem \
		--wrap "$(tail -n 1 "$CLUSTER/shared/carriers.sh")")
	array=$(submit -w n1 -a 3 --stage-in=data/3:three --stage-tier=pmem carriers.sh)
	for job in $file $none $wrap $array; do
		expect "$job" COMPLETED 0:0
		[ "$(output "$job" | grep -v ^stagetool)" = $'file 1\ndeep\nfile 3\npmem' ]
	done
	run user salloc -w n1 --stage-in=data:one --stage-in=data:two srun sh -c 'cat $STAGE_DIR/one/1 $STAGE_DIR/two/1'
	[ "$status" -eq 0 ]
	[[ $output == *$'file 1\nfile 1'* ]]
	run user srun -w n1 --stage-in=data:one --stage-in=data:two sh -c 'cat $STAGE_DIR/one/1 $STAGE_DIR/two/1'
	[ "$status" -eq 0 ]
	[[ $output == *$'file 1\nfile 1'* ]]
	printf '# comment\n\ndata:one\ndata:two\n' >"$CLUSTER/shared/specs"
	job=$(submit -w n1 --stage-in=@specs --wrap 'cat $STAGE_DIR/one/2 $STAGE_DIR/two/2')
	expect "$job" COMPLETED 0:0
}

@test "each task of an array has a stage of its own, and symbols name them" {
	job=$(user sbatch --parsable -o "$CLUSTER/out/%A_%a.out" -J arr -a 1-4 --stage-in=data/%a:mine --stage-out=out:array/%x.%A.%a \
		--wrap 'cp $STAGE_DIR/mine $STAGE_DIR/out' 2>&1) || true
	[[ $job == [0-9]* ]]
	wait_until is_over "$job"
	state "$job"
	[ "$(cat "$CLUSTER/shared/array/arr.$job.1")" = "file 1" ]
	[ "$(cat "$CLUSTER/shared/array/arr.$job.3")" = "file 3" ]
	# The fourth has no data, and so fails alone.
	[ "$(state "$job" | sort | uniq -c | xargs)" = "3 COMPLETED 1 FAILED" ]
	grep -q "stage-in failed.*data/4" "$CLUSTER/out/${job}_4.out"
	nodes_fine
}

@test "a job that is queued again is staged again" {
	job=$(submit -w n1 --stage-in=data --stage-out=r:requeue/ --wrap \
		"[ -e \$STAGE_DIR/r ] && echo stale; cat \$STAGE_DIR/data/1; $(results) [ \"\$SLURM_RESTART_COUNT\" ] || { echo first >\$STAGE_DIR/r/first; sleep 60; }")
	wait_until grep -q 'file 1' "$CLUSTER/out/$job.out"
	sleep 0.5
	root scontrol requeue "$job"
	expect "$job" COMPLETED 0:0
	refute grep -q stale "$CLUSTER/out/$job.out"
	came_back "$job" requeue
	nothing_left "$job"
	nodes_fine
}

@test "results are back after success, failure, scancel, a killed script and too much memory" {
	ok=$(submit -w n1 --stage-out=r:ok/ --stage-out=r:ok-success/,when=success --stage-out=r:ok-failure/,when=failure --wrap "$(results)")
	bad=$(submit -w n1 --stage-out=r:bad/ --stage-out=r:bad-success/,when=success --stage-out=r:bad-failure/,when=failure --wrap "$(results) exit 3")
	cancel=$(submit -w n1 --stage-out=r:cancel/ --wrap "$(results) echo begun; sleep 60")
	kill=$(submit -w n1 --stage-out=r:kill/ --wrap "$(results) kill -KILL \$\$")
	memory=$(submit -w n1 --mem=50 --stage-out=r:memory/ --wrap \
		"$(results) exec perl -e '\$x = \"x\" x 400000000; sleep 60'")
	wait_until grep -q begun "$CLUSTER/out/$cancel.out"
	root scancel "$cancel"
	expect "$ok" COMPLETED 0:0
	expect "$bad" FAILED 3:0
	expect "$cancel" CANCELLED
	expect "$kill" FAILED 0:9
	expect "$memory" FAILED 0:9
	output "$memory" | grep -q "exceeded memory limit"
	came_back "$ok" ok && came_back "$ok" ok-success
	[ ! -e "$CLUSTER/shared/ok-failure" ]
	came_back "$bad" bad && came_back "$bad" bad-failure
	[ ! -e "$CLUSTER/shared/bad-success" ]
	came_back "$cancel" cancel
	came_back "$kill" kill
	came_back "$memory" memory
	for job in $ok $bad $cancel $kill $memory; do
		output "$job" | grep -q '^stagetool: n1: .*stage-out'
		nothing_left "$job"
	done
	nodes_fine
}

@test "a missing source on one node fails the job, with the reason in the output" {
	job=$(submit -N2 --stage-in=only-n1/%N:x --stage-out=r:never/ --wrap "touch $CLUSTER/out/ran")
	expect "$job" FAILED 1:0
	output "$job" | grep -q "stage-in failed on n2: .*$CLUSTER/shared/only-n1/n2"
	[[ $(field "$job" Comment) == "stage-in failed on n2: "* ]]
	[ ! -e "$CLUSTER/out/ran" ] && [ ! -e "$CLUSTER/shared/never" ]
	run user srun -N2 --stage-in=only-n1/%N:x touch "$CLUSTER/out/ran"
	[ "$status" -ne 0 ]
	[[ $output == *"stage-in failed on n2: "*"only-n1/n2"* ]]
	run user salloc -N2 --stage-in=only-n1/%N:x touch "$CLUSTER/out/ran"
	[ "$status" -ne 0 ]
	[[ $output == *"stage-in failed on n2: "*"only-n1/n2"* ]]
	[ ! -e "$CLUSTER/out/ran" ]
	nothing_left "$job"
	nodes_fine
	job=$(submit -N2 --stage-in=only-n1/%N:x,optional --wrap "ls \$STAGE_DIR")
	expect "$job" COMPLETED 0:0
}

@test "what the user may not read, and what does not fit, fails the job with the reason" {
	mkdir -p "$CLUSTER/shared/secret" && echo secret >"$CLUSTER/shared/secret/file"
	chmod 0700 "$CLUSTER/shared/secret"
	secret=$(submit -w n1 --stage-in=secret --wrap true)
	large=$(submit -w n1 --stage-in=data --stage-size=1P --wrap true)
	expect "$secret" FAILED 1:0
	expect "$large" FAILED 1:0
	output "$secret" | grep -q "stage-in failed on n1: .*secret.*Permission denied"
	output "$large" | grep -q "stage-in failed on n1: .*PiB"
	nodes_fine
}

@test "a job that depends on another starts after its results are back" {
	mkdir -m 1777 "$CLUSTER/shared/dependent"
	first=$(submit -w n1 --stage-in=data --stage-out=many:dependent/ --wrap \
		'mkdir $STAGE_DIR/many; for i in $(seq 3000); do echo $i >$STAGE_DIR/many/$i; done')
	second=$(submit -w n2 -d "afterok:$first" --wrap 'ls dependent/many | wc -l')
	expect "$second" COMPLETED 0:0
	[ "$(output "$second")" = 3000 ]
}

@test "dist=first brings data to the first node alone" {
	job=$(submit -N2 --stage-in=data,dist=first --wrap 'srun -l sh -c "ls \$STAGE_DIR | grep -c data; true"')
	expect "$job" COMPLETED 0:0
	[ "$(output "$job" | grep '^[01]: ' | sort | xargs)" = "0: 1 1: 0" ]
}

@test "two jobs on one node at once have stages of their own, of different users too" {
	one=$(submit -w n1 --stage-in=data --stage-out=r:both1/ --wrap "$(results) echo \$STAGE_DIR; sleep 2; ls \$STAGE_DIR/data")
	two=$(submit -w n1 --stage-in=data --stage-out=r:both2/ --wrap "$(results) echo \$STAGE_DIR; sleep 2; ls \$STAGE_DIR/data")
	other=$(AS=daemon submit -w n1 --stage-in=data --stage-out=r:both3/ --wrap \
		"$(results) echo \$STAGE_DIR; sleep 1; ls $CLUSTER/tier/n1/nvme/$one.0 $CLUSTER/tier/n1/nvme 2>&1; true")
	for job in $one $two $other; do
		expect "$job" COMPLETED 0:0
		output "$job" | grep -qx "$CLUSTER/tier/n1/nvme/$job.0"
	done
	came_back "$one" both1 && came_back "$two" both2 && came_back "$other" both3
	[ "$(output "$other" | grep -c 'Permission denied')" = 2 ]
	[ "$(stat -c %U "$CLUSTER/shared/both3/r/result")" = daemon ]
}

@test "odd names go in and out" {
	odd=$'a b\'c"d\\e,f:g*h\xff\xc3\xa4\nz'
	mkdir -p "$CLUSTER/shared/odd/$odd"
	echo odd >"$CLUSTER/shared/odd/$odd/$odd"
	job=$(submit -w n1 --stage-in='odd:in dir,verify' --stage-out='in dir:odd\,back\:there' --wrap \
		'cd "$STAGE_DIR/in dir" && for f in *; do cp -r "$f" "copy of $f"; done')
	expect "$job" COMPLETED 0:0
	[ "$(cat "$CLUSTER/shared/odd,back:there/copy of $odd/$odd")" = odd ]
	# What was staged in and left as it was is not sent.
	[ ! -e "$CLUSTER/shared/odd,back:there/$odd" ]
}

@test "sync sends back what the job changed" {
	mkdir "$CLUSTER/shared/project" && echo old >"$CLUSTER/shared/project/changes"
	echo same >"$CLUSTER/shared/project/stays"
	chown -R nobody "$CLUSTER/shared/project"
	inode=$(stat -c %i "$CLUSTER/shared/project/stays")
	job=$(submit -w n1 --stage-in=project,sync --wrap 'echo new >$STAGE_DIR/project/changes; echo more >$STAGE_DIR/project/more')
	expect "$job" COMPLETED 0:0
	[ "$(cat "$CLUSTER/shared/project/changes")" = new ]
	[ "$(cat "$CLUSTER/shared/project/more")" = more ]
	[ "$(stat -c %i "$CLUSTER/shared/project/stays")" = "$inode" ]
}

@test "a broken tier drains the node with the reason, and the job runs elsewhere" {
	mv "$CLUSTER/tier/n1/nvme" "$CLUSTER/tier/n1/away"
	job=$(submit -N1 --stage-in=data --wrap 'echo "on $SLURMD_NODENAME"; cat $STAGE_DIR/data/1')
	expect "$job" COMPLETED 0:0
	reason=$(root sinfo -h -N -n n1 -o '%t %E')
	mv "$CLUSTER/tier/n1/away" "$CLUSTER/tier/n1/nvme"
	[[ $reason == dr*"stagetool: "*"$CLUSTER/tier/n1/nvme"* ]]
	output "$job" | grep -qx 'on n2'
	undrain
}

@test "E03: results that can not be sent are kept, and the output says where" {
	job=$(submit -w n1 --stage-out=r:/proc/nowhere/ --wrap "$(results)")
	expect "$job" COMPLETED 0:0
	kept=$CLUSTER/tier/n1/nvme/$job.0
	[ "$(cat "$kept/r/result")" = "result of $job" ]
	output "$job" | grep -q "^stagetool: n1: .*kept in $kept"
	nodes_fine
}

@test "an epilog that is killed loses nothing: reap sends the rest" {
	mkdir -m 1777 "$CLUSTER/shared/killed"
	job=$(submit -w n2 --stage-out=many:killed/ --wrap \
		'mkdir $STAGE_DIR/many; for i in $(seq 8000); do : >$STAGE_DIR/many/$i; done')
	at_work() { pgrep -f "^$CLUSTER/bin/stagetool epilog" >/dev/null; }
	wait_until at_work
	pkill -KILL -f "^$CLUSTER/bin/stagetool epilog"
	expect "$job" COMPLETED 0:0
	nodes_fine
	sent=$(find "$CLUSTER/shared/killed" -type f | wc -l)
	[ "$sent" -lt 8000 ]
	root env SLURMD_NODENAME=n2 stagetool reap --conf="$CLUSTER/etc/stagetool.conf"
	[ "$(find "$CLUSTER/shared/killed/many" -type f | wc -l)" = 8000 ]
	nothing_left "$job"
}

@test "the user sees the job's staging with stagetool status, and others do not" {
	job=$(submit -w n1 --stage-in=data --wrap "stagetool status")
	expect "$job" COMPLETED 0:0
	output "$job" | grep -v ^stagetool: | grep -q "$job"
	other=$(AS=daemon submit -w n1 --wrap "stagetool status --conf=$CLUSTER/etc/stagetool.conf")
	wait_until is_over "$other"
	refute grep -qw "$job" "$CLUSTER/out/$other.out"
}

@test "an empty stage for a job that asks for space alone" {
	job=$(submit -w n1 --stage-size=1M --wrap 'echo x >$STAGE_DIR/x && stat -c "%a %U" $STAGE_DIR')
	expect "$job" COMPLETED 0:0
	output "$job" | grep -qx '700 nobody'
	nothing_left "$job"
}

@test "a slurmstepd that is killed does not lose the results" {
	old() { is_over "$STEPD" || [ "$(root squeue -h -j "$STEPD" -o %M | tr -d :)" -gt 21 ]; }
	wait_until old
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" n1 kill
	"$CLUSTER_SCRIPT" daemon "$CLUSTER" n1 start
	expect "$STEPD" NODE_FAIL
	came_back "$STEPD" stepd
}

@test "T01: results are back after the time limit" {
	WAIT=100 expect "$LIMIT" TIMEOUT
	came_back "$LIMIT" limit && came_back "$LIMIT" limit-failure
	[ ! -e "$CLUSTER/shared/limit-success" ]
	output "$LIMIT" | grep -q '^stagetool: n2: .*stage-out'
	nodes_fine
}
