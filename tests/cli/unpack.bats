#!/usr/bin/env bats
# stagetool unpack: every format, compared with GNU tar and bsdtar; what is refused; damage.

load helpers

# A tree with all that a tar archive can carry.
odd_tree() {
	mkdir -p "$1/a/b" "$1/empty" "$1/ro"
	echo one >"$1/a/b/f"
	: >"$1/zero"
	head -c 300000 /dev/urandom >"$1/large"
	head -c 131072 /dev/urandom >"$1/edge"
	ln "$1/a/b/f" "$1/a/g"
	ln "$1/a/b/f" "$1/hard"
	ln -s a/b "$1/l"
	ln -s /nowhere/at/all "$1/dangling"
	mkfifo "$1/p"
	truncate -s 5M "$1/hole-at-end"
	echo data | dd of="$1/hole-at-end" bs=1 seek=2M conv=notrunc status=none
	echo r >"$1/ro/f"
	chmod 640 "$1/a/b/f"
	chmod 555 "$1/ro"
	touch -d '1960-01-02 03:04:05.123456789' "$1/zero"
	touch -d '2100-02-03 04:05:06.5' "$1/large"
	touch -h -d '2001-02-03 04:05:06.789012345' "$1/l" "$1/a/b" "$1/empty" "$1"
}

# Writes a tar archive of "TYPE NAME LINKNAME CONTENT" words, by Python's tarfile: what no tool would write.
make_tar() {
	python3 -c '
import io, sys, tarfile
out = tarfile.open(sys.argv[1], "w")
for i in range(2, len(sys.argv), 4):
    kind, name, link, data = sys.argv[i:i + 4]
    info = tarfile.TarInfo(name)
    info.type = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE,
                 "c": tarfile.CHRTYPE, "s": tarfile.REGTYPE}[kind]
    info.mode = {"d": 0o755, "l": 0o777, "s": 0o4755}.get(kind, 0o644)
    info.linkname, info.size = link, len(data)
    out.addfile(info, io.BytesIO(data.encode()))
out.close()' "$@"
}

# What unpack makes of $1 is what $2... (a tar command with -C) makes of it.
same_as() {
	local archive=$1
	shift
	mkdir theirs
	"$@" -C theirs -f "$archive"
	run stagetool unpack "$archive" ours
	status_is 0
	same_tree theirs ours
	rm -rf ours
	chmod -R u+w theirs && rm -rf theirs
}

@test "pax: all that a tree has arrives" {
	odd_tree s
	setfattr -n user.k -v v s/a/b/f
	setfacl -m u:1:rwx,g:2:r s/a/g
	setfacl -d -m u:1:rx,m::rx s/empty
	touch -d 1960-01-02 s/zero # it writes fractions before 1970 as if they went forward
	bsdtar --format=pax --xattrs --acls -cf a.tar -C s .
	run stagetool unpack a.tar d
	status_is 0
	same_tree s d
	diff <(cd s && getfacl -pcn a/g empty) <(cd d && getfacl -pcn a/g empty)
	[ "$(stat -c %b d/hole-at-end)" -lt 100 ]
}

@test "GNU tar: xattrs, ACLs, sparse files in all their versions" {
	odd_tree s
	setfattr -n user.k -v v s/a/b/f
	setfacl -m u:1:rwx s/a/g
	for version in 0.0 0.1 1.0; do
		tar --format=pax --sparse --sparse-version=$version --xattrs --acls -cf a.tar -C s .
		run stagetool unpack a.tar d
		status_is 0
		same_tree s d
		diff <(getfacl -pcn s/a/g) <(getfacl -pcn d/a/g)
		[ "$(stat -c %b d/hole-at-end)" -lt 100 ]
		rm -rf d
	done
}

