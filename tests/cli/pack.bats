#!/usr/bin/env bats
# stagetool pack: what other tools make of its archives, and it of its own; what is not in them.

load helpers

# A tree with all that a tar archive can carry.
odd_tree() {
	mkdir -p "$1/a/b" "$1/empty" "$1/ro"
	echo one >"$1/a/b/f"
	: >"$1/zero"
	head -c 300000 /dev/urandom >"$1/large"
	head -c 131072 /dev/urandom >"$1/edge"
	ln "$1/a/b/f" "$1/a/g"
	ln "$1/large" "$1/hard"
	ln -s a/b "$1/l"
	ln -s /nowhere/at/all "$1/dangling"
	mkfifo "$1/p"
	truncate -s 5M "$1/hole-at-end" "$1/all-hole"
	echo data | dd of="$1/hole-at-end" bs=1 seek=2M conv=notrunc status=none
	echo r >"$1/ro/f"
	chmod 640 "$1/a/b/f"
	chmod 555 "$1/ro"
	touch -d '1960-01-02 03:04:05.123456789' "$1/zero"
	touch -d '2100-02-03 04:05:06.5' "$1/large"
	python3 -c '
import os, sys
for name in [b"bad\xff\xfename", "gr\u00fc\u00df".encode(), "e\u0301".encode(), b"new\nline", b"x" * 255]:
    open(sys.argv[1].encode() + b"/" + name, "wb").write(name)' "$1"
	setfattr -n user.k -v v "$1/a/b/f"
	setfattr -n user.binary -v 0x00ff0a "$1/empty"
	setfacl -m u:1:rwx,g:2:r "$1/a/g"
	setfacl -d -m u:1:rx,m::rx "$1/empty"
	touch -h -d '2001-02-03 04:05:06.789012345' "$1/l" "$1/a/b" "$1/empty" "$1"
}

acls() {
	(cd "$1" && getfacl -pcn a/g empty)
}

@test "packed and unpacked again it is the same: tar, tar.gz, tar.zst" {
	odd_tree s
	for format in tar tar.gz tar.zst; do
		run stagetool pack s a.$format
		status_is 0
		no_temporaries .
		stagetool unpack a.$format d
		same_tree s d
		[ "$(stat -c '%a %Y' s)" = "$(stat -c '%a %Y' d)" ]
		diff <(acls s) <(acls d)
		[ "$(stat -c %b d/hole-at-end d/all-hole | sort -n | tail -n 1)" -lt 100 ]
		rm -rf d
	done
	zstd -qt a.tar.zst
	gzip -t a.tar.gz
	[ "$(stat -c %s a.tar.gz)" -lt "$(stat -c %s a.tar)" ]
	[ "$(stat -c %s a.tar)" -lt 2000000 ]
}

@test "GNU tar and bsdtar make the same tree of it, and do not complain" {
	odd_tree s
	stagetool pack s a.tar.zst
	mkdir gnu bsd
	run tar --xattrs --acls --warning=no-timestamp --warning=no-unknown-keyword \
		-xpf a.tar.zst -C gnu
	status_is 0
	[ -z "$output" ]
	same_tree s gnu
	diff <(acls s) <(acls gnu)
	# it reads fractions of seconds before 1970 as if they went forward
	touch -d 1960-01-02 s/zero
	touch -h -d '2001-02-03 04:05:06.789012345' s
	stagetool pack s a.tar.zst
	run bsdtar --xattrs --acls -xpf a.tar.zst -C bsd
	status_is 0
	same_tree s bsd
	diff <(acls s) <(acls bsd)
}

@test "what GNU tar packed comes out of unpack and pack unchanged" {
	odd_tree s
	tar --format=pax --xattrs --acls --sparse -cf a.tar -C s .
	stagetool unpack a.tar d
	stagetool pack d b.tar
	mkdir e
	tar --xattrs --acls -xpf b.tar -C e
	same_tree s e
}

@test "zip: what it can carry arrives, what it can not is said" {
	need unzip
	mkdir s/a
	echo one >s/a/f
	head -c 300000 /dev/urandom >s/large
	ln s/a/f s/hard
	ln -s a/f s/l
	mkfifo s/p
	setfattr -n user.k -v v s/a/f
	run stagetool pack s a.zip
	status_is 0
	says "zip can not carry hard links: 1 names"
	says "zip can not carry extended attributes"
	says "a FIFO is not packed"
	stagetool unpack a.zip d
	rm s/p
	diff -r --no-dereference s d
	mkdir e
	unzip -q a.zip -d e
	diff -r --no-dereference s e
}

