# shellcheck shell=bash
# The throwaway cluster itself: it must leave nothing, and know of nothing but its own.

load helpers

setup() {
	unset STAGETOOL_BUILD STAGETOOL_TOOL
	# Not below a directory of bats, which an ordinary user may not enter.
	top=$(mktemp -d /tmp/stagetool-cluster.XXXXXX)
	chmod 0755 "$top"
	one=$top/one two=$top/two
}

teardown() {
	for dir in "$one" "$two"; do
		[[ ! -e $dir/etc ]] || "$CLUSTER_SCRIPT" stop "$dir"
	done
	rm -rf --one-file-system "$top"
}

# Processes, other than zombies, that name a directory in their environment.
processes_of() {
	local file
	for file in /proc/[0-9]*/environ; do
		tr '\0' '\n' <"$file" 2>/dev/null | grep -qF "=$1" && echo "$file"
	done
	true
}

@test "two clusters at once do not see each other, and stop takes one down whole" {
	[ "$("$CLUSTER_SCRIPT" start -n 1 "$one")" = "$one" ]
	"$CLUSTER_SCRIPT" start -n 3 "$two"
	[ "$("$CLUSTER_SCRIPT" run "$one" sinfo -h -o %D)" = 1 ]
	[ "$("$CLUSTER_SCRIPT" run "$two" sinfo -h -o %D)" = 3 ]
	# A job that would not end by itself, without the cluster's mark in its environment.
	"$CLUSTER_SCRIPT" as nobody "$one" sbatch --export=NIL -o /dev/null --wrap "trap '' TERM; sleep 1000"
	[ "$("$CLUSTER_SCRIPT" as nobody "$two" srun -N3 id -un | sort -u)" = nobody ]
	running() { [[ $("$CLUSTER_SCRIPT" run "$one" squeue -h -o %T) = RUNNING ]]; }
	wait_until running
	"$CLUSTER_SCRIPT" stop "$one"
	[ ! -e "$one" ]
	[ -z "$(processes_of "$one")" ]
	[ "$("$CLUSTER_SCRIPT" run "$two" sinfo -h -t idle -o %D)" = 3 ]
	"$CLUSTER_SCRIPT" stop "$two"
	[ ! -e "$two" ]
	[ -z "$(processes_of "$two")" ]
}

@test "it starts as root only, in an empty directory only, and stops only what it started" {
	run setpriv --reuid nobody --clear-groups "$BASH" "$CLUSTER_SCRIPT" start "$one"
	[ "$status" -ne 0 ]
	mkdir "$one" && touch "$one/file"
	run "$CLUSTER_SCRIPT" start "$one"
	[ "$status" -ne 0 ]
	[[ $output == *"not empty"* ]]
	run "$CLUSTER_SCRIPT" stop "$one"
	[ "$status" -ne 0 ]
	[ -e "$one/file" ]
	run "$CLUSTER_SCRIPT" run "$one" true
	[ "$status" -ne 0 ]
	run env STAGETOOL_BUILD=/nonexistent "$CLUSTER_SCRIPT" start "$two"
	[ "$status" -ne 0 ]
	[[ $output == *stage.so* ]]
	[ ! -e "$two" ]
}