@test "v7, ustar, gnu, pax: as GNU tar and bsdtar unpack them" {
	odd_tree s
	touch -d 2001-01-01 s/zero s/large
	rm s/p
	for format in v7 ustar gnu pax; do
		tar --format=$format --sparse -cf a.tar -C s . 2>/dev/null || tar --format=$format -cf a.tar -C s .
		same_as a.tar tar -xp
	done
	bsdtar --format=ustar -cf a.tar -C s .
	same_as a.tar bsdtar -xp
	bsdtar --format=gnutar -cf a.tar -C s .
	same_as a.tar bsdtar -xp
}

@test "gzip, bzip2, xz, zstd, lz4, lzma, compress, and several frames" {
	odd_tree s
	touch -d 1960-01-02 s/zero
	tar --format=pax -cf a.tar -C s .
	for filter in gzip bzip2 xz lzma zstd lz4 compress; do
		bsdtar --format=pax --$filter -cf a.$filter -C s .
		run stagetool unpack a.$filter d
		status_is 0
		same_tree s d
		rm -rf d
	done
	for filter in gzip zstd lz4; do
		head -c 100000 a.tar | $filter -c >two
		tail -c +100001 a.tar | $filter -c >>two
		run stagetool unpack two d
		status_is 0
		same_tree s d
		rm -rf d
	done
	gzip -c a.tar >padded
	truncate -s +1000 padded
	run stagetool unpack padded d
	status_is 0
}

@test "cpio newc and odc, in find's order and in depth's: links get the bytes that come last" {
	odd_tree s
	touch -d 2001-01-01 s/zero s/large
	find s -exec touch -h -d 2001-01-01 {} +
	for format in newc odc; do
		for order in "" -depth; do
			# shellcheck disable=SC2086
			(cd s && find . $order | cpio -o -H $format 2>/dev/null) >a.cpio
			run stagetool unpack a.cpio d
			status_is 0
			same_tree s d
			[ "$(stat -c %h d/a/b/f)" -eq 3 ]
			rm -rf d
		done
	done
}

@test "zip, 7z and ISO" {
	mkdir -p s/a
	echo one >s/a/f
	head -c 300000 /dev/urandom >s/large
	ln -s a/f s/l
	find s -exec touch -h -d '2001-02-03 04:05:06' {} +
	bsdtar --format=zip -cf a.zip -C s .
	same_as a.zip bsdtar -xp
	bsdtar --format=7zip -cf a.7z -C s .
	same_as a.7z bsdtar -xp
	bsdtar --format=iso9660 -cf a.iso -C s .
	run stagetool unpack a.iso d
	status_is 0
	diff -r s d
	rm -rf d
	# by a pipe, from which nothing can be sought
	run bash -c "cat a.zip | '$STAGETOOL' unpack - d"
	status_is 0
	cmp s/large d/large
	cmp s/a/f d/a/f
}

@test "it is read once, and never sought on" {
	need strace
	odd_tree s
	tar --format=pax -cf a.tar -C s .
	zstd -q a.tar
	for archive in a.tar a.tar.zst; do
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -y -e trace=read,pread64,lseek,copy_file_range,sendfile -o trace "$STAGETOOL" unpack $archive d
		[ "$(grep -F "/$archive>" trace | grep -c lseek)" -eq 0 ]
		# each byte once, and in order
		grep -F "/$archive>" trace | grep -oE '[0-9]+\) += [0-9]+$' |
			awk -v size="$(stat -c %s $archive)" '{
				if ($1 + 0 != at + 0) { print "read at " $1 ", expected " at; bad = 1 }
				at += $3
			} END { exit bad || at != size }'
		rm -rf d
	done
}

@test "standard input, and a pipe" {
	odd_tree s
	tar --format=pax --zstd -cf a.tar.zst -C s .
	run bash -c "'$STAGETOOL' unpack - d <a.tar.zst"
	status_is 0
	same_tree s d
	run bash -c "cat a.tar.zst | '$STAGETOOL' unpack - e"
	status_is 0
	same_tree s e
}

