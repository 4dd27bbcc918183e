#!/usr/bin/env bats
# stagetool copy: names, the slash rule, what is replaced, options, results.

load helpers

@test "a tree arrives whole under its new name" {
	mkdir -p s/a/b s/empty
	echo one >s/a/b/f
	: >s/zero
	ln -s a/b s/l
	mkfifo s/p
	touch -d '2001-02-03 04:05:06.789012345' s/a/b/f s/a
	chmod 640 s/a/b/f
	chmod 711 s/a
	run stagetool copy s d
	status_is 0
	same_tree s d
}

@test "a file gets the new name, a '/' makes TO the directory" {
	echo x >f
	stagetool copy f g
	cmp f g
	mkdir dir
	stagetool copy f dir/
	cmp f dir/f
	stagetool copy f dir/.
	stagetool copy f new/
	cmp f new/f
	stagetool copy f dir/./h
	cmp f dir/h
}

@test "a tree into TO/ gets its own name there" {
	echo x >s/f
	stagetool copy s d/
	cmp s/f d/s/f
	stagetool copy s/ e/
	cmp s/f e/s/f
	stagetool copy s// g
	cmp s/f g/f
}

@test "a tree onto an existing directory is merged into it" {
	echo new >s/f
	mkdir d
	echo old >d/g
	run stagetool copy s d
	status_is 0
	[ "$(cat d/f d/g)" = $'new\nold' ]
	[ ! -e d/s ]
}

@test "'.' and '..' are directories to go into" {
	mkdir -p x/y
	echo x >s/f
	(cd x/y && stagetool copy ../../s/f .)
	cmp s/f x/y/f
	(cd x/y && stagetool copy ../../s ..)
	cmp s/f x/s/f
}

@test "several FROMs go into TO, which is made" {
	echo 1 >a
	echo 2 >b
	run stagetool copy a b s d
	status_is 0
	[ "$(cat d/a d/b)" = $'1\n2' ]
	[ -d d/s ]
}

@test "several FROMs of one name are refused, both named, nothing made" {
	mkdir x y
	echo A >x/f
	echo B >y/f
	run stagetool copy x/f y/f/ d/
	status_is 2
	says "x/f"
	says "y/f"
	[ ! -e d ]
	run stagetool copy x/f x/../y/f x/f d
	status_is 2
	[ ! -e d ]
}

@test "a FROM without a name of its own needs a new name" {
	echo x >s/f
	for from in . .. / s/. s/..; do
		run stagetool copy "$from" d/
		case $from in
		s/.) # what it means is s
			status_is 0
			[ -e d/s/f ]
			rm -r d
			;;
		*)
			status_is 2
			says "new name"
			[ ! -e d ]
			;;
		esac
	done
	(cd s && stagetool copy . ../d)
	cmp s/f d/f
}

@test "empty words are refused" {
	run stagetool copy "" d
	status_is 2
	says "FROM is empty"
	run stagetool copy s ""
	status_is 2
	says "TO is empty"
}

@test "FROM is followed if it is a symlink, its own name counts" {
	echo x >s/f
	mkdir deep
	ln -s ../s deep/tree
	ln -s tree/f deep/file
	ln -s deep/file far
	run stagetool copy deep/tree far d/
	status_is 0
	[ ! -L d/tree ]
	[ -d d/tree ]
	[ ! -L d/far ]
	cmp s/f d/far
	cmp s/f d/tree/f
	ln -s round round
	run stagetool copy round d/
	status_is 1
	ln -s nowhere dangling
	run stagetool copy dangling d/
	status_is 1
	says dangling
}

@test "TO that leads to a directory is followed for a tree and kept" {
	mkdir real
	ln -s real link
	echo x >s/f
	stagetool copy s link
	[ -L link ]
	cmp s/f real/f
	stagetool copy s link/
	[ -L link ]
	cmp s/f real/s/f
}

@test "a file never takes the place of a directory" {
	mkdir d real
	ln -s real link
	echo x >f
	for to in d link; do
		run stagetool copy f "$to"
		status_is 1
		says "'$to/'"
	done
	[ -L link ]
	[ -d d ]
	mkdir d/x
	touch d/x/keep s/x
	run stagetool copy s d
	status_is 3
	says "s/x"
	[ -e d/x/keep ]
	no_temporaries d
}

