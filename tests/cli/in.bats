#!/usr/bin/env bats
# stagetool in: what arrives in a stage, what is kept there, what does not fit.

load helpers

stage_in() {
	run stagetool in --dir d "$@"
}

@test "a tree arrives as it is, and the stage is private" {
	mkdir -p s/a/b s/empty
	echo one >s/a/b/f
	ln s/a/b/f s/hard
	ln -s a/b s/l
	setfattr -n user.k -v v s/a/b/f
	touch -d '2001-02-03 04:05:06.789012345' s/a/b/f s/a
	chmod 640 s/a/b/f
	chmod 555 s/a
	(umask 0 && stagetool in s --dir d)
	same_tree s d/s
	[ "$(stat -c %a d)" = 700 ]
	[ "$(stat -c %a d/.stagetool)" = 700 ]
	[ "$(find d/.stagetool -type f -perm /077)" = "" ]
}

@test "a FIFO is made anew, once" {
	mkfifo s/p
	stage_in s
	status_is 0
	[ -p d/s/p ]
	stage_in s
	says "staged in 0 files"
	run stagetool out s:back --dir d
	says "staged out 0 files"
}

@test "C07: nothing is made with more rights than it is to have in the end" {
	need strace
	sanitized && skip "strace and a sanitizer"
	echo k >s/k
	chmod 600 s/k
	(umask 0 && strace -f -o log -e trace=openat,openat2,mkdir,mkdirat,mknodat \
		"$STAGETOOL" in s --dir d)
	grep O_CREAT log >files
	grep mkdir log >directories
	run grep -vE ', 0[0-7]00\)|, 0?600|mode=0[0-7]?00' files
	status_is 1
	run grep -vE ', 0700\)|"/' directories
	status_is 1
	[ "$(stat -c %a d/s/k)" = 600 ]
}

@test "a stage that nobody but we may enter is made under any umask" {
	echo x >s/f
	(umask 777 && stagetool in s --dir new/d)
	[ "$(stat -c %a new/d)" = 700 ]
}

@test "the slash rule" {
	echo x >s/f
	stagetool in s:a --dir d
	cmp s/f d/a/f
	stagetool in s:b/ --dir d
	cmp s/f d/b/s/f
	stagetool in s//:e/g --dir d
	cmp s/f d/e/g/f
	stagetool in s/f --dir d
	cmp s/f d/f
	stagetool in s/f:one/two --dir d
	cmp s/f d/one/two
	stage_in s:c/.
	status_is 2
	says "end it in '/'"
}

@test "N12: a symlink to a directory is followed and kept" {
	echo x >s/f
	mkdir -p d/real
	ln -s real d/dl
	stage_in s/f:dl/
	status_is 0
	[ -L d/dl ]
	cmp s/f d/real/f
	stage_in s:dl
	status_is 0
	[ -L d/dl ]
	cmp s/f d/real/f
	run stagetool out dl:back --dir d
	status_is 0
	says "staged out 0 files"
}

@test "a symlink that leads out of the stage is not followed" {
	echo x >s/f
	mkdir d other
	ln -s ../other d/away
	stage_in s/f:away/
	status_is 1
	says "leads outside of the stage"
	[ -z "$(ls other)" ]
	ln -s "$PWD/other" d/far
	stage_in s:far
	status_is 1
	[ -z "$(ls other)" ]
}

@test "M01: ns times arrive, and a second run copies nothing" {
	echo x >s/f
	touch -d '2024-01-02 03:04:05.123456789' s/f
	stage_in s
	status_is 0
	[ "$(stat -c %.9Y s/f)" = "$(stat -c %.9Y d/s/f)" ]
	stage_in s
	status_is 0
	says "staged in 0 files"
}

@test "N06: names are bytes" {
	touch $'s/\xff\xfe' 's/test‛s' $'s/new\nline' 's/a b' "s/'" 's/\143\d'
	stage_in s
	status_is 0
	stage_in s
	says "staged in 0 files"
	diff -rq s d/s
	cp -a d/s back
	run stagetool out s:back --dir d
	says "staged out 0 files"
}