@test "names are bytes, whatever the locale: tar, pax, cpio, zip" {
	python3 -c '
import os
for name in [b"plain", b"bad\xff\xfename", b"lat\xe9", "gr\u00fc\u00df".encode(), "e\u0301tude".encode(),
             "\u00e9tude".encode(), b"new\nline"]:
    open(b"s/" + name, "wb").write(name)
os.symlink(b"to\xff", b"s/ln\xfe")
os.link(b"s/bad\xff\xfename", b"s/hard\xff")'
	tar --format=gnu -cf gnu.tar -C s .
	tar --format=pax -cf pax.tar -C s .
	bsdtar --format=pax -cf bsd.tar -C s .
	(cd s && find . -print0 | cpio -0 -o -H newc 2>/dev/null) >a.cpio
	for locale in C C.UTF-8; do
		for archive in gnu.tar pax.tar bsd.tar a.cpio; do
			LC_ALL=$locale stagetool unpack $archive d
			diff <(cd s && find . | LC_ALL=C sort) <(cd d && find . | LC_ALL=C sort)
			diff -r --no-dereference s d
			rm -rf d
		done
	done
}

@test "zip: names that do not say what they are come as they are" {
	need zip
	python3 -c '
for name in [b"bad\xff\xfename", "gr\u00fc\u00df".encode()]:
    open(b"s/" + name, "wb").write(name)'
	(cd s && LC_ALL=C zip -qr ../a.zip .)
	for locale in C C.UTF-8; do
		LC_ALL=$locale stagetool unpack a.zip d
		diff -r s d
		rm -rf d
	done
}

@test "zip: two names that libarchive makes one are not silently one" {
	python3 -c '
import zipfile
with zipfile.ZipFile("a.zip", "w") as z:
    z.writestr("e\u0301tude", "1")
    z.writestr("\u00e9tude", "2")'
	run stagetool unpack a.zip d
	status_is 3
	says "differs in composed characters"
}

@test "of several members of one name the last one wins" {
	make_tar a.tar f x "" one f y "" other f x "" two l z x "" f z "" three f x "" "the last"
	run stagetool unpack a.tar d
	status_is 0
	[ "$(cat d/x d/y d/z)" = "the lastotherthree" ]
	[ ! -L d/z ]
	# the same, many times over, with all threads
	args=()
	for i in $(seq 300); do args+=(f "x$((i % 7))" "" "$i"); done
	make_tar b.tar "${args[@]}"
	stagetool unpack --threads=8 b.tar e
	for i in $(seq 294 300); do [ "$(cat e/x$((i % 7)))" = "$i" ]; done
}

@test "a link to a member that is replaced later keeps the earlier bytes" {
	make_tar a.tar f x "" one h y x "" f x "" two
	stagetool unpack a.tar d
	[ "$(cat d/y d/x)" = onetwo ]
}

@test "directories that have no entry of their own are made; their entries may come last" {
	make_tar a.tar f p/q/f "" x d p/q "" "" d p "" ""
	(umask 027 && stagetool unpack a.tar d)
	[ "$(stat -c %a d/p/q d/p | xargs)" = "755 755" ]
	make_tar b.tar f p/q/f "" x
	(umask 027 && stagetool unpack b.tar e)
	[ "$(stat -c %a e/p/q e/p e | xargs)" = "750 750 750" ]
}

@test "nothing leaves the target: each is refused by name, the rest is there" {
	echo v >victim
	chmod 600 victim
	mkdir out
	make_tar a.tar f ../victim "" EVIL f "$PWD/victim" "" EVIL f a/../../victim "" EVIL h h ../victim "" \
		f h "" FINE l k ../victim "" f k "" FINE l up .. "" f up/victim "" EVIL l o "$PWD/out" "" \
		f o/f "" EVIL d o/sub "" "" h hh "$PWD/victim" "" f good "" FINE
	run stagetool unpack a.tar d
	status_is 3
	for name in ../victim "$PWD/victim" a/../../victim up/victim o/f hh; do says ": $name: "; done
	[ "$(cat victim)" = v ]
	[ "$(stat -c '%a %h' victim)" = "600 1" ]
	[ -z "$(ls out)" ]
	[ "$(cat d/good d/h d/k)" = FINEFINEFINE ]
	[ ! -L d/k ] && [ -L d/up ] && [ -L d/o ]
	[ "$(stat -c %a out)" != 777 ]
}

