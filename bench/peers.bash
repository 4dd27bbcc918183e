# The tools that are compared. Each is a function that prints the command of one run as words for "bash -c", for
# the directory $1 to the name $2. Sourced by run.
# shellcheck shell=bash disable=SC2154

quoted() {
	printf '%q ' "$@"
}

peer_stagetool() {
	quoted "$STAGETOOL" copy -q "$1" "$2"
}

peer_cp() {
	quoted cp -a "$1" "$2"
}

peer_rsync() {
	quoted rsync -a "${1%/}/" "$2"
}

peer_tar() {
	echo "mkdir -p $(quoted "$2") && tar -C $(quoted "$1") -cf - . | tar -C $(quoted "$2") -xpf -"
}

peer_bsdtar() {
	echo "mkdir -p $(quoted "$2") && bsdtar -C $(quoted "$1") -cf - . | bsdtar -C $(quoted "$2") -xpf -"
}

# Directories first, then many cp side by side, as people write it.
peer_xargs() {
	local from to
	from=$(quoted "$1") to=$(quoted "$2")
	echo "mkdir -p $to && cd $from && find . -type d -print0 | xargs -0 -n 200 sh -c 'cd \"\$0\" && mkdir -p \"\$@\"' $to &&" \
		"find . ! -type d -print0 | xargs -0 -P 64 -n 32 cp -a --parents -t $to &&" \
		"find . -depth -type d -print0 | xargs -0 -n 200 sh -c 'for d; do touch -r \"\$d\" \"\$0/\$d\"; done' $to"
}

# On as many processes as there are processors.
peer_xargs2() {
	peer_xargs "$1" "$2" | sed "s/-P 64 -n 32/-P $(nproc) -n 256/"
}

peer_rclone() {
	quoted rclone copy -q -M --links --transfers 64 --checkers 64 "$1" "$2"
}

peer_fpsync() {
	quoted fpsync -n 16 -f 500 -t "$scratch/fpsync" "$1/" "$2/"
}

# mpifileutils: not in Debian; where the machine has them. Open MPI yields where ranks outnumber processors.
peer_dcp() {
	quoted mpirun --allow-run-as-root --oversubscribe -n 16 dcp -q -p "$1" "$2"
}

peer_dcp2() {
	quoted mpirun --allow-run-as-root --oversubscribe -n 2 dcp -q -p "$1" "$2"
}

peer_dsync() {
	quoted mpirun --allow-run-as-root --oversubscribe -n 16 dsync -q "$1" "$2"
}

peer_dd() {
	echo "mkdir $(quoted "$2") && $(quoted dd if="$1/large0" of="$2/large0" bs=4M status=none) && touch -r $(quoted "$1/large0" "$2/large0")"
}

# What a row needs that is not here: nothing, or the reason.
peer_missing() {
	local command
	case $1 in
	stagetool | cp | xargs | xargs2 | dd | tar) return 1 ;;
	dcp | dcp2) command=dcp ;;
	*) command=$1 ;;
	esac
	! command -v "$command" >/dev/null
}
