#!/usr/bin/env bats
# shellcheck disable=SC2154
# as=unpack: an archive becomes a tree in a stage, by hand and in a job.

load helpers
load node

stage_in() {
	run stagetool in --dir d "$@"
}

small_tree() {
	mkdir -p "$1/a/b"
	echo one >"$1/a/b/f"
	ln "$1/a/b/f" "$1/hard"
	ln -s a/b "$1/l"
	head -c 300000 /dev/urandom >"$1/large"
	touch -d '2001-02-03 04:05:06.789012345' "$1/a/b/f" "$1/a/b" "$1/large"
}

# The archive of s, as its time and inode stay.
archive() {
	tar --format=pax --sort=name -cf "${1:-a.tar}" -C s .
}

@test "as=unpack: the tree is there, and only what changed goes back, as files" {
	small_tree s
	archive
	stage_in a.tar:t,as=unpack
	status_is 0
	says "staged in 4 files"
	same_tree s d/t
	[ "$(ls -A d)" = $'.stagetool\nt' ]
	run stagetool out t:back --dir d
	status_is 0
	says "staged out 0 files"
	echo two >d/t/a/b/g
	echo changed >d/t/large
	run stagetool out t:back --dir d
	status_is 0
	says "staged out 2 files"
	[ "$(cd back && find . -type f | sort | xargs)" = "./a/b/g ./large" ]
	run stagetool verify --dir d
	says "large"
	says_not "a/b/f"
}

@test "as=unpack: the slash rule, a pattern, several archives" {
	small_tree s
	archive a.tar
	archive b.tar
	stage_in "*.tar:x/,as=unpack"
	status_is 0
	same_tree s d/x/a.tar
	same_tree s d/x/b.tar
}

@test "as=unpack: an archive that has not changed is not read again; one that has is" {
	small_tree s
	archive
	stagetool in --dir d a.tar:t,as=unpack
	rm d/t/large
	stage_in a.tar:t,as=unpack
	status_is 0
	says "staged in 0 files"
	[ ! -e d/t/large ]
	# what was wanted of it has changed
	stage_in "a.tar:t,as=unpack,exclude=nothing"
	status_is 0
	[ -e d/t/large ]
	echo new >s/a/b/f
	echo more >s/a/more
	archive
	stage_in a.tar:t,as=unpack
	status_is 0
	same_tree s d/t
	run stagetool out t:back --dir d
	says "staged out 0 files"
}

@test "as=unpack: what was changed here is kept when the archive has changed" {
	small_tree s
	echo x >s/x
	archive
	stagetool in --dir d a.tar:t,as=unpack
	echo mine >d/t/x
	echo theirs >s/x
	archive
	stage_in a.tar:t,as=unpack
	status_is 5
	says "a.tar/x"
	[ "$(cat d/t/x)" = mine ]
	run stagetool out t:back --dir d
	says "staged out 1 file"
}

@test "as=unpack: one that was interrupted goes on, with its links" {
	small_tree s
	seq 500 | (cd s && xargs touch)
	archive whole.tar
	# cut off in its last member: what came before is there
	head -c -200000 whole.tar >a.tar
	stage_in a.tar:t,as=unpack
	status_is 3
	says "at byte"
	[ -e d/t/hard ]
	rm d/t/1
	stage_in a.tar:t,as=unpack
	status_is 3
	[ -e d/t/1 ]
	[ "$(stat -c %h d/t/hard)" -eq 2 ]
	[ "$(stat -c %i d/t/hard)" = "$(stat -c %i d/t/a/b/f)" ]
	cat whole.tar >a.tar
	stage_in a.tar:t,as=unpack
	status_is 0
	same_tree s d/t
	run stagetool out t:back --dir d
	says "staged out 0 files"
}