@test "a symlink that was there before is not gone through" {
	mkdir d out
	ln -s ../out d/sub
	ln -s ../out/f d/f
	make_tar a.tar f sub/x "" EVIL f f "" FINE
	run stagetool unpack a.tar d
	status_is 3
	says "sub/x"
	[ -z "$(ls out)" ]
	[ "$(cat d/f)" = FINE ] && [ ! -L d/f ]
}

@test "C01: the links of an archive do not reach a file outside" {
	echo v >v
	chmod 600 v
	make_tar b.tar h h ../v "" f h "" EVIL l k ../v "" f k "" EVIL
	run stagetool unpack b.tar d
	status_is 3
	[ "$(cat v)" = v ]
	[ "$(stat -c '%a %h' v)" = "600 1" ]
}

@test "C06: setuid is dropped, a device refused, and both are said" {
	make_tar a.tar s su "" x c dev "" "" f f "" x
	run stagetool unpack a.tar d
	status_is 0
	says "dev: a device is not unpacked"
	says "without setuid"
	[ "$(stat -c %a d/su)" = 755 ]
	[ ! -e d/dev ] && [ -e d/f ]
}

@test "S07: a bomb stops at --max-bytes, and nothing is left" {
	truncate -s 1G z
	bsdtar --no-read-sparse -czf b.tgz z
	run stagetool unpack --max-bytes=10M b.tgz d
	status_is 4
	[ ! -e d ]
	mkdir e
	echo mine >e/f
	run stagetool unpack --max-bytes=10M b.tgz e
	status_is 4
	[ "$(ls -A e)" = f ]
	args=()
	for i in $(seq 200); do args+=(f "x$i" "" "$(printf '%01000d' 0)"); done
	make_tar many.tar "${args[@]}"
	run stagetool unpack --max-bytes=100K many.tar d
	status_is 4
	[ ! -e d ]
}

@test "what does not fit: bytes and inodes" {
	need_mounts
	mkdir mnt
	head -c 2M /dev/urandom >s/big
	tar -cf a.tar -C s .
	run on_tmpfs mnt size=1M "$STAGETOOL" unpack a.tar mnt/d
	status_is 4
	says_not "ls: d"
	rm s/big
	(cd s && seq 100 | xargs touch)
	tar -cf a.tar -C s .
	run on_tmpfs mnt nr_inodes=50 "$STAGETOOL" unpack a.tar mnt/d
	status_is 4
	says inodes
	says_not "ls: d"
}

@test "cut off: the member and the byte are named, no half file is there" {
	echo x >s/a
	head -c 3M /dev/urandom >s/b
	tar -cf a.tar -C s a b
	tar -czf a.tgz -C s a b
	for archive in a.tar a.tgz; do
		head -c 1M $archive >part
		run stagetool unpack part d
		status_is 1
		says "part: b: "
		says "of the archive"
		[ "$(ls -A d)" = a ]
		rm -rf d
	done
	# exactly between two members: a plain tar archive has to say that it is at its end
	head -c 1024 a.tar >part
	run stagetool unpack part d
	status_is 1
	says "cut off"
}

@test "damaged: the checksums of formats and compressions are looked at" {
	head -c 300000 /dev/urandom >s/f
	tar -cf a.tar -C s .
	bsdtar --format=zip --options zip:compression=store -cf a.zip -C s .
	bsdtar --format=7zip --options 7zip:compression=store -cf a.7z -C s .
	gzip -c a.tar >a.gz
	xz -c a.tar >a.xz
	zstd -qc --check a.tar >a.zst
	lz4 -qc a.tar >a.lz4
	bzip2 -c a.tar >a.bz2
	for archive in a.zip a.7z a.gz a.xz a.zst a.lz4 a.bz2; do
		stagetool unpack $archive d
		cmp s/f d/f
		rm -rf d
		printf XYZ | dd of=$archive bs=1 seek=150000 conv=notrunc status=none
		run stagetool unpack $archive d
		[ "$status" -ne 0 ] || { echo "$archive"; false; }
		says "at byte"
		case $archive in a.zip | a.7z) [ ! -e d/f ] ;; esac
		rm -rf d
	done
	# what says so only at its end: the last bytes of the checksum
	tar -czf a.tgz -C s .
	printf X | dd of=a.tgz bs=1 seek=$(($(stat -c %s a.tgz) - 6)) conv=notrunc status=none
	run stagetool unpack a.tgz d
	status_is 1
	says "incorrect"
}