@test "N11: two sources of one name are refused, both are named" {
	mkdir x y
	echo A >x/f
	echo B >y/f
	stage_in x/f y/f
	status_is 2
	says "x/f"
	says "y/f"
	[ ! -e d ]
	stage_in 'x/f:n/' 'y/f:n/'
	status_is 2
	stage_in '[xy]/f:n/'
	status_is 1
	says "x/f"
	says "y/f"
	[ ! -e d/n ]
	stage_in x/f:n/1 y/f:n/2
	status_is 0
	[ "$(cat d/n/1 d/n/2)" = $'A\nB' ]
}

@test "R06: a source that was rewritten with its old size and time is brought again" {
	printf aaaa >s/f
	stage_in s
	status_is 0
	printf bbbb >s/f
	touch -r d/s/f s/f
	stage_in s
	status_is 0
	[ "$(cat d/s/f)" = bbbb ]
}

@test "a second run brings what is new and what has changed" {
	mkdir s/a
	echo 1 >s/a/f
	echo 2 >s/a/g
	stage_in s
	echo 11 >s/a/f
	echo 3 >s/a/h
	chmod 700 s/a
	stage_in s
	status_is 0
	says "staged in 2 files"
	same_tree s d/s
}

@test "a local change is never replaced" {
	echo 1 >s/f
	echo 1 >s/g
	stage_in s
	echo mine >d/s/f
	echo theirs >s/f
	echo 22 >s/g
	stage_in s
	status_is 5
	says "s/f"
	says "was changed"
	[ "$(cat d/s/f)" = mine ]
	[ "$(cat d/s/g)" = 22 ]
}

@test "a file that was not staged in is kept, an equal one is taken over" {
	echo 1 >s/f
	echo 1 >s/g
	mkdir -p d/s
	cp -a s/g d/s
	echo other >d/s/f
	stage_in s
	status_is 5
	says "was not staged in"
	[ "$(cat d/s/f)" = other ]
	echo 22 >s/g
	stage_in s
	status_is 5
	[ "$(cat d/s/g)" = 22 ]
}

@test "a file that came from elsewhere is kept" {
	echo 1 >s/f
	mkdir t
	echo 2 >t/f
	stage_in s:x
	status_is 0
	stage_in t:x
	status_is 5
	says "came from $PWD/s"
	[ "$(cat d/x/f)" = 1 ]
}

@test "things of another kind are kept" {
	mkdir -p s/dir d/s
	echo 1 >s/file
	echo 2 >d/s/dir
	mkdir d/s/file
	stage_in s
	status_is 5
	says "of another kind"
	[ -f d/s/dir ] && [ -d d/s/file ]
}

@test "a file of several names that changed at the source replaces all of them" {
	mkdir s/a s/b s/c
	echo one >s/a/f
	ln s/a/f s/b/g
	ln s/a/f s/c/h
	local threads
	for threads in 1 8; do
		stage_in s --threads "$threads"
		status_is 0
		echo "changed $threads" >s/a/f
		stage_in s --threads "$threads"
		status_is 0
		diff -r s d/s
		[ "$(stat -c %h d/s/a/f d/s/b/g d/s/c/h | tr '\n' ' ')" = "3 3 3 " ]
		stage_in s
		says "staged in 0 files"
	done
	# what the job changed is kept, under all names
	echo two >s/a/f
	chmod 600 d/s/b/g
	stage_in s
	status_is 5
	[ "$(cat d/s/a/f d/s/c/h)" = $'changed 8\nchanged 8' ]
}

@test "P01: after kill -9 the next run goes on and leaves nothing behind" {
	head -c 200M /dev/zero >s/big
	echo A >s/g
	"$STAGETOOL" in s --dir d 3>&- &
	until [ -n "$(ls -A d/s 2>/dev/null)" ]; do :; done
	kill -9 $! || skip "it was quicker than the test"
	wait $! || true
	[ ! -e d/s/big ] || cmp s/big d/s/big
	stage_in s
	status_is 0
	diff -r s d/s
	no_temporaries d
	stage_in s
	says "staged in 0 files"
}

@test "after kill -9 directories that had no record yet get their attributes" {
	[ -x "$STAGETOOL_BUILD/tests/fault/failcall" ] || skip "failcall is not built"
	for n in {1..12}; do
		mkdir -p "s/$n/sub"
		touch "s/$n/sub/f"
	done
	find s -type d -exec chmod 750 {} +
	find s -depth -exec touch -d '2 days ago' {} +
	# Its records are still in its memory.
	run "$STAGETOOL_BUILD/tests/fault/failcall" --call mkdirat --at 15 --kill -- \
		"$STAGETOOL" in s --dir d --threads 1
	[ -n "$(find d/s -type d -perm 0700)" ]
	stage_in s
	status_is 0
	same_tree s d/s
	[ -z "$(find d/s -type d -perm 0700)" ]
}

