# shellcheck shell=bash disable=SC2016
# at=: what was staged is also seen at another place, by the tasks of the job and by nobody else.

load helpers

setup_file() {
	unset STAGETOOL_TOOL
	cluster_up -n 2
	# Not below the cluster, which may be where nothing can be shown: in /dev/shm.
	PLACE=$(mktemp -d /tmp/stagetool-view.XXXXXX)
	chmod 755 "$PLACE"
	install -d -o nobody "$PLACE"/{data,mine,mine/inner}
	echo place >"$PLACE/data/whose"
	mkdir "$CLUSTER/shared/data" "$CLUSTER/shared/data/sub"
	echo staged >"$CLUSTER/shared/data/whose"
	echo deep >"$CLUSTER/shared/data/sub/deep"
	chown -R nobody "$CLUSTER/shared/data"
	mounts >"$CLUSTER/mounts"
	export PLACE
}

teardown_file() {
	cluster_down
	rm -rf --one-file-system "$PLACE"
}

teardown() {
	nodes_fine || undrain
}

# Those that other tests do not make meanwhile.
mounts() {
	grep -F -e "$CLUSTER" -e "$PLACE" /proc/self/mountinfo | sort
}

@test "script and steps see it, the node does not, and nothing is left mounted" {
	job=$(submit -N2 --stage-in="data,at=$PLACE/data" --wrap "
		cat $PLACE/data/whose
		srun sh -c 'cat $PLACE/data/sub/deep'
		touch $CLUSTER/out/ready
		until [ -e $CLUSTER/out/go ]; do sleep 0.1; done
		grep -c ' $PLACE/data ' /proc/self/mountinfo")
	wait_until test -e "$CLUSTER/out/ready"
	[ "$(cat "$PLACE/data/whose")" = place ]
	refute grep -F "$PLACE" /proc/self/mountinfo
	touch "$CLUSTER/out/go"
	expect "$job" COMPLETED 0:0
	output "$job"
	[ "$(output "$job" | grep -v ^stagetool)" = "staged
deep
deep
1" ]
	mounts | diff "$CLUSTER/mounts" -
}

@test "same: a script that works in FROM works in the stage" {
	job=$(submit -D "$CLUSTER/shared/data" --stage-in="$CLUSTER/shared/data,at=same" \
		--wrap 'pwd; cat whose; echo local >new; ls $STAGE_DIR/data; srun cat new')
	expect "$job" COMPLETED 0:0
	output "$job"
	[ "$(output "$job" | grep -v ^stagetool)" = "$CLUSTER/shared/data
staged
new
sub
whose
local" ]
	[ ! -e "$CLUSTER/shared/data/new" ]
}

@test "what is written through it goes back with sync" {
	mkdir "$CLUSTER/shared/synced"
	echo old >"$CLUSTER/shared/synced/f"
	chown -R nobody "$CLUSTER/shared/synced"
	job=$(submit --stage-in="$CLUSTER/shared/synced,at=same,sync" \
		--wrap "cd $CLUSTER/shared/synced; echo new >f; echo more >g")
	expect "$job" COMPLETED 0:0
	[ "$(cat "$CLUSTER/shared/synced/f" "$CLUSTER/shared/synced/g")" = "new
more" ]
}

@test "a file, one view in another, and a symbol" {
	echo file >"$CLUSTER/shared/file"
	echo none >"$PLACE/mine/file"
	install -d -o nobody "$PLACE"/nobody{,/sub}
	job=$(submit --stage-in="file,at=$PLACE/mine/file" --stage-in="data:a,at=$PLACE/%u" \
		--stage-in="data/sub:b,at=$PLACE/%u/sub" --wrap "cat $PLACE/mine/file $PLACE/nobody/whose; ls $PLACE/nobody/sub")
	expect "$job" COMPLETED 0:0
	output "$job"
	[ "$(output "$job" | grep -v ^stagetool)" = "file
staged
deep" ]
}

@test "an optional input that is not there covers nothing; dist=first only on the first node" {
	install -d -o nobody "$PLACE"/covered{,/by-nothing}
	job=$(submit -N2 --stage-in="none,optional,at=$PLACE/covered" --stage-in="data,dist=first,at=$PLACE/data" \
		--wrap "srun -l sh -c 'ls $PLACE/covered; cat $PLACE/data/whose'")
	expect "$job" COMPLETED 0:0
	output "$job"
	[ "$(output "$job" | grep -v ^stagetool | sort)" = "0: by-nothing
0: staged
1: by-nothing
1: place" ]
}

@test "wrong places are refused at submit" {
	for wrong in / /etc /etc/x /usr/lib/x /proc /proc/self x ../x "/a/../etc" '$HOME/x'; do
		run submit --stage-in="data,at=$wrong" --wrap true
		[ "$status" -ne 0 ]
		[[ $output == *'"at"'* ]]
	done
	run submit --stage-in=data,at --wrap true
	[[ $output == *"expected at=PATH"* ]]
	run submit --stage-in="da*:x/,at=$PLACE/data" --wrap true
	[[ $output == *"pattern"* ]]
	run submit --stage-in="data:a,at=$PLACE/data" --stage-in="data:b,at=$PLACE/data" --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *"both are to be seen at $PLACE/data"* ]]
	run submit --stage-in="data,at=$CLUSTER/tier" --wrap true
	[ "$status" -ne 0 ]
	[[ $output == *"protected"* ]]
}

@test "protect= of the configuration is refused at submit" {
	sed -i "/^\[stagetool\]/a protect = $PLACE/mine/inner" "$CLUSTER/etc/stagetool.conf"
	run submit --stage-in="data,at=$PLACE/mine" --wrap true
	sed -i '/^protect/d' "$CLUSTER/etc/stagetool.conf"
	[ "$status" -ne 0 ]
	[[ $output == *"$PLACE/mine is protected: it would hide $PLACE/mine/inner"* ]]
}

@test "a place that is not there, of another kind, or that leads to a protected one fails the job" {
	ln -s /etc "$PLACE/leads"
	for at in none leads leads/ssl mine/file; do
		echo none >"$PLACE/mine/file"
		job=$(submit --stage-in="data,at=$PLACE/$at" --wrap 'echo begun')
		expect "$job" FAILED
		output "$job"
		refute grep -q begun "$CLUSTER/out/$job.out"
		output "$job" | grep -F "$PLACE/$at"
	done
}

@test "a place that is made to lead elsewhere while the job runs is not covered" {
	job=$(submit --stage-in="data,at=$PLACE/mine/place" --wrap true)
	expect "$job" FAILED
	install -d -o nobody "$PLACE/mine/place"
	job=$(submit --stage-in="data,at=$PLACE/mine/place" --wrap "
		cat $PLACE/mine/place/whose
		srun true && echo before
		touch $CLUSTER/out/swap
		until [ -L $CLUSTER/out/swapped ]; do sleep 0.1; done
		srun sh -c 'echo ran' || echo refused")
	wait_until test -e "$CLUSTER/out/swap"
	rmdir "$PLACE/mine/place"
	ln -s /etc "$PLACE/mine/place"
	ln -s x "$CLUSTER/out/swapped"
	wait_until is_over "$job"
	output "$job"
	grep -q before "$CLUSTER/out/$job.out"
	grep -q refused "$CLUSTER/out/$job.out"
	grep -q "protected" "$CLUSTER/out/$job.out"
	refute grep -q ran "$CLUSTER/out/$job.out"
	rm "$PLACE/mine/place"
}

@test "a working directory that was not staged along fails the job, and says so" {
	mkdir "$CLUSTER/shared/data/left"
	job=$(submit -D "$CLUSTER/shared/data/left" --stage-in="$CLUSTER/shared/data,at=same,exclude=left" --wrap 'echo begun')
	expect "$job" FAILED
	rmdir "$CLUSTER/shared/data/left"
	output "$job"
	grep -F "the working directory $CLUSTER/shared/data/left" "$CLUSTER/out/$job.out"
	refute grep -q begun "$CLUSTER/out/$job.out"
}