@test "as=unpack: killed with kill -9 at any moment, the next run makes it whole" {
	small_tree s
	(cd s && for i in $(seq 20); do mkdir "$i" && (cd "$i" && seq 200 | xargs touch); done)
	archive
	for pause in 0.01 0.03 0.06 0.1; do
		rm -rf d
		"$STAGETOOL" in --dir d a.tar:t,as=unpack 2>/dev/null &
		sleep $pause
		kill -9 $! 2>/dev/null || true
		wait $! 2>/dev/null || true
		stage_in a.tar:t,as=unpack
		status_is 0
		diff -r --no-dereference s d/t
		diff <(tree_list s | grep -v ^d) <(tree_list d/t | grep -v ^d)
		no_temporaries d
		run stagetool out t:back --dir d
		says "staged out 0 files"
	done
}

@test "as=unpack: include and exclude" {
	small_tree s
	archive
	stage_in "a.tar:t,as=unpack,exclude=large,exclude=a/b"
	status_is 3
	says "hard"
	[ "$(cd d/t && find . | LC_ALL=C sort | xargs)" = ". ./a ./l" ]
}

@test "as=unpack: plan says what it can know, verify what it can not" {
	small_tree s
	archive
	run stagetool plan in --dir d a.tar:t,as=unpack
	status_is 0
	says "an archive of 312.0 KiB"
	says "at least"
	says_not "pay"
	stagetool in --dir d a.tar:t,as=unpack
	run stagetool verify --content --dir d
	says "it came out of an archive"
}

@test "as=unpack: what is no archive, and what can not go together" {
	small_tree s
	archive
	stage_in s:t,as=unpack
	status_is 1
	says "directory"
	stage_in a.tar:t,as=unpack,sync
	status_is 2
	stage_in a.tar:t,as=unpack,verify
	status_is 2
	echo text >f
	stage_in f:t,as=unpack
	[ "$status" -ne 0 ]
	[ ! -e d/t ] || [ -z "$(ls -A d/t)" ]
}

@test "as=unpack: where space ends nothing of it is left, and what was there is" {
	need_mounts
	head -c 300K /dev/urandom >s/big
	for i in $(seq 30); do head -c 100K /dev/urandom >"s/f$i"; done
	tar -czf a.tgz -C s .
	mkdir mnt
	cat >run.sh <<-'END'
		cd mnt && mkdir d && echo mine >d/mine
		"$STAGETOOL" in --dir d ../a.tgz:t,as=unpack
		status=$?
		find d -not -path 'd/.stagetool*' | sed 's/^/left: /'
		exit $status
	END
	export STAGETOOL
	# room for the archive itself, or it would not even begin
	run on_tmpfs mnt size=6M bash -c 'head -c 2500K /dev/zero >mnt/other; exec bash run.sh'
	status_is 4
	says "left: d/mine"
	says_not "left: d/t"
}

@test "as=unpack: in a job, as the user" {
	node_setup
	mkdir s
	small_tree s
	tar --format=pax --zstd -cf src/a.tar.zst -C s .
	specs "in $work/src/a.tar.zst:t,as=unpack" "out t:$work/out/t"
	hook prolog
	status_is 0
	reports "verdict ok staged in 4 files"
	diff -r --no-dereference s tier/7.0/t
	[ "$(stat -c %u tier/7.0/t/large)" = 65534 ]
	as_job bash -c 'echo result >t/result'
	hook epilog
	status_is 0
	[ "$(find out -type f)" = out/t/result ]
	tier_is_empty
}

@test "as=unpack: a bomb stops at --stage-size, with nothing left, and the job is told" {
	node_setup
	truncate -s 200M zeros
	bsdtar --no-read-sparse -czf src/b.tgz zeros
	specs "size 1048576" "in $work/src/b.tgz:t,as=unpack"
	hook prolog
	reports "verdict job"
	grep -q "1048576 bytes" report
	tier_is_empty
}

@test "as=unpack: a member that would lead out fails the job, and is named" {
	node_setup
	python3 -c '
import io, tarfile
t = tarfile.open("src/a.tar", "w")
for name in ["good", "../../evil"]:
    info = tarfile.TarInfo(name)
    info.size = 1
    t.addfile(info, io.BytesIO(b"x"))
t.close()'
	specs "in $work/src/a.tar:t,as=unpack"
	hook prolog
	reports "verdict job"
	grep -qF "../../evil" report
	[ -z "$(find . -name evil)" ]
	tier_is_empty
}