@test "include and exclude" {
	mkdir -p s/a/keep s/b
	touch s/a/x.dat s/a/x.txt s/a/keep/y.dat s/b/z.txt
	stage_in 's:i,include=*.dat'
	status_is 0
	[ "$(cd d/i && find . -type f | sort)" = $'./a/keep/y.dat\n./a/x.dat' ]
	[ ! -e d/i/b ]
	stage_in 's:e,exclude=*.dat,exclude=b/'
	status_is 0
	[ "$(cd d/e && find . -type f)" = ./a/x.txt ]
	[ -d d/e/a/keep ]
	run stagetool out e:back --dir d
	says "staged out 0 files"
}

@test "a missing source, and an optional one" {
	stage_in none
	status_is 1
	says "none"
	stage_in none:x,optional
	status_is 0
	stage_in 'no*:x/'
	status_is 1
	says "nothing matches"
}

@test "an unreadable source fails at once; one in a tree is named and the others arrive" {
	need_root
	mkdir s/shut
	echo 1 >s/f
	echo 2 >s/g
	give_user
	chmod 0 s/g
	run as_user "$STAGETOOL" in s/g --dir d
	status_is 1
	says "Permission denied"
	chmod 0 s/shut
	run as_user "$STAGETOOL" in s --dir d
	status_is 3
	says "s/g"
	says "s/shut"
	cmp s/f d/s/f
	[ ! -e d/s/g ]
}

@test "symbols are this process's job's, or only user and node" {
	echo x >s/f
	stage_in 's/f:%j'
	status_is 1
	says "%j"
	SLURM_JOB_ID=42 SLURM_JOB_NAME=my/job stage_in 's/f:%j.%x.%a/'
	status_is 0
	[ -e d/42.my_job.0/f ]
	stage_in "s/f:%u@%N"
	status_is 0
}

@test "dist=first is for the first node" {
	echo x >s/f
	SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_NODEID=1 stage_in s,dist=first
	status_is 0
	[ ! -e d/s ]
	SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_NODEID=0 stage_in s,dist=first
	status_is 0
	[ -e d/s/f ]
}

@test "@FILE" {
	echo x >s/f
	printf '# what we need\n\ns/f:one\ns:two\n' >specs
	stage_in @specs
	status_is 0
	cmp s/f d/one
	cmp s/f d/two/f
}

@test "wrong usage: exit 2, and nothing is made" {
	run stagetool in --dir d
	status_is 2
	run stagetool in s
	status_is 2
	says "STAGE_DIR"
	for wrong in 's:../x' 's:/x' 's,frob' 's:.stagetool/x' 's:a,verify,verify' ':x' 's:a,when=always'; do
		stage_in "$wrong"
		status_is 2
		[ ! -e d ]
	done
}

@test "STAGE_DIR is the stage" {
	echo x >s/f
	STAGE_DIR=$PWD/e run stagetool in s
	status_is 0
	cmp s/f e/s/f
}

@test "S03: inodes that do not suffice: exit 4, said so, nothing is made" {
	need_mounts
	(cd s && seq 100 | xargs touch)
	mkdir d
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o nr_inodes=50 t d && "$0" in s --dir d; rc=$?; ls -A d; exit $rc' \
		"$STAGETOOL"
	status_is 4
	says "inodes: 109 needed"
	says_not "s/"
}

@test "bytes that do not suffice: exit 4, needed and available are said" {
	need_mounts
	head -c 8M /dev/urandom >s/f
	mkdir d
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o size=4m t d && "$0" in s --dir d; rc=$?; ls d; exit $rc' \
		"$STAGETOOL"
	status_is 4
	says "bytes: 9.0 MiB needed, 4.0 MiB available"
}

