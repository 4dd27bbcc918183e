#!/usr/bin/env bats
# stagetool out: what is sent back, over what, and what is left alone.

load helpers

# A stage "d" that holds "s" as d/s.
staged() {
	stagetool in s --dir d -q
}

stage_out() {
	run stagetool out --dir d "$@"
}

# The system calls of a stage-out that name the shared directory $1, one a line.
calls_on() {
	local shared=$1
	shift
	strace -f -y -o log "$STAGETOOL" out --dir d "$@" 2>&1
	grep -F "$shared" log | grep -v execve || true
}

@test "what is new or changed is sent, and nothing else" {
	mkdir -p s/a/b
	echo 1 >s/a/b/f
	echo 2 >s/a/g
	ln -s g s/a/l
	staged
	echo 11 >d/s/a/b/f
	mkdir -p d/s/new/deep d/s/empty
	echo 3 >d/s/new/deep/h
	ln -sfn b d/s/a/l
	touch -d '2001-02-03 04:05:06.789012345' d/s/new/deep/h
	chmod 640 d/s/new/deep/h
	stage_out s:back
	status_is 0
	says "staged out 3 files"
	[ "$(cd back && find . | sort | tr '\n' ' ')" = \
		". ./a ./a/b ./a/b/f ./a/l ./empty ./new ./new/deep ./new/deep/h " ]
	[ "$(stat -c '%a %.9Y' back/new/deep/h)" = "$(stat -c '%a %.9Y' d/s/new/deep/h)" ]
	[ "$(cat back/a/b/f)" = 11 ] && [ "$(readlink back/a/l)" = b ]
	stage_out s:back
	status_is 0
	says "staged out 0 files"
}

@test "back to where it came from: changes replace what was staged in" {
	mkdir s/a
	echo 1 >s/a/f
	echo 2 >s/g
	staged
	echo 11 >d/s/a/f
	chmod 750 d/s/a
	stage_out "s:$PWD/s"
	status_is 0
	says "staged out 1 file"
	same_tree s d/s
	echo 111 >d/s/a/f
	stage_out "s:$PWD/s"
	status_is 0
	[ "$(cat s/a/f)" = 111 ]
}

@test "an unchanged tree costs the shared filesystem nothing below its root" {
	need strace
	sanitized && skip "strace and a sanitizer"
	mkdir -p s/a/b/c
	for i in 1 2 3 4 5 6 7 8 9; do
		echo $i >s/a/$i
		echo $i >s/a/b/$i
		ln -s $i s/a/b/c/$i
	done
	staged
	run calls_on "$PWD/s" s:s
	status_is 0
	says_not "$PWD/s/"
	# Its directory, its root: opened, looked at, and no more, however much there is in it.
	[ "${#lines[@]}" -le 12 ]
	printf '%s\n' "${lines[@]}" >calls
	run grep -E 'getdents|write|mkdir|unlink|rename' calls
	status_is 1
	echo new >d/s/a/b/c/new
	run calls_on "$PWD/s/" s:s
	says "$PWD/s/a/b/c"
}

@test "one changed file: only its own directories are touched" {
	need strace
	sanitized && skip "strace and a sanitizer"
	mkdir -p s/a/b s/other/x
	echo 1 >s/a/b/f
	echo 1 >s/other/x/f
	staged
	echo 2 >d/s/a/b/f
	run calls_on "$PWD/s/" s:s
	says_not "s/other"
}

@test "without a manifest everything is new" {
	mkdir -p d/r
	echo 1 >d/r/f
	stage_out r:back
	status_is 0
	cmp d/r/f back/f
	stage_out r:back
	says "staged out 0 files"
}

@test "the slash rule, missing parents, a single file" {
	mkdir -p d/r
	echo 1 >d/r/f
	stage_out r:one/two/three
	status_is 0
	cmp d/r/f one/two/three/f
	stage_out r:dir/
	status_is 0
	cmp d/r/f dir/r/f
	stage_out r/f:file
	status_is 0
	cmp d/r/f file
	stage_out r/f:dir/
	status_is 0
	cmp d/r/f dir/f
	stage_out 'r/*:glob/'
	status_is 0
	cmp d/r/f glob/f
	stage_out r/f:file
	says "staged out 0 files"
}

@test "the stage itself, without what the tool keeps in it" {
	mkdir -p d/r
	echo 1 >d/r/f
	stage_out .:back
	status_is 0
	cmp d/r/f back/r/f
	[ ! -e back/.stagetool ]
	stage_out .:back
	says "staged out 0 files"
}