@test "a directory never takes the place of a file" {
	echo keep >f
	run stagetool copy s f
	status_is 1
	says "not a directory"
	[ "$(cat f)" = keep ]
	mkdir s/x d
	touch s/x/1 s/2
	echo keep >d/x
	run stagetool copy s d
	status_is 3
	says "s/x"
	[ "$(cat d/x)" = keep ]
	[ -e d/2 ]
	ln -s nowhere d/y
	mkdir s/y
	run stagetool copy s d
	status_is 3
	[ -L d/y ]
}

@test "a device or a socket is never replaced" {
	need_root
	need python3
	mkdir d
	mknod d/null c 1 3 || skip "no devices here"
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("d/socket")'
	touch s/null s/socket s/f
	run stagetool copy s d
	status_is 3
	says "s/null"
	says "s/socket"
	[ -c d/null ]
	[ -S d/socket ]
	[ -e d/f ]
	run stagetool copy s/f d/null
	status_is 1
	[ -c d/null ]
	no_temporaries d
}

@test "FROM itself has to be something that can be copied" {
	need_root
	mknod null c 1 3 || skip "no devices here"
	ln -s null link
	for from in null link; do
		run stagetool copy $from d
		status_is 1
		says "$from is a device"
		[ ! -e d ]
	done
}

@test "a directory that can not be made is one line, not one for all that is in it" {
	need_root
	mkdir -p s/a/deep
	seq 100 | (cd s/a/deep && xargs touch)
	echo x >s/f
	mkdir d
	echo y >d/a
	run stagetool copy s d
	status_is 3
	[ "${#lines[@]}" -eq 2 ]
	says "s/a: "
	[ -e d/f ]
}

@test "types that are not directories replace each other" {
	mkdir d
	echo x >s/1
	ln -s t s/2
	mkfifo s/3
	ln -s elsewhere d/1
	echo y >d/2
	echo z >d/3
	run stagetool copy s d
	status_is 0
	same_tree s d
	[ ! -e elsewhere ]
	[ ! -e d/elsewhere ]
}

@test "what is equal is left alone, what differs is replaced" {
	for name in same size time mode; do
		echo "$name 1" >"s/$name"
	done
	ln -s here s/link
	ln -s here s/relink
	mkfifo s/pipe
	stagetool copy s d
	stat -c '%n %i' d/* >before
	echo "size 12" >s/size
	touch -r d/size s/size
	touch -d '2020-01-01 00:00:00.000000001' s/time
	chmod 700 s/mode
	ln -sfn there s/relink
	stagetool copy s d
	same_tree s d
	diff before <(stat -c '%n %i' d/*) | sed -n 's/^> d\/\([a-z]*\) .*/\1/p' >replaced
	[ "$(tr '\n' ' ' <replaced)" = "mode relink size time " ]
}

@test "a second run copies nothing and says so" {
	mkdir s/a
	echo x >s/a/f
	ln s/a/f s/g
	ln -s f s/l
	mkfifo s/p
	stagetool copy s d
	run stagetool copy s d
	status_is 0
	says "copied 0 files"
	says "4 unchanged"
}

@test "a mode or an owner alone is a difference" {
	need_root
	echo x >s/f
	echo x >s/g
	stagetool copy s d
	chown 1:2 s/f
	chmod 600 s/g
	stagetool copy s d
	[ "$(stat -c '%u:%g %a' d/f d/g | tr '\n' ' ')" = "1:2 644 0:0 600 " ]
}

@test "an old file that is being read keeps its content" {
	echo old >d
	exec 8<d
	echo newer >s/f
	stagetool copy s/f d
	[ "$(cat <&8)" = old ]
	[ "$(cat d)" = newer ]
	exec 8<&-
}

@test "names of other hard links of what is replaced keep their content" {
	mkdir d
	echo old >d/f
	ln d/f other
	echo newer >s/f
	stagetool copy s d
	[ "$(cat other)" = old ]
	[ "$(cat d/f)" = newer ]
}

@test "--checksum finds what size and time hide" {
	echo aaaa >s/f
	echo cccc >s/g
	stagetool copy s d
	printf 'bbbb\n' | dd of=s/f conv=notrunc status=none
	touch -r d/f s/f
	run stagetool copy s d
	says "2 unchanged"
	run stagetool copy --checksum s d
	status_is 0
	says "copied 1 file,"
	says "1 unchanged"
	cmp s/f d/f
	head -c 3M /dev/urandom >s/f
	stagetool copy s d
	printf X | dd of=d/f bs=1 seek=3145727 conv=notrunc status=none
	touch -r s/f d/f
	stagetool copy --checksum s d
	cmp s/f d/f
	stagetool copy s/f one
	printf X | dd of=one bs=1 seek=7 conv=notrunc status=none
	touch -r s/f one
	stagetool copy --checksum s/f one
	cmp s/f one
}