@test "a stage that fills up meanwhile: exit 4, what this run brought is gone, what was there stays" {
	need_mounts
	need strace
	sanitized && skip "strace and a sanitizer"
	mkdir d s/sub
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 100K /dev/urandom >s/sub/$i; done
	# shellcheck disable=SC2016
	script='mount -t tmpfs -o size=100m t d && mkdir -p d/s && echo mine >d/s/mine &&
		strace -f -o log -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC:when=10..10 \
			"$0" in s s/sub:t --dir d --threads=1
		rc=$?; find d -not -path "d/.stagetool*" | sort; exit $rc'
	# It counts for each thread: the manifest is written by another one, less often.
	run unshare -m sh -c "$script" "$STAGETOOL"
	status_is 4
	grep -qx "d/s/mine" <<<"$output"
	[ "$(grep -cxE "d/s/sub|d/t" <<<"$output")" -eq 0 ]
}

@test "a stage that is so full that not even the manifest can be written is as it was, too" {
	need_mounts
	need strace
	sanitized && skip "strace and a sanitizer"
	mkdir d
	for i in 1 2 3 4 5 6; do head -c 100K /dev/urandom >s/$i; done
	# shellcheck disable=SC2016
	script='mount -t tmpfs -o size=100m t d &&
		strace -f -o log -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC:when=5+ \
			"$0" in s s:t --dir d --threads=1
		rc=$?; ls d; exit $rc'
	run unshare -m sh -c "$script" "$STAGETOOL"
	status_is 4
	[ "$(tail -n 1 <<<"$output" | cut -c-9)" = "stagetool" ]
}

@test "what is in the stage already is not counted twice" {
	need_mounts
	head -c 3M /dev/urandom >s/f
	mkdir d
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o size=6m t d && "$0" in s --dir d && "$0" in s --dir d' "$STAGETOOL"
	status_is 0
	says "staged in 0 files"
}

@test "two at once: the second is told who is at work" {
	echo x >s/f
	mkfifo gate
	stagetool in s --dir d
	flock d/.stagetool/manifest/lock sh -c 'echo 77 >d/.stagetool/manifest/lock; : >gate; sleep 5' &
	: <gate
	stage_in s
	kill $!
	status_is 1
	says "in use by another stagetool (process 77)"
}

@test "a manifest that is damaged is refused, and the data stays" {
	echo x >s/f
	stage_in s
	truncate -s 100 d/.stagetool/manifest/data.mdb
	stage_in s
	status_is 1
	says "damaged"
	cmp s/f d/s/f
	rm -r d/.stagetool/manifest
	stage_in s
	status_is 0
	says "staged in 0 files"
}

@test "read-only trees arrive whole for an ordinary user, and can be brought again" {
	need_root
	mkdir -p s/a/b
	echo x >s/a/b/f
	chmod -R a-w s/a
	give_user
	run as_user "$STAGETOOL" in s --dir d
	status_is 0
	same_tree s d/s
	chmod u+w s/a/b
	as_user sh -c 'echo y >s/a/b/g'
	chmod u-w s/a/b
	run as_user "$STAGETOOL" in s --dir d
	status_is 0
	same_tree s d/s
}

@test "--json" {
	need jq
	echo x >s/f
	echo 1 >s/g
	stagetool in s --dir d --json >out
	[ "$(jq -r '.verb, .status, .files, .items[0].local' <out | tr '\n' ' ')" = "in 0 2 s " ]
	echo mine >d/s/f
	echo theirs >s/f
	run stagetool in s --dir d --json -q
	status_is 5
	[ "$(stagetool in s --dir d --json 2>/dev/null | jq -r '.problems[0].kind')" = conflict ]
	run stagetool in none --dir d --json
	status_is 1
	[ "$(stagetool in none --dir d --json 2>/dev/null | jq -r '.error != null')" = true ]
}

@test "verify reads back" {
	need strace
	sanitized && skip "strace and a sanitizer"
	head -c 1M /dev/urandom >s/f
	strace -f -o log -e trace=read,pread64,fsync "$STAGETOOL" in s:d,verify --dir d
	cmp s/f d/d/f
	grep -q fsync log
}

@test "SIGTERM stops it, and the same command goes on" {
	head -c 400M /dev/zero >s/big
	for i in 1 2 3; do cp s/big s/big$i; done
	"$STAGETOOL" in s --dir d 2>log &
	sleep 0.2
	kill -TERM $!
	wait $! || true
	no_temporaries d
	stage_in s
	status_is 0
	diff -r s d/s
}