@test "N12: a symlink to a directory is followed and kept" {
	mkdir -p d/r real
	echo 1 >d/r/f
	ln -s real link
	stage_out r/f:link/
	status_is 0
	[ -L link ] && cmp d/r/f real/f
	rm real/f
	rm -r d/.stagetool
	stage_out r:link
	status_is 0
	[ -L link ] && cmp d/r/f real/f
}

@test "a FROM that leads out of the stage fails, the others are sent" {
	mkdir d
	echo 1 >d/f
	echo secret >outside
	ln -s ../outside d/l
	stage_out l:x f:y none:z
	status_is 3
	says "l: leads outside of the stage"
	says "none: No such file or directory"
	says_not "none: none"
	[ ! -e x ] && cmp d/f y
	stage_out none:z,optional
	status_is 0
}

@test "symlinks in a tree are sent as they are" {
	mkdir -p d/r
	ln -s /etc/passwd d/r/p
	ln -s nowhere d/r/n
	stage_out r:back
	status_is 0
	[ "$(readlink back/p)" = /etc/passwd ] && [ "$(readlink back/n)" = nowhere ]
}

@test "hard links stay hard links, and are not sent again" {
	mkdir -p d/r/a d/r/b
	echo 1 >d/r/a/f
	ln d/r/a/f d/r/b/f
	ln d/r/a/f d/r/g
	stage_out r:back
	status_is 0
	[ "$(stat -c %i back/a/f)" = "$(stat -c %i back/b/f)" ]
	[ "$(stat -c %h back/g)" = 3 ]
	stage_out r:back
	says "staged out 0 files"
	echo 2 >d/r/g
	stage_out r:back
	status_is 0
	[ "$(cat back/a/f back/b/f back/g)" = $'2\n2\n2' ]
}

@test "conflict=keep: both are kept, exit 5" {
	echo 1 >s/f
	staged
	echo mine >d/s/f
	echo theirs >s/f
	stage_out s:s
	status_is 5
	says "s/f"
	[ "$(cat s/f)" = theirs ]
	[ "$(cat s/f.conflict-*)" = mine ]
	stage_out s:s
	status_is 0
	says "staged out 0 files"
	[ "$(ls s)" = "$(printf 'f\n'; cd s && ls f.conflict-*)" ]
}

@test "conflict=keep: a name that was not there at stage-in" {
	staged
	echo mine >d/s/new
	echo theirs >s/new
	stage_out s:s
	status_is 5
	[ "$(cat s/new)" = theirs ]
	[ "$(cat s/new.conflict-*)" = mine ]
}

@test "conflict=fail and conflict=overwrite" {
	echo 1 >s/f
	staged
	echo mine >d/s/f
	echo theirs >s/f
	stage_out s:s,conflict=fail
	[ "$status" -ne 0 ]
	[ "$(cat s/f)" = theirs ]
	[ "$(ls s)" = f ]
	stage_out s:s,conflict=overwrite
	status_is 0
	[ "$(cat s/f)" = mine ]
}

@test "X02: two stages deliver one name: one whole file, and the other is kept beside it" {
	mkdir d1 d2
	echo A >d1/o
	echo B >d2/o
	stagetool out o:s/ --dir d1 &
	stagetool out o:s/ --dir d2 || true
	wait $! || true
	[ "$(cat s/o*)" = $'A\nB' ] || [ "$(cat s/o*)" = $'B\nA' ]
	[ "$(find s -type f | wc -l)" = 2 ]
}

@test "things of another kind at TO are kept" {
	mkdir -p d/r/dir back/file
	echo 1 >d/r/file
	echo 2 >d/r/dir/f
	echo 3 >back/dir
	echo 4 >back/file/f
	stage_out r:back
	status_is 5
	[ "$(cat back/dir back/file/f)" = $'3\n4' ]
	[ "$(cat back/file.conflict-*)" = 1 ]
	[ "$(cat back/dir.conflict-*/f)" = 2 ]
}

@test "an existing directory at TO keeps its attributes, new ones inherit its group" {
	need_root
	mkdir -p d/r/q d/r/have member/have other/have
	echo 1 >d/r/q/f
	echo 1 >d/r/have/f
	chmod 750 d/r/q
	chmod 700 d/r d/r/have
	give_user
	chgrp -R 100 member other
	chmod 2777 member other
	chmod 2770 member/have other/have
	as_member 100 "$STAGETOOL" out --dir d r:member
	# the kernel lets nobody outside the group keep the setgid bit through a chmod: that is said
	run as_user "$STAGETOOL" out --dir d r:other
	status_is 0
	says "r/q: without setgid"
	[ "$(stat -c '%g %a' member/q other/q)" = $'100 2750\n100 750' ]
	local back
	for back in member other; do
		[ "$(stat -c '%g %a' $back)" = "100 2777" ]
		[ "$(stat -c '%a' $back/have)" = 2770 ]
		[ "$(stat -c '%g' $back/q/f)" = 100 ]
	done
}

