# The rows of the table: what is copied, from where, to where, by whom. Sourced by run.
# shellcheck shell=bash disable=SC2154

# name | kind | workload | from | to | peers
rows_list() {
	cat <<'EOF'
small-tmpfs|copy|small100k|tmpfs|tmpfs|cp tar rsync bsdtar xargs2 rclone dcp2
small-ext4|copy|small20k|ext4|ext4|cp tar rsync xargs2 dcp2
small-tmpfs-xfs|copy|small20k|tmpfs|xfs|cp tar rsync xargs2 dcp2
small-xfs|copy|small20k|xfs|xfs|cp tar rsync xargs2 dcp2
small-ext4-cold|cold|small20k|ext4|tmpfs|cp tar xargs rsync
tree|copy|tree|ext4|tmpfs|cp tar rsync bsdtar xargs2
onedir-tmpfs|copy|onedir|tmpfs|tmpfs|cp tar rsync xargs2 dcp2
onedir-xfs|copy|onedir|tmpfs|xfs|cp tar rsync xargs2
deep|copy|deep|tmpfs|tmpfs|cp tar rsync
large-tmpfs|copy|large16|tmpfs|tmpfs|cp rsync rclone dcp2
large-xfs|sync|large16|tmpfs|xfs|cp rsync rclone dcp2
huge|copy|huge|tmpfs|tmpfs|cp dd rsync dcp2
sparse|copy|sparse|tmpfs|tmpfs|cp bsdtar
clone|copy|clone|xfs|same|cp
slow-in-0.2|copy|small15k|slow:200|tmpfs|cp tar rsync xargs rclone fpsync dcp
slow-in-0.5|copy|small15k|slow:500|tmpfs|cp tar rsync xargs rclone fpsync dcp
slow-in-0.5-xfs|copy|small15k|slow:500|xfs|xargs rclone dcp
slow-in-2|copy|small15k|slow:2000|tmpfs|xargs rclone dcp
slow-large-in|copy|large8|slow:500|tmpfs|cp rsync rclone dcp
slow-out-0.5|copy|small15k|tmpfs|slow:500|cp rsync xargs rclone dcp
slow-out-0.5-durable|out|small15k|tmpfs|slow:500|
slow-out-2|copy|small15k|tmpfs|slow:2000|xargs rclone dcp
slow-large-out|copy|large8|tmpfs|slow:500|cp rsync rclone dcp
resync-same|resync|small100k|tmpfs|tmpfs|cp rsync rclone
resync-changed|resync-changed|small100k|tmpfs|tmpfs|cp rsync rclone
slow-resync-same|resync|small15k|slow:500|tmpfs|cp rsync rclone dsync
unchanged-out|unchanged|small15k|slow:500|tmpfs|rsync rclone
job-cycle|cycle|small15k|slow:500|tmpfs|rsync cp-rsync rclone
EOF
}

tools_of() {
	local tool
	echo stagetool
	for tool in $1; do
		case ${only_peers:-,$tool,} in *,$tool,*) ;; *) continue ;; esac
		if peer_missing "${tool#cp-}"; then
			echo "bench: $tool is not here" >&2
		else
			echo "$tool"
		fi
	done
}

# What is compared of a tree: kinds, modes, sizes, seconds, targets; and all bytes.
tree_listing() {
	(cd "$1" && find . ! -type d -printf '%y %m %s %T@ %l %P\n' | sed -E 's/^(. [0-7]+ [0-9]+ [0-9]+)\.[0-9]+/\1/' |
		LC_ALL=C sort)
}

tree_bytes() {
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r cat | xxhsum -q -)
}

same_tree() {
	cmp -s <(tree_listing "$1") <(tree_listing "$2") || return 1
	[ -n "${source_bytes:-}" ] || source_bytes=$(tree_bytes "$1")
	[ "$source_bytes" = "$(tree_bytes "$2")" ]
}

# timed ROW TOOL SLOW COMMAND: runs it; the figures go to $figures, the operations a file on SLOW to $ops.
timed() {
	local row=$1 tool=$2 slow=$3 command=$4
	counts_reset "$slow"
	if ! "$build/bench/stopwatch" "$scratch/figures" bash -c "$command" >"$scratch/said" 2>&1 </dev/null; then
		echo "bench: $row: $tool failed: $(tail -n 1 "$scratch/said")" >&2
		failed=$((failed + 1))
		return 1
	fi
	ops=-
	[ -z "${slow_pid[$slow]:-}" ] ||
		ops=$(awk -v n="$(counts_total "$slow")" -v files="$files" 'BEGIN { printf "%.2f", n / files }')
	read -r -a figures <"$scratch/figures"
}

# A run counts if what it left is right.
row_done() {
	local row=$1 tool=$2 from=$3 to=$4
	if ! same_tree "$from" "$to"; then
		echo "bench: $row: $tool left a tree that is not the same" >&2
		failed=$((failed + 1))
		return 1
	fi
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$row" "$tool" "${figures[@]}" "$ops" >>"$results"
	printf '%-22s %-10s %8.3f s\n' "$row" "$tool" "${figures[0]}"
}

# Old enough that what is changed later has another second, which is all that some tools look at.
row_age() {
	find "$from_direct" -type f -print0 | xargs -0 touch -d '2 days ago'
}

# Makes the source of a row: $from_place, $from (as a tool sees it), $from_direct, $files.
row_source() {
	local workload=$1 kind=$2
	place_make "$kind" from || return 1
	from_place=$place from=$place/tree from_direct=$place_direct/tree
	mkdir -p "$from_direct" && "make_$workload" "$from_direct" || return 1
	row_age
	sync -f "$from_direct" # the first one to read it would do it
	files=$(find "$from_direct" -type f | wc -l)
	source_bytes=
}