@test "what is no archive" {
	echo "just a text" >f
	run stagetool unpack f d
	status_is 1
	says "f: "
	: >empty
	run stagetool unpack empty d
	status_is 1
	says "empty"
	run stagetool unpack s d
	status_is 1
	says directory
	run stagetool unpack nothing d
	status_is 1
	[ ! -e d ]
}

@test "what is in the way: files are replaced whole, directories are not" {
	mkdir -p d/x d/y
	echo old >d/f
	echo keep >d/x/keep
	make_tar a.tar f f "" new f x "" file d f2 "" "" f y/z "" new
	run stagetool unpack a.tar d
	status_is 3
	says "x: "
	[ "$(cat d/f d/x/keep d/y/z)" = $'newkeep\nnew' ]
	no_temporaries d
}

@test "--include and --exclude" {
	mkdir -p s/a/b
	touch s/a/b/f.c s/a/f.h s/g.c
	ln s/a/f.h s/a/h.c
	tar --sort=name -cf a.tar -C s .
	run stagetool unpack --include='*.c' --exclude=g.c a.tar d
	[ -e d/a/b/f.c ] && [ ! -e d/g.c ] && [ ! -e d/a/f.h ]
	run stagetool unpack --exclude=a a.tar e
	status_is 0
	[ "$(ls -A e)" = g.c ]
}

@test "an ordinary user: what is read-only arrives, owners are theirs, nothing is left open" {
	need_root
	odd_tree s
	tar --format=pax -cf a.tar -C s .
	give_user
	run as_user "$STAGETOOL" unpack a.tar d
	status_is 0
	diff -r --no-dereference -x p s d
	[ "$(stat -c %a d/ro)" = 555 ]
	[ "$(stat -c %U d/ro/f)" = nobody ]
}

@test "memory stays flat: a large member, and many small ones" {
	[ -z "${STAGETOOL_SANITIZER:-}" ] || skip "a sanitizer has memory of its own"
	truncate -s 400M z
	bsdtar --no-read-sparse -cf - z | gzip -1 >b.tgz
	with_peak "$STAGETOOL" unpack -q b.tgz d
	[ "$(cat peak)" -lt 81920 ]
	cmp z d/z
	(cd s && for i in $(seq 40); do mkdir "$i" && (cd "$i" && seq 500 | xargs touch); done)
	tar -cf a.tar -C s .
	with_peak "$STAGETOOL" unpack -q a.tar e
	[ "$(cat peak)" -lt 81920 ]
	[ "$(find e -type f | wc -l)" -eq 20000 ]
}

@test "--json says what there is" {
	need jq
	make_tar a.tar f f "" hello f ../x "" x
	run bash -c "'$STAGETOOL' unpack --json a.tar d 2>/dev/null"
	status_is 3
	[ "$(jq -r '.verb, .status, .archive, .to' <<<"$output" | xargs)" = "unpack 3 a.tar d" ]
}

@test "stopped: no temporary is left, and what is there is whole" {
	head -c 8M /dev/urandom >s/big
	tar -cf a.tar -C s .
	mkfifo pipe
	"$STAGETOOL" unpack - d <pipe 2>/dev/null &
	pid=$!
	exec 9>pipe
	head -c 4M a.tar >&9
	wait_until test -d d
	kill -TERM $pid
	exec 9>&-
	run wait $pid
	[ "$status" -ne 0 ]
	[ ! -e d/big ]
	[ ! -d d ] || no_temporaries d
}