@test "root sends owner and group as they are" {
	need_root
	mkdir -p d/r/q back
	echo 1 >d/r/q/f
	chown -R 1:2 d/r/q
	chgrp 100 back
	chmod 2775 back
	stage_out r:back
	status_is 0
	[ "$(stat -c '%u:%g' back/q back/q/f)" = $'1:2\n1:2' ]
}

@test "a mode that was changed goes back, on directories too" {
	mkdir s/a
	echo 1 >s/a/f
	staged
	chmod 700 d/s/a
	chmod 600 d/s/a/f
	stage_out s:s
	status_is 0
	[ "$(stat -c %a s/a s/a/f)" = $'700\n600' ]
	stage_out s:s
	says "staged out 0 files"
}

@test "delete removes what was staged in and is gone, and nothing else" {
	mkdir -p s/a/b s/c s/e
	echo 1 >s/a/b/f
	echo 2 >s/a/g
	echo 3 >s/c/h
	echo 4 >s/e/changed
	ln -s x s/a/l
	staged
	echo new >s/c/theirs
	echo newer >s/e/changed
	rm -r d/s/a d/s/c d/s/e/changed
	stage_out s:s
	status_is 0
	[ -e s/a/b/f ]
	stage_out s:s,delete
	status_is 0
	says "removed"
	[ ! -e s/a ]
	[ ! -e s/c/h ] && [ -e s/c/theirs ]
	[ "$(cat s/e/changed)" = newer ]
}

@test "delete: elsewhere nothing is removed" {
	echo 1 >s/f
	cp -a s other
	staged
	rm d/s/f
	stage_out s:other,delete
	status_is 0
	[ -e other/f ]
}

@test "delete is off where a directory could not be read" {
	need_root
	mkdir s/a s/b
	echo 1 >s/a/f
	echo 1 >s/b/g
	give_user
	as_user "$STAGETOOL" in s --dir d
	rm d/s/a/f
	chmod 0 d/s/b
	run as_user "$STAGETOOL" out s:s,delete --dir d
	status_is 3
	says "nothing was deleted"
	[ -e s/a/f ]
}

