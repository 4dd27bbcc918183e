#!/usr/bin/env bats
# shellcheck disable=SC1010,SC2016,SC2154
# A user who wants root, or the processes that root starts for them, to take something for what it is not.
load helpers
load node

teardown() {
	cd /
	[ -z "${exchanger:-}" ] || kill "$exchanger" 2>/dev/null || true
	[ -n "${work:-}" ] || return 0
	chattr -R -i "$work" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}

# hostile LINE OF [stagetool]...: a node with these, and "outside", which nobody has a hand in.
hostile() {
	node_setup
	if [ $# -gt 0 ]; then
		sed -i "s|^\[stagetool\]|&\n$1|" conf
	fi
	cp "${STAGETOOL_BUILD:?the build under test}/tests/cli/exchange" exchange
	mkdir -p outside/data/deep
	for f in outside/f outside/data/f outside/data/deep/f; do
		echo "not yours" >$f
	done
	chmod -R a+rX outside
	sleep 0.01
	tree_list outside >outside.before
}

outside_is_whole() {
	tree_list outside | diff outside.before -
	! find tier out -type f -exec grep -l "not yours" {} + 2>/dev/null | grep . >&2
}

# exchange_in DIR COUNT: the user exchanges "a1" and "b1", "a2" and "b2"... in it from now on.
exchange_in() {
	(cd "$1" && exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all \
		--inh-caps -all -- "$work/exchange" "$2") >"$work/exchanged" 3>&- &
	exchanger=$!
	wait_until grep -q ready exchanged
}

# It has exchanged something, so that there was a race.
exchange_over() {
	kill "$exchanger" 2>/dev/null || true
	wait "$exchanger" || true
	exchanger=
	[ "$(tail -n 1 exchanged)" -gt 0 ]
}

# A directory of the stage in which half of all names are directories, and half symlinks out of it. All are listed
# at once: until the last one's turn comes it has become something else.
trap_stage() {
	as_job sh -c '
		for i in $(seq 200); do
			mkdir -p "t/a$i/data/deep" && ln -s ../../../outside "t/b$i" || exit
			: >"t/a$i/1"; : >"t/a$i/data/2"
		done'
}

@test "hostile: an epilog that removes a stage whose names are exchanged removes nothing else" {
	hostile
	for job in 7 8 9; do
		job "$job"
		specs "in $work/src:data"
		hook prolog
		trap_stage
		exchange_in "tier/$job.0/t" 200
		hook epilog
		status_is 0
		exchange_over
		outside_is_whole
	done
	run stagetool reap --conf=conf
	tier_is_empty
	outside_is_whole
}

@test "hostile: a reap that removes a stage whose names are exchanged removes nothing else" {
	hostile
	specs "out results:/proc/nowhere"
	hook prolog
	trap_stage
	as_job mkdir results
	as_job touch results/r
	hook epilog
	record_says 7.0 kept true
	sed -i 's/"until": [0-9]*/"until": 1/' state/jobs/7.0.json
	exchange_in tier/7.0/t 200
	run stagetool reap --conf=conf
	exchange_over
	outside_is_whole
	record_says 7.0 failed
	run stagetool reap --conf=conf
	tier_is_empty
}

@test "hostile: a prolog that clears an earlier attempt away whose names are exchanged removes nothing else" {
	hostile
	specs "in $work/src:data"
	hook prolog
	trap_stage
	# as if the prolog had died
	sed -i 's/"state": "ready"/"state": "staging"/' state/jobs/7.0.json
	exchange_in tier/7.0/t 200
	hook prolog
	status_is 0
	exchange_over
	outside_is_whole
	record_says 7.0 ready true
	[ "$(ls tier/7.0)" = data ]
}

@test "hostile: a source whose way is exchanged is staged from where it is allowed, or not at all" {
	hostile "sources = $work/src"
	mkdir -p src/a1/data/deep
	for f in data/f data/deep/f; do
		echo yours >src/a1/$f
	done
	ln -s ../outside src/b1
	chown -R -h 65534 src
	exchange_in src 1
	staged=0
	for job in $(seq 20 44); do
		job "$job"
		specs "in $work/src/a1/data:data"
		hook prolog
		outside_is_whole
		[ "$status" -eq 0 ] || [ "$status" -eq 1 ]
		[ "$status" -ne 0 ] || [ "$(cat "tier/$job.0/data/f" "tier/$job.0/data/deep/f" | sort -u)" = yours ]
		[ "$status" -ne 0 ] || staged=$((staged + 1))
		hook epilog
	done
	exchange_over
	outside_is_whole
	[ $staged -lt 25 ] || skip "all 25 were staged: nothing was met in between"
}

@test "hostile: a source whose directories are exchanged with symlinks while it is copied leads nowhere else" {
	hostile "sources = $work/src"
	for i in $(seq 200); do
		mkdir -p src/"a$i"/data/deep
		echo yours >src/"a$i"/data/f
		ln -s ../outside src/"b$i"
	done
	chown -R -h 65534 src
	exchange_in src 200
	for job in 21 22 23 24 25; do
		job "$job"
		specs "in $work/src:data"
		hook prolog
		[ "$status" -eq 0 ] || [ "$status" -eq 1 ]
		outside_is_whole
	done
	exchange_over
}

@test "hostile: a destination whose way is exchanged is reached where it is allowed, or not at all" {
	hostile "sources = $work/out"
	mkdir -p out/a1 elsewhere
	ln -s ../elsewhere out/b1
	chown -R -h 65534 out elsewhere
	exchange_in out 1
	for job in $(seq 20 44); do
		job "$job"
		specs "out results:$work/out/a1/$job"
		hook prolog
		status_is 0
		as_job mkdir results
		as_job sh -c 'for i in 1 2 3 4; do echo mine >results/$i; done'
		hook epilog
		[ -z "$(ls elsewhere)" ]
	done
	exchange_over
	[ -L out/a1 ] || place=out/a1
	[ -L out/b1 ] || place=out/b1
	# delivered whole, or all of it is still here
	for job in $(seq 20 44); do
		if grep -q '"state": "done"' "state/jobs/$job.0.json"; then
			[ "$(cat "$place/$job/"[1-4] | grep -c mine)" -eq 4 ]
		else
			record_says "$job.0" kept true
			[ "$(cat "tier/$job.0/results/"[1-4] | grep -c mine)" -eq 4 ]
		fi
	done
	run stagetool reap --now --conf=conf
	[ -z "$(ls elsewhere)" ]
	outside_is_whole
}

@test "hostile: results that are exchanged with symlinks while they are sent bring nothing else out" {
	hostile
	for job in 7 8 9; do
		job "$job"
		specs "out t:$work/out/$job"
		hook prolog
		trap_stage
		exchange_in "tier/$job.0/t" 200
		hook epilog
		exchange_over
		[ -d "out/$job" ]
		outside_is_whole
	done
}

@test "hostile: what a user writes to the manifest hurts their own results' way back, and nothing else" {
	hostile
	seq 1000 >src/f
	kinds=(garbage symlink fifo sparse directory swapped torn)
	for i in "${!kinds[@]}"; do
		job $((20 + i))
		specs "in $work/src:data" "out results:$work/out/$SLURM_JOB_ID"
		hook prolog
		status_is 0
		as_job mkdir results
		as_job sh -c 'echo result >results/r'
		as_job env kind="${kinds[i]}" outside="$work/outside" sh -c '
			cd .stagetool/manifest
			case $kind in
			garbage) head -c 65536 /dev/urandom >data.mdb ;;
			symlink) rm data.mdb lock && ln -s "$outside/f" data.mdb && ln -s "$outside/f" lock ;;
			fifo) rm data.mdb lock && mkfifo data.mdb lock ;;
			sparse) truncate -s 1T data.mdb || truncate -s 1G data.mdb ;;
			directory) rm data.mdb && mkdir data.mdb ;;
			swapped) cd ../.. && mv .stagetool was && ln -s "$outside" .stagetool ;;
			torn) printf x | dd of=data.mdb bs=1 seek=9000 conv=notrunc; truncate -s -4096 data.mdb ;;
			esac' 2>/dev/null
		run timeout 60 "$STAGETOOL" epilog --conf=conf
		echo "${kinds[i]}: $status $output"
		[ "$status" -eq 0 ] || [ "$status" -eq 1 ]
		outside_is_whole
		# what was said is so
		if grep -q '"state": "done"' "state/jobs/$SLURM_JOB_ID.0.json"; then
			[ "$(cat "out/$SLURM_JOB_ID/r")" = result ]
		else
			record_says "$SLURM_JOB_ID.0" kept true
			[ "$(cat "tier/$SLURM_JOB_ID.0/results/r")" = result ]
		fi
	done
	# in the end all of it goes
	sed -i 's/"until": [0-9]*/"until": 1/' state/jobs/*.json
	run timeout 60 "$STAGETOOL" reap --now --conf=conf
	tier_is_empty
	outside_is_whole
}

@test "hostile: what stands in the place of a stage is neither followed nor entered" {
	hostile
	specs "in $work/src:data"
	ln -s "$work/outside" tier/7.0
	mkfifo tier/8.0
	echo precious >tier/9.0
	for job in 7 8 9; do
		job "$job"
		run timeout 60 "$STAGETOOL" prolog --conf=conf
		status_is 0
		says "no record knows"
		[ -d "tier/$job.0/data" ]
		[ ! -L "tier/$job.0" ]
		hook epilog
		status_is 0
		[ ! -e "tier/$job.0" ]
	done
	[ "$(readlink tier/lost.7.0.*)" = "$work/outside" ]
	[ "$(cat tier/lost.9.0.*)" = precious ]
	outside_is_whole
}

@test "hostile: a mount in the place of a stage is the node's fault, and is not touched" {
	hostile
	need_mounts
	specs "in $work/src:data"
	mkdir tier/7.0
	run unshare -m --propagation private bash -c '
		mount --bind outside tier/7.0 && "$0" prolog --conf=conf' "$STAGETOOL"
	status_is 6
	says "tier/7.0"
	outside_is_whole
	[ -d tier/7.0 ]
}

@test "hostile: no output file that leads elsewhere is written, and none is made" {
	hostile
	touch roots && chmod 600 roots
	mkdir -m 777 open
	ln -s "$work/roots" link-root
	ln -s "$work/open/new" link-dangling
	mkdir directory
	chown 65534 directory
	for kind in link-root link-dangling directory /dev/full; do
		job $((SLURM_JOB_ID + 1))
		specs "out results:$work/out/$SLURM_JOB_ID"
		hook prolog
		as_job mkdir results
		as_job touch results/r
		[ $kind = /dev/full ] || kind=$work/$kind
		export STAGE_JOB_STDOUT=$kind
		run timeout 60 "$STAGETOOL" epilog --conf=conf
		status_is 0
		[ -e "out/$SLURM_JOB_ID/r" ]
		tier_is_empty
	done
	[ ! -s roots ]
	[ -z "$(ls open)" ]
	[ -z "$(ls directory)" ]
}

@test "hostile: sources= holds against .. and against symlinks that lead out, both ways" {
	hostile "sources = $work/src $work/out"
	echo yours >src/f
	ln -s "$work/outside" src/link
	ln -s "$work/outside" out/link
	for from in "$work/src/../outside" "$work/src/link" "$work/src/link/data" "$work/src/link/../outside/f" \
		"$work/srcx" /; do
		job $((SLURM_JOB_ID + 1))
		specs "in $from:data"
		hook prolog
		status_is 1
		reports "verdict job"
		tier_is_empty
	done
	for to in "$work/out/../outside/x" "$work/out/link/x" "$work/out/../elsewhere"; do
		job $((SLURM_JOB_ID + 1))
		specs "out results:$to"
		hook prolog
		status_is 0
		as_job mkdir results
		as_job touch results/r
		hook epilog
		record_says "$SLURM_JOB_ID.0" kept true
	done
	outside_is_whole
	[ ! -e elsewhere ]
}

@test "hostile: a mount below a source belongs to it; a way to the same place beside it does not" {
	hostile "sources = $work/src"
	need_mounts
	mkdir src/mounted
	specs "in $work/src/mounted/data:data"
	run unshare -m --propagation private bash -c '
		mount --bind outside src/mounted && "$0" prolog --conf=conf' "$STAGETOOL"
	status_is 0
	[ "$(cat tier/7.0/data/f)" = "not yours" ]
	job 8
	specs "in $work/alias:data"
	mkdir alias
	run unshare -m --propagation private bash -c '
		mount --bind src alias && "$0" prolog --conf=conf' "$STAGETOOL"
	status_is 1
	says "not below one of the sources"
	[ ! -e tier/8.0 ]
}

@test "hostile: pages of a manifest that say anything at all end a run with an error, not by a signal" {
	sanitized && skip "a sanitizer ends what reads beside its memory"
	mkdir -p d s
	(cd s && seq 3000 | xargs touch)
	stagetool in "$work/s:data" --dir d
	cp -r d/.stagetool whole
	size=$(stat -c %s whole/manifest/data.mdb)
	for seed in $(seq 12); do
		rm -rf d/.stagetool
		cp -r whole d/.stagetool
		# some of the pages behind the two that are checked, in one of four ways
		for n in 1 2 3 4 5 6 7 8; do
			page=$((2 + (seed * 7919 + n * 104729) % (size / 4096 - 2)))
			case $((seed % 4)) in
			0) head -c 4096 /dev/zero | tr '\0' '\377' ;;
			1) tail -c +$((1 + (seed * 131 + n) % 4000)) "$STAGETOOL" | head -c 4096 ;;
			2) head -c 64 /dev/zero | tr '\0' '\376' ;;
			3) dd if=whole/manifest/data.mdb bs=4096 skip=$((2 + (page + n) % (size / 4096 - 2))) count=1 ;;
			esac 2>/dev/null | dd of=d/.stagetool/manifest/data.mdb bs=4096 seek=$page conv=notrunc 2>/dev/null
		done
		touch d/data/17
		for verb in "out data:$work/to" verify; do
			# shellcheck disable=SC2086
			run timeout -k 1 5 "$STAGETOOL" $verb --dir d
			echo "$seed $verb: $status: $output"
			# pages that name each other in a circle are followed by LMDB for ever: 124, 137 by timeout
			[ "$status" -lt 6 ] || [ "$status" -eq 124 ] || [ "$status" -eq 137 ]
			[[ $output != *damaged\;* ]] || [ "$status" -eq 1 ]
		done
	done
}