# The slow side as after a mount: no names, no attributes, nothing learnt.
row_forget() {
	local kind=$1
	case $kind in slow:*) ;; *) return 0 ;; esac
	umount "$from_place" && wait "${slow_pid[$from_place]}"
	unset "slow_pid[$from_place]" "mounted[$from_place]"
	place=$from_place place_direct=$from_place.direct
	place_slow "${kind#slow:}"
}

row_target() {
	if [ "$1" = same ]; then
		to_place='' to=$from_place/copy to_direct=$from_place/copy
	else
		place_make "$1" to || return 1
		to_place=$place to=$place/tree to_direct=$place_direct/tree
	fi
}

row_target_end() {
	if [ -n "$to_place" ]; then place_end "$to_place"; else rm -rf "$to"; fi
}

# copy, cold, sync: a tree to a name that is not there.
run_copy() {
	local row=$1 kind=$2 from_kind=$3 to_kind=$4 tool=$5 command
	row_target "$to_kind" || return 1
	command=$("peer_$tool" "$from" "$to")
	[ "$kind" != sync ] || command="$command && sync -f $to"
	[ "$kind" != cold ] || caches_drop
	local slow=$from_place
	[ -z "${slow_pid[$to_place]:-}" ] || slow=$to_place
	timed "$row" "$tool" "$slow" "$command" && row_done "$row" "$tool" "$from_direct" "$to_direct"
	row_target_end
}

# The tree of a stage, delivered durably.
run_out() {
	local row=$1 to_kind=$4 tool=$5
	row_target "$to_kind" || return 1
	timed "$row" "$tool" "$to_place" "$(quoted "$STAGETOOL" out -q --dir "$from_place" "tree:$to")" &&
		row_done "$row" "$tool" "$from_direct" "$to_direct"
	rm -rf "$from_place/.stagetool"
	row_target_end
}

update_command() {
	case $1 in
	cp) quoted cp -au "$2/." "$3" ;;
	*) "peer_$1" "$2" "$3" ;;
	esac
}

# Onto a tree that is there already.
run_resync() {
	local row=$1 kind=$2 to_kind=$4 tool=$5
	row_target "$to_kind" || return 1
	row_age
	cp -a "$from_direct" "$to_direct"
	[ "$kind" != resync-changed ] || change_some "$from_direct"
	source_bytes=
	timed "$row" "$tool" "$from_place" "$(update_command "$tool" "$from" "$to")" &&
		row_done "$row" "$tool" "$from_direct" "$to_direct"
	row_target_end
}

# Back to where it came from, and nothing has changed.
run_unchanged() {
	local row=$1 to_kind=$4 tool=$5 command
	row_target "$to_kind" || return 1
	if [ "$tool" = stagetool ]; then
		"$STAGETOOL" in -q --dir "$to_place/stage" "$from" || return 1
		to=$to_place/stage/tree to_direct=$to
		command=$(quoted "$STAGETOOL" out -q --dir "$to_place/stage" "tree:$from")
	else
		cp -a "$from_direct" "$to_direct"
		command=$(update_command "$tool" "$to" "$from")
	fi
	timed "$row" "$tool" "$from_place" "$command" &&
		row_done "$row" "$tool" "$from_direct" "$to_direct"
	row_target_end
}

# Other content in a hundredth of the files of $1, by a command as a job would: part of what is timed, for all alike.
job_command() {
	printf '(cd %q && find . -type f | awk "NR %% 100 == 1" | xargs sed -i "1s/^.\\{9\\}/%09d/")' "$1" "$RANDOM"
}

# A job: its data there, some of it changed, and back.
run_cycle() {
	local row=$1 to_kind=$4 tool=$5 there back
	row_target "$to_kind" || return 1
	row_age
	case $tool in
	stagetool)
		to=$to_place/stage/tree to_direct=$to
		there=$(quoted "$STAGETOOL" in -q --dir "$to_place/stage" "$from")
		back=$(quoted "$STAGETOOL" out -q --dir "$to_place/stage" "tree:$from")
		;;
	cp-rsync) there=$(peer_cp "$from" "$to") back=$(peer_rsync "$to/" "$from") ;;
	*) there=$("peer_$tool" "$from/" "$to") back=$("peer_$tool" "$to/" "$from") ;;
	esac
	source_bytes=
	timed "$row" "$tool" "$from_place" "$there && $(job_command "$to") && $back" &&
		row_done "$row" "$tool" "$from_direct" "$to_direct"
	row_target_end
}

row_run() {
	local row=$1 kind=$2 workload=$3 from_kind=$4 to_kind=$5 peers=$6 tool round tools run=$2
	case $kind in
	cold | sync) run=copy ;;
	resync-changed) run=resync ;;
	esac
	mapfile -t tools < <(tools_of "$peers")
	row_source "$workload" "$from_kind" || { failed=$((failed + 1)); return; }
	for ((round = 0; round < rounds; round++)); do
		for tool in "${tools[@]}"; do
			row_forget "$from_kind"
			"run_$run" "$row" "$kind" "$from_kind" "$to_kind" "$tool"
		done
	done
	place_end "$from_place"
}

rows_run() {
	local row rest fields
	while IFS= read -r rest; do
		IFS='|' read -r -a fields <<<"$rest|"
		row=${fields[0]}
		if [ $# -gt 0 ]; then
			case " $* " in *" $row "*) ;; *) continue ;; esac
		fi
		row_run "$row" "${fields[1]}" "${fields[2]}" "${fields[3]}" "${fields[4]}" "${fields[5]:-}"
	done < <(rows_list)
}
