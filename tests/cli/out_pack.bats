#!/usr/bin/env bats
# shellcheck disable=SC2154
# pack=: results go out as one archive, by hand and from a job.

load helpers
load node

stage_out() {
	run stagetool out --dir d "$@"
}

results() {
	mkdir -p "$1/a/b"
	echo one >"$1/a/b/f"
	ln "$1/a/b/f" "$1/hard"
	ln -s a/b "$1/l"
	head -c 300000 /dev/urandom >"$1/large"
	setfattr -n user.k -v v "$1/a"
}

@test "pack: all of FROM is one archive, in each format" {
	mkdir d
	results d/r
	for format in tar.zst tar.gz tar zip; do
		stage_out "r:out/x.$format,pack=$format"
		status_is 0
		says "staged out 4 files"
		stagetool unpack "out/x.$format" "u.$format" 2>/dev/null
		diff -r --no-dereference d/r "u.$format"
	done
	same_tree d/r u.tar.zst
	no_temporaries out
}

@test "pack: TO/ gives it the name of FROM, a pattern makes several" {
	mkdir d
	results d/r1
	results d/r2
	stage_out "r1:out/,pack=tar"
	status_is 0
	stage_out "r*:outs/,pack=tar.zst"
	status_is 0
	[ "$(cd out && ls)" = r1.tar ]
	[ "$(cd outs && ls)" = $'r1.tar.zst\nr2.tar.zst' ]
}

@test "pack: the whole stage, without what the tool keeps in it; include and exclude" {
	mkdir d s/x
	echo x >s/x/f.c
	echo y >s/x/f.o
	stagetool in --dir d s:s
	stage_out ".:$PWD/all.tar,pack=tar"
	status_is 0
	[ "$(tar -tf all.tar)" = $'./\ns/\ns/x/\ns/x/f.c\ns/x/f.o' ]
	stage_out "s:$PWD/c.tar,pack=tar,include=*.c"
	status_is 0
	[ "$(tar -tf c.tar)" = $'./\nx/\nx/f.c' ]
}

@test "pack: ours is replaced by the next one, somebody else's is not" {
	mkdir d out
	results d/r
	stage_out "r:out/x.tar,pack=tar"
	status_is 0
	echo more >d/r/more
	stage_out "r:out/x.tar,pack=tar"
	status_is 0
	tar -tf out/x.tar | grep -qx more
	echo theirs >out/x.tar
	stage_out "r:out/x.tar,pack=tar"
	status_is 5
	[ "$(cat out/x.tar)" = theirs ]
	tar -tf out/x.tar.conflict* | grep -qx more
	stage_out "r:out/x.tar,pack=tar,conflict=fail"
	[ "$status" -ne 0 ]
	[ "$(cat out/x.tar)" = theirs ]
	stage_out "r:out/x.tar,pack=tar,conflict=overwrite"
	status_is 0
	tar -tf out/x.tar | grep -qx more
}

@test "pack: what was unpacked goes back to its archive, if that is still the same" {
	results s
	stagetool pack s a.tar
	cp a.tar b.tar
	stagetool in --dir d a.tar:t,as=unpack b.tar:u,as=unpack
	echo new >d/t/new
	echo new >d/u/new
	stage_out "t:$PWD/a.tar,pack=tar"
	status_is 0
	tar -tf a.tar | grep -qx new
	touch b.tar
	stage_out "u:$PWD/b.tar,pack=tar"
	status_is 5
	run grep -c new <(tar -tf b.tar)
	[ "$output" = 0 ]
	tar -tf b.tar.conflict* | grep -qx new
}

@test "pack: a file can not be packed; a receipt comes last" {
	mkdir d
	echo x >d/f
	stage_out "f:out/f.tar,pack=tar"
	[ "$status" -ne 0 ]
	says "pack= is for directories"
	results d/r
	stage_out "r:out/r.tar,pack=tar,receipt"
	status_is 0
	[ -e out/r.tar.receipt.json ]
}

@test "pack: what does not fit leaves nothing at TO, and all in the stage" {
	need_mounts
	mkdir d mnt
	results d/r
	head -c 3M /dev/urandom >d/r/big
	run on_tmpfs mnt size=1M "$STAGETOOL" out --dir d "r:$PWD/mnt/r.tar,pack=tar"
	[ "$status" -ne 0 ]
	says_not "ls: "
	says "big"
	[ -e d/r/big ]
}

@test "pack: from a job, however it ended; the stage goes when it is there" {
	node_setup
	specs "out r:$work/out/r.%j.tar.zst,pack=tar.zst"
	hook prolog
	status_is 0
	as_job mkdir r
	as_job bash -c 'echo result >r/f'
	export STAGE_JOB_STATE=FAILED
	hook epilog
	status_is 0
	[ "$(tar -xOf out/r.7.tar.zst f)" = result ]
	[ "$(stat -c %u out/r.7.tar.zst)" = 65534 ]
	tier_is_empty
}

@test "pack: one archive for each node" {
	node_setup
	export STAGE_NODE_COUNT=2 STAGE_NODE_INDEX=0
	specs "out r:$work/out/r.tar,pack=tar" "out r:$work/out/%N.tar,pack=tar"
	hook prolog
	as_job mkdir r
	as_job touch r/f
	hook epilog
	status_is 0
	[ "$(cd out && find . -type f | LC_ALL=C sort)" = $'./n1.tar\n./n1/r.tar' ]
}