@test "--verify says that it did" {
	head -c 5M /dev/urandom >s/f
	run stagetool copy --verify s d
	status_is 0
	says "copied and verified 1 file"
	cmp s/f d/f
}

@test "--durable copies the same" {
	mkdir s/a
	echo x >s/a/f
	run stagetool copy --durable s d
	status_is 0
	same_tree s d
}

@test "every engine copies the same, or says that it can not" {
	head -c 3000001 /dev/urandom >s/f
	echo x >s/g
	truncate -s 5M s/hole
	for engine in reflink copy_file_range direct readwrite; do
		run stagetool copy --engine="$engine" s "d.$engine"
		if [ "$engine" = reflink ] && [ "$status" -ne 0 ]; then
			says "s/f"
			no_temporaries "d.$engine"
			[ ! -e "d.$engine/f" ]
			continue
		fi
		status_is 0
		same_tree s "d.$engine"
	done
}

@test "--include and --exclude: the last match wins" {
	mkdir -p s/keep s/drop/deep
	touch s/a.c s/a.o s/keep/b.o s/drop/c.c s/drop/deep/d.c
	stagetool copy --exclude='*.o' --exclude=drop/ s d1
	[ "$(cd d1 && find . | sort | tr '\n' ' ')" = ". ./a.c ./keep " ]
	stagetool copy --exclude='*.o' --include='keep/*.o' s d2
	[ -e d2/keep/b.o ]
	[ ! -e d2/a.o ]
	stagetool copy --include='*.c' s d3
	[ "$(cd d3 && find . -type f | sort | tr '\n' ' ')" = "./a.c ./drop/c.c ./drop/deep/d.c " ]
	[ ! -e d3/keep ]
}

@test "a pattern that can not be one is wrong usage" {
	run stagetool copy --include= s d
	status_is 2
	[ ! -e d ]
}

@test "--max-bytes stops before more is written" {
	head -c 100K /dev/zero | tr '\0' x >s/1
	cp s/1 s/2
	cp s/1 s/3
	run stagetool copy --max-bytes=150K s d
	status_is 4
	[ "$(find d -type f | wc -l)" -le 1 ]
	no_temporaries d
	run stagetool copy --max-bytes=300K s e
	status_is 0
	run stagetool copy --max-bytes=150K s/1 s/2 g
	status_is 4
	for value in 0 x -5 ""; do
		run stagetool copy --max-bytes="$value" s h
		status_is 2
		says "--max-bytes"
		[ ! -e h ]
	done
}

@test "special bits are dropped and reported, and kept when root asks" {
	need_root
	cp /bin/true s/t
	chmod 6755 s/t
	run stagetool copy s d
	status_is 0
	says "s/t"
	[ "$(stat -c %a d/t)" = 755 ]
	run stagetool copy s d
	says "copied 0 files"
	run stagetool copy --keep-special-bits s d
	status_is 0
	[ "$(stat -c %a d/t)" = 6755 ]
}

@test "--keep-special-bits is for root" {
	need_root
	give_user
	run as_user "$STAGETOOL" copy --keep-special-bits s d
	status_is 2
	says "for root"
	[ ! -e d ]
}

@test "an ordinary user's tree arrives, read-only directories and all" {
	need_root
	mkdir -p s/a/b
	echo x >s/a/b/f
	chmod -R a-w s/a
	give_user
	run as_user "$STAGETOOL" copy s d
	status_is 0
	[ "$(stat -c %a d/a/b d/a/b/f | tr '\n' ' ')" = "555 444 " ]
	run as_user "$STAGETOOL" copy s d
	status_is 0
	says "copied 0 files"
}

@test "a user's copy of other people's files is the user's" {
	need_root
	echo x >s/f
	mkdir d
	chown 65534:65534 d
	cp "$STAGETOOL" tool
	run as_user ./tool copy s d/
	status_is 0
	[ "$(stat -c %u:%g d/s d/s/f | tr '\n' ' ')" = "65534:65534 65534:65534 " ]
}