@test "the order depends on the names only, and so do the bytes" {
	mkdir -p s/b s/a.d s/a
	for i in $(seq 300); do echo "$i" >"s/b/$i"; done
	touch s/a/z s/a.d/y s/c
	stagetool pack s one.tar.zst
	cp -a s t
	stagetool pack --threads=1 t two.tar.zst
	cmp one.tar.zst two.tar.zst
	diff <(tar -tf one.tar.zst | sed 's,/$,,;s,^\./*,,' | sed 1d) <(cd s && python3 -c '
import os
def walk(path):
    for name in sorted(os.listdir(path or "."), key=os.fsencode):
        below = os.path.join(path, name)
        print(below)
        if os.path.isdir(below): walk(below)
walk("")')
}

@test "it appears whole and durable under its name, in place of what was there" {
	need strace
	echo x >s/f
	echo old >a.tar
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -o log \
		-e trace=fsync,rename,renameat,renameat2,linkat "$STAGETOOL" pack s a.tar
	awk '/fsync/ { f++ } /rename/ { if (f != 1) bad = 1; r++ } END { exit bad || r != 1 || f != 2 }' log
	tar -tf a.tar | grep -qx f
	mkdir b.tar
	run stagetool pack s b.tar
	status_is 1
	no_temporaries .
}

@test "an archive in the tree that it is of does not hold itself" {
	echo x >s/f
	stagetool pack s s/a.tar
	run stagetool pack s s/a.tar
	status_is 0
	[ "$(tar -tf s/a.tar | xargs)" = "./ f" ]
}

@test "--include and --exclude: directories on the way are in it with their attributes" {
	mkdir -p s/a/b s/c
	touch s/a/b/f.c s/a/f.h s/c/g.h
	chmod 711 s/a
	stagetool pack --include='*.c' s a.tar
	[ "$(tar -tf a.tar | xargs)" = "./ a/ a/b/ a/b/f.c" ]
	tar -tvf a.tar | grep -q '^drwx--x--x.* a/$'
	stagetool pack --exclude=b s b.tar
	[ "$(tar -tf b.tar | xargs)" = "./ a/ a/f.h c/ c/g.h" ]
}

@test "what can not be read is named and left out, the others are there" {
	need_root
	mkdir s/closed
	echo x | tee s/f s/secret s/closed/f >/dev/null
	chmod 000 s/secret s/closed
	give_user
	run as_user "$STAGETOOL" pack s a.tar
	status_is 3
	says "s/secret"
	says "s/closed"
	tar -tf a.tar | grep -qx f
	run grep -c secret <(tar -tf a.tar)
	[ "$output" = 0 ]
}

@test "sockets and devices are named" {
	need_root
	mknod s/null c 1 3
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s/sock")'
	echo x >s/f
	run stagetool pack s a.tar
	says "s/null: a device is not packed"
	says "s/sock: a socket is not packed"
	[ "$(tar -tf a.tar | xargs)" = "./ f" ]
}

@test "a large file that changes while it is read: no archive" {
	mkfifo s.ready
	truncate -s 3G s/large # holes are passed over quickly, but not at once
	echo x >s/a
	(for i in $(seq 200); do echo "$i" >>s/large; sleep 0.01; done) &
	run stagetool pack s a.tar
	kill $! 2>/dev/null || true
	status_is 1
	says "large"
	[ ! -e a.tar ]
	no_temporaries .
}

@test "what does not fit: no archive, and no temporary" {
	need_mounts
	head -c 3M /dev/urandom >s/f
	mkdir mnt
	run on_tmpfs mnt size=1M "$STAGETOOL" pack s mnt/a.tar
	status_is 4
	says_not "ls: "
}

@test "wrong words" {
	run stagetool pack s a.rar
	status_is 2
	says ".tar.zst"
	run stagetool pack --format=rar s a.tar
	status_is 2
	run stagetool pack --format=tar.gz s a
	status_is 0
	gzip -t a
	run stagetool pack nothing a.tar
	status_is 1
	run stagetool pack s nothing/a.tar
	status_is 1
	run stagetool pack s .
	status_is 2
}

@test "memory stays flat: many files in one directory, and a large one" {
	[ -z "${STAGETOOL_SANITIZER:-}" ] || skip "a sanitizer has memory of its own"
	(cd s && seq 20000 | xargs touch)
	head -c 200M /dev/zero >s/large
	with_peak "$STAGETOOL" pack -q s a.tar
	[ "$(cat peak)" -lt 81920 ]
	[ "$(tar -tf a.tar | wc -l)" -eq 20002 ]
}

@test "deeper than PATH_MAX" {
	python3 -c '
import os
os.chdir("s")
for i in range(60):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
open("f", "w").write("deep")'
	stagetool pack s a.tar
	stagetool unpack a.tar d
	[ "$(find d -name f -execdir cat {} +)" = deep ]
}
