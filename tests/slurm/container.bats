# shellcheck shell=bash disable=SC2016
# at= beside job_container/tmpfs, which gives each job a /tmp of its own: nothing of the cluster may be there.

load helpers

setup_file() {
	unset STAGETOOL_TOOL
	BASE=$(mktemp -d /var/tmp/stagetool-private.XXXXXX)
	export BASE
	chmod 755 "$BASE"
	mkdir -p "$BASE/private/n1"
	PLACE=$(mktemp -d /mnt/stagetool-view.XXXXXX) || return 1
	export PLACE
	chmod 755 "$PLACE"
	mkdir "$PLACE/data"
	STAGETOOL_PRIVATE=$BASE/private cluster_up -n 1 "$BASE/cluster"
	mkdir "$CLUSTER/shared/data"
	echo staged >"$CLUSTER/shared/data/f"
}

teardown_file() {
	cluster_down
	awk -v base="$BASE/" 'index($5, base) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount
	rm -rf --one-file-system "$BASE" "${PLACE:-$BASE}"
}

@test "a job with a /tmp of its own sees its input at its place, and its results are back" {
	job=$(submit --stage-in="data,at=$PLACE/data" --stage-out=r:back/ --wrap "
		ls -A /tmp
		cat $PLACE/data/f
		srun cat $PLACE/data/f
		mkdir \$STAGE_DIR/r
		cp $PLACE/data/f \$STAGE_DIR/r")
	expect "$job" COMPLETED 0:0
	output "$job"
	[ "$(output "$job" | grep -v ^stagetool)" = "staged
staged" ]
	cmp "$CLUSTER/shared/data/f" "$CLUSTER/shared/back/r/f"
	refute grep -F "$PLACE" /proc/self/mountinfo
	[ -z "$(find "$CLUSTER"/tier/n1/nvme -mindepth 1)" ]
}