@test "sockets and devices are skipped and named, the rest is copied" {
	need_root
	mknod s/null c 1 3
	echo x >s/f
	run stagetool copy s d
	status_is 0
	says "s/null"
	says "1 socket or device skipped"
	[ ! -e d/null ]
	cmp s/f d/f
}

@test "deeper than PATH_MAX, and names of 255 bytes" {
	need python3
	python3 - <<-'END'
		import os
		os.chdir("s")
		for i in range(40):
		    os.mkdir("n" * 255)
		    os.chdir("n" * 255)
		open("f" * 255, "w").write("deep")
		os.symlink("t" * 4000, "l")
	END
	run stagetool copy s d
	status_is 0
	run stagetool copy --checksum s d
	status_is 0
	says "copied 0 files"
	says "2 unchanged"
	python3 - <<-'END'
		import os
		os.chdir("d")
		for i in range(40):
		    os.chdir("n" * 255)
		assert open("f" * 255).read() == "deep"
		assert os.readlink("l") == "t" * 4000
	END
}

@test "sparse files stay sparse, and holes are not counted" {
	truncate -s 64M s/hole
	truncate -s 64M s/island
	head -c 5000 /dev/urandom | dd of=s/island bs=1 seek=33M conv=notrunc status=none
	run stagetool copy s d
	status_is 0
	cmp s/hole d/hole
	cmp s/island d/island
	[ "$(du -k d/hole | cut -f1)" -eq 0 ]
	[ "$(du -k d/island | cut -f1)" -le 128 ]
	says_not "128.0 MiB"
}

@test "modes do not depend on the umask" {
	mkdir -m 777 s/d
	touch s/d/f
	chmod 666 s/d/f
	(umask 077 && stagetool copy s d)
	same_tree s d
}

@test "few file descriptors are enough for a wide and deep tree" {
	for i in $(seq 30); do
		mkdir -p "s/$i/a/b/c/d/e/f/g"
		(cd "s/$i/a/b/c/d/e/f/g" && seq 20 | xargs touch)
	done
	(ulimit -n 40 && "$STAGETOOL" copy --threads=32 s d)
	same_tree s d
	run bash -c "ulimit -n 40 && exec '$STAGETOOL' copy --threads=32 s d"
	status_is 0
	says "copied 0 files"
}

@test "little memory is an error, not a loss" {
	sanitized && skip "needs the memory itself"
	seq 2000 | (cd s && xargs touch)
	for kib in 20000 40000 80000 160000; do
		rm -rf d
		status=0
		(ulimit -v $kib && "$STAGETOOL" copy --threads=4 s d 2>err) || status=$?
		[ "$status" -le 3 ]
		if [ "$status" -eq 0 ]; then
			same_tree s d
		else
			[ -s err ]
		fi
	done
}

@test "the result as JSON: one line, with every count and problem" {
	need python3
	echo x >s/f
	ln -s f s/l
	mkdir s/d
	touch $'s/bad\xff'
	mkdir -p d/$'bad\xff'
	run stagetool copy --json -q s d
	status_is 3
	stagetool copy --json -q s d >out 2>/dev/null || true
	[ "$(wc -l <out)" -eq 1 ]
	python3 - out <<-'END'
		import json, sys
		r = json.load(open(sys.argv[1], encoding="utf-8"))
		assert r["verb"] == "copy" and r["status"] == 3, r
		assert r["from"] == ["s"] and r["to"] == "d", r
		assert r["files"] == 0 and r["unchanged"] == 2 and r["failed"] == 1, r
		assert r["problems_unnamed"] == 0 and len(r["problems"]) == 1, r
		p = r["problems"][0]
		assert p["path"] == "s/bad\\xff" and bytes.fromhex(p["path_hex"]) == b"s/bad\xff", p
		assert "error" not in r
	END
	stagetool copy --json -q nosuch d >out 2>/dev/null || true
	python3 - out <<-'END'
		import json, sys
		r = json.load(open(sys.argv[1]))
		assert r["status"] == 1 and "nosuch" in r["error"], r
	END
}

@test "-q: problems only; the default: one line" {
	echo x >s/f
	run stagetool copy -q s d
	status_is 0
	[ -z "$output" ]
	run stagetool copy s e
	[ "${#lines[@]}" -eq 1 ]
	says "copied 1 file, 2 B in"
	run stagetool copy -v s e
	says_not "s/f: copied"
	echo longer >s/f
	run stagetool copy -v s e
	says "s/f: copied"
	mkdir g g/f
	run stagetool copy -q s g
	status_is 3
	says "s/f"
}
