#!/usr/bin/env bats
# stagetool verify: what is missing, changed or new in a stage.

load helpers

verify() {
	run stagetool verify --dir d "$@"
}

@test "a stage as it was staged in" {
	mkdir -p s/a/b
	echo 1 >s/a/b/f
	ln -s f s/a/b/l
	ln s/a/b/f s/hard
	mkfifo s/p
	chmod 555 s/a
	stagetool in s s/a/b/f:deep/er/file --dir d
	verify
	status_is 0
	says "nothing was read"
	says "0 changed, 0 missing, 0 new"
	verify --content
	status_is 0
	says "3 files"
}

@test "V02: content that was changed and given its old time is found" {
	head -c 1M /dev/urandom >s/f
	stagetool in s --dir d
	printf Z | dd of=d/s/f bs=1 seek=99 conv=notrunc status=none
	touch -r s/f d/s/f
	verify
	status_is 3
	says "s/f: changed"
	says "modification time set back"
}

@test "what is missing, changed and new is named" {
	mkdir -p s/gone s/kept
	echo 1 >s/gone/f
	echo 1 >s/kept/f
	echo 1 >s/kept/m
	ln -s x s/kept/l
	stagetool in s --dir d
	rm -r d/s/gone
	echo 22 >d/s/kept/f
	chmod 600 d/s/kept/m
	rm d/s/kept/l
	mkdir d/s/kept/l d/own
	echo x >d/s/kept/new
	verify
	status_is 3
	says "s/gone: missing"
	says "s/kept/f: changed: its size"
	says "s/kept/m: changed"
	says "s/kept/l: changed: it is of another kind"
	says "s/kept/new: new"
	says "own: new"
	says_not ".stagetool"
}

@test "V02: --content finds what no mark shows, reads both sides, and says how much" {
	need strace
	sanitized && skip "strace and a sanitizer"
	head -c 200K /dev/urandom >s/f
	stagetool in s --dir d
	# The disk lies: every read of the copy comes out as something else.
	run strace -f -o log -e trace=read,fadvise64,fdatasync -P "$PWD/d/s/f" \
		-e inject=read:poke_exit=@arg2=00112233 "$STAGETOOL" verify --content --dir d
	status_is 3
	says "s/f: changed: its content"
	says "1 files, 200.0 KiB read here and at the source"
	grep -q 'fadvise64.*DONTNEED' log
	verify --content
	status_is 0
}

@test "--content says where the source has changed" {
	echo 1 >s/f
	echo 1 >s/g
	stagetool in s --dir d
	echo 22 >s/f
	rm s/g
	verify
	status_is 0
	verify --content
	status_is 3
	says "s/f: unknown"
	says "has changed since the stage-in"
	says "s/g: unknown"
}

@test "symlinks in the stage lead nowhere" {
	mkdir s/a
	echo 1 >s/a/f
	stagetool in s --dir d
	mv d/s/a elsewhere
	ln -s ../../elsewhere d/s/a
	verify --content
	status_is 3
	says "s/a: changed: it is of another kind"
	says "s/a/f: missing"
}

@test "no stage, no manifest, a damaged one" {
	verify
	status_is 1
	mkdir d
	verify
	status_is 1
	says "nothing was staged in"
	[ -z "$(ls -A d)" ]
	stagetool in s --dir d
	truncate -s 5 d/.stagetool/manifest/data.mdb
	verify
	status_is 1
	says "damaged"
	run stagetool verify
	status_is 2
	run stagetool verify --dir d extra
	status_is 2
}

@test "two may verify at once, but not while somebody writes" {
	stagetool in s --dir d
	flock -s d/.stagetool/manifest/lock "$STAGETOOL" verify --dir d
	run flock d/.stagetool/manifest/lock "$STAGETOOL" verify --dir d
	status_is 1
	says "in use"
}

@test "--json" {
	need jq
	echo 1 >s/f
	stagetool in s --dir d
	echo 2 >d/s/new
	stagetool verify --dir d --json -q >out 2>/dev/null || [ $? = 3 ]
	[ "$(jq -r '.verb, .status, .new, .problems[0].path, .problems[0].kind' <out | tr '\n' ' ')" = \
		"verify 3 1 s/new new " ]
}