@test "delete leaves what is filtered out" {
	echo 1 >s/f.dat
	echo 1 >s/g.txt
	staged
	rm d/s/*
	stage_out 's:s,delete,exclude=*.txt'
	status_is 0
	[ "$(ls s)" = g.txt ]
}

@test "a symlink in place of a directory that was staged in is a conflict" {
	mkdir s/a
	echo 1 >s/a/f
	staged
	mv d/s/a d/s/moved
	ln -s moved d/s/a
	stage_out s:s,delete
	status_is 5
	[ -f s/a/f ] && [ ! -L s/a ]
	[ -f s/moved/f ]
}

@test "receipt" {
	need jq
	mkdir -p d/r
	echo 12345 >d/r/f
	SLURM_JOB_ID=42 stage_out r:back,receipt
	status_is 0
	[ "$(jq -r '.files, .bytes, .job' <back.receipt.json | tr '\n' ' ')" = "1 6 42 " ]
	jq -e '.node and .time and .to' <back.receipt.json
	rm back.receipt.json
	mkdir -p d/q back2
	echo 1 >d/q/f
	echo 2 >back2/f
	stage_out q:back2,receipt
	status_is 5
	[ ! -e back2.receipt.json ]
}

@test "E03: a destination that can not be: nothing delivered, and the stage is whole" {
	mkdir d
	echo r >d/o
	stage_out o:/proc/nope
	status_is 1
	says "staged out 0 files"
	says "nothing in d was removed"
	[ "$(cat d/o)" = r ]
}

@test "S01: a full destination: nothing under the final name, and the same command tries again" {
	need_mounts
	mkdir d t
	head -c 4M /dev/zero | tr '\0' x >d/f
	echo small >d/g
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o size=1m t t && "$0" out f:t/f g:t/g --dir d; rc=$?; ls -A t; exit $rc' \
		"$STAGETOOL"
	status_is 3
	says "no space left for bytes"
	[ "$(tail -n 1 <<<"$output")" = g ]
	says "nothing in d was removed"
	stage_out f:t/f g:t/g
	status_is 0
	cmp d/f t/f
}

@test "S01: of a tree, what was sent counts, and how much was not is said" {
	need_mounts
	mkdir -p d/r t
	local i
	for i in {1..8}; do head -c 300000 /dev/zero | tr "\\0" x >"d/r/f$i"; done
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o size=1m t t && "$0" out r:t/r --threads 1 --dir d; rc=$?
		ls t/r | wc -l; exit $rc' "$STAGETOOL"
	status_is 3
	[ "$(tail -n 1 <<<"$output")" = 3 ]
	# five files and the directory's own mode and times
	says "not sent, and still in the stage: 6 entries (1.4 MiB)"
	stage_out r:t/r
	status_is 0
	says "staged out 5 files"
}

@test "a stage that is full does not keep results from being sent" {
	need_mounts
	mkdir d
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o size=1m t d && { cat /dev/zero >d/f || :; } 2>/dev/null
		"$0" out f:f --dir d && cmp d/f f' "$STAGETOOL"
	status_is 0
	says "staged out 1 file"
}

@test "after kill -9 no half file is there, and the next run finishes" {
	mkdir -p d/r
	for i in 1 2 3 4 5 6 7 8; do head -c 20M /dev/urandom >d/r/$i; done
	"$STAGETOOL" out r:back --dir d 3>&- &
	until [ -n "$(ls -A back 2>/dev/null)" ]; do :; done
	kill -9 $! || skip "it was quicker than the test"
	wait $! || true
	for f in back/*; do
		[ ! -e "$f" ] || cmp "$f" "d/r/${f#back/}"
	done
	stage_out r:back
	status_is 0
	diff -r d/r back
	no_temporaries back
}

@test "what a killed run delivered is not sent again, nor a conflict" {
	mkdir -p d/r back
	echo 1 >d/r/f
	cp -a d/r/f back/f
	stage_out r:back
	status_is 0
	[ "$(ls back)" = f ]
	stage_out r:back
	says "staged out 0 files"
}

@test "temporaries of a dead run in the stage are not sent" {
	mkdir -p d/r
	echo 1 >d/r/.stagetool-tmp.x
	echo 1 >d/r/f
	stage_out r:back
	status_is 0
	[ "$(ls -A back)" = f ]
}

@test "gather: each node below its own name" {
	mkdir -p d/r
	echo 1 >d/r/f
	SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_NODEID=1 SLURMD_NODENAME=n2 stage_out r:back
	status_is 0
	cmp d/r/f back/n2/f
	SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_NODEID=1 SLURMD_NODENAME=n2 stage_out r:m,gather=merge
	status_is 0
	cmp d/r/f m/f
}

@test "include and exclude" {
	mkdir -p d/r/a d/r/b
	touch d/r/a/x.log d/r/a/x.dat d/r/b/y.log
	stage_out 'r:back,exclude=*.log'
	status_is 0
	[ "$(cd back && find . -type f)" = ./a/x.dat ]
	stage_out 'r:only,include=*.log'
	status_is 0
	[ "$(cd only && find . -type f | sort | tr '\n' ' ')" = "./a/x.log ./b/y.log " ]
}

@test "wrong usage: exit 2" {
	mkdir d
	for wrong in s s: ../x:y 's:t,dist=all' 's:t,conflict=maybe'; do
		stage_out "$wrong"
		status_is 2
	done
	run stagetool out s:t --dir none
	status_is 1
	says "none"
}

@test "an ordinary user sends to a directory that is theirs" {
	need_root
	mkdir -p d/r
	echo 1 >d/r/f
	give_user
	run as_user "$STAGETOOL" out r:back --dir d
	status_is 0
	[ "$(stat -c %U:%G back/f)" = "$(stat -c %U:%G d/r/f)" ]
	chmod 555 back
	as_user sh -c 'echo 2 >d/r/g'
	run as_user "$STAGETOOL" out r:back --dir d
	[ "$status" -ne 0 ]
	[ -e d/r/g ] && [ ! -e back/g ]
	says "nothing in d was removed"
}

@test "--json names each item" {
	need jq
	mkdir -p d/r
	echo 1 >d/r/f
	stagetool out r:back none:x --dir d --json 2>/dev/null >result || [ $? = 3 ]
	[ "$(jq -r '.verb, .status, .files, .failed, .items[0].local, .items[1].failed' <result | tr '\n' ' ')" = \
		"out 3 1 1 r 1 " ]
}
