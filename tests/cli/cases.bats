#!/usr/bin/env bats
# Situations in which other copiers were seen to go wrong in public, each by its number in tests/cases.md.

load helpers

# Stages s in as t of the stage d, so that the tree is at d/t.
stage_in() {
	need_verb in
	stagetool in s:t --dir=d
}

# Changes file $1 again and again until stop_changing.
keep_changing() {
	local file=$1
	shift
	(while [ -e changing ]; do "$@" "$file"; done) >/dev/null 2>&1 &
	changer=$!
	until [ "$file" -nt changing ]; do sleep 0.02; done
}

stop_changing() {
	rm -f changing
	wait "$changer" || true
}

append_line() {
	echo line >>"$1"
}

cut_and_grow() {
	truncate -s 160M "$1"
	truncate -s 256M "$1"
}

# Goes on in memory if it has $1 KiB, as disks need minutes to make and remove a million files.
to_memory() {
	local free
	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
	[ "${free:-0}" -gt "$1" ] || return 0
	cd / && rm -rf "$work"
	work=$(mktemp -d /dev/shm/stagetool-cli.XXXXXX)
	chmod 755 "$work"
	cd "$work" && mkdir s
}

# The ACLs of a tree, in the order of its names.
acls() {
	(cd "$1" && find . -print0 | LC_ALL=C sort -z | xargs -0 getfacl -pn)
}

# ---- metadata

@test "M01: nanosecond times survive, a second run copies nothing" {
	echo x >s/f
	mkdir s/a
	ln -s f s/l
	touch -d '2024-01-02 03:04:05.123456789' s/f s/a
	touch -hd '2024-01-02 03:04:05.999999999' s/l
	stagetool copy s d
	diff <(cd s && stat -c '%.9Y %n' -- * .) <(cd d && stat -c '%.9Y %n' -- * .)
	run stagetool copy s d
	says "copied 0 files"
}

@test "M01: where times are coarser a second run still copies nothing" {
	need_root
	need_mounts
	need mkfs.ext4
	truncate -s 8M image
	mkfs.ext4 -q -I 128 image # whole seconds only
	mkdir m
	echo x >s/f
	touch -d '2024-01-02 03:04:05.123456789' s/f
	# shellcheck disable=SC2016
	run unshare -m bash -c 'mount -o loop image m || exit 99
		"$1" copy s m/d || exit 1
		stat -c %.9Y m/d/f
		"$1" copy s m/d || exit 1
		echo other >s/f
		touch -d "2024-01-02 03:04:06.123456789" s/f
		"$1" copy s m/d && cat m/d/f; umount m' - "$STAGETOOL"
	[ "$status" -ne 99 ] || skip "no loop mounts"
	status_is 0
	says "1704164645.000000000"
	says "copied 0 files"
	says "other"
}

@test "M01: staged in, times survive and a second run stages nothing" {
	echo x >s/f
	touch -d '2024-01-02 03:04:05.123456789' s/f
	stage_in
	[ "$(stat -c %.9Y s/f)" = "$(stat -c %.9Y d/t/f)" ]
	run stage_in
	status_is 0
	says "staged in 0 files"
}

@test "M03: a tree of read-only directories arrives whole for an ordinary user" {
	need_root
	mkdir -p s/a/b
	echo x >s/a/b/f
	chmod -R a-w s/a
	give_user
	run as_user "$STAGETOOL" copy s d
	status_is 0
	[ "$(stat -c %a d/a d/a/b d/a/b/f | tr '\n' ' ')" = "555 555 444 " ]
	cmp s/a/b/f d/a/b/f
	need_verb in
	run as_user "$STAGETOOL" in s:t --dir=e
	status_is 0
	[ "$(stat -c %a e/t/a e/t/a/b e/t/a/b/f | tr '\n' ' ')" = "555 555 444 " ]
	cmp s/a/b/f e/t/a/b/f
}

@test "M03: a change below a read-only directory arrives too" {
	need_root
	mkdir -p s/a
	echo x >s/a/f
	chmod a-w s/a
	give_user
	as_user "$STAGETOOL" copy -q s d
	chmod u+w s/a
	echo longer >s/a/f
	echo new >s/a/g
	chmod a-w s/a
	run as_user "$STAGETOOL" copy s d
	status_is 0
	[ "$(cat d/a/f d/a/g)" = $'longer\nnew' ]
	[ "$(stat -c %a d/a)" = 555 ]
}

@test "M05: a setgid destination gives its group and its bit to what a user puts there" {
	need_root
	mkdir d s/q
	echo x >s/q/f
	give_user
	chgrp -R 200 s # a group that the user is not in
	chgrp 100 d
	chmod 2775 d
	run as_member 100 "$STAGETOOL" copy s d
	status_is 0
	[ "${#lines[@]}" -eq 1 ]
	[ "$(stat -c '%g %a' d d/q d/q/f | tr '\n' ',')" = "100 2755,100 2755,100 644," ]
	run as_member 100 "$STAGETOOL" copy s d
	status_is 0
	says "copied 0 files"
}

@test "M05: a group that the user is not in is not given, without a fuss" {
	need_root
	echo x >s/f
	give_user
	chgrp -R 200 s
	run as_user "$STAGETOOL" copy s d
	status_is 0
	[ "$(stat -c '%g %a' d/f)" = "65534 644" ]
	run as_user "$STAGETOOL" copy s d
	says "copied 0 files"
}

@test "M05: results inherit the group and the bit of a setgid project directory" {
	need_root
	need_verb out
	mkdir -p d stage/q
	echo x >stage/q/f
	give_user
	chgrp -R 200 stage
	chgrp 100 d
	chmod 2775 d
	run as_member 100 "$STAGETOOL" out q:d/ --dir=stage
	status_is 0
	[ "$(stat -c '%g %a' d d/q d/q/f | tr '\n' ',')" = "100 2775,100 2755,100 644," ]
}

@test "M05: elsewhere a group that the user is in is kept, also by a changed file that goes back" {
	need_root
	echo x >s/f
	chmod 664 s/f
	give_user
	chgrp 100 s/f
	as_member 100 "$STAGETOOL" copy s d
	[ "$(stat -c '%g %a' d/f)" = "100 664" ]
	need_verb out
	as_member 100 "$STAGETOOL" in s/f --dir=stage
	as_member 100 sh -c 'echo changed >stage/f'
	as_member 100 "$STAGETOOL" out f:s/f --dir=stage
	[ "$(cat s/f)" = changed ]
	[ "$(stat -c '%g %a' s/f)" = "100 664" ]
}

@test "M05: a group that is refused is an attribute that could not be set: the data is there" {
	need_root
	need strace
	sanitized && skip "strace and a sanitizer"
	echo x >s/f
	give_user
	chgrp -R 100 s
	run as_member 100 strace -f -qq -o /dev/null -e trace=fchown,fchownat,chown,lchown \
		-e inject=fchown,fchownat,chown,lchown:error=EPERM "$STAGETOOL" copy s d
	status_is 3
	says "s/f"
	says "2 attributes not set"
	says_not "failed"
	cmp s/f d/f
}

@test "M05: root gives every owner and group exactly, setgid destination or not" {
	need_root
	mkdir d s/q
	echo x >s/q/f
	chown 3:4 s/q s/q/f
	chgrp 100 d
	chmod 2775 d
	stagetool copy s d/
	[ "$(stat -c '%u:%g' d/s/q d/s/q/f | tr '\n' ' ')" = "3:4 3:4 " ]
}

@test "M06: hard links stay links, across directories and workers" {
	mkdir s/a s/b
	head -c 9M /dev/urandom >s/a/f
	ln s/a/f s/b/f
	for i in $(seq 200); do
		mkdir "s/$i"
		echo "$i" >"s/$i/1"
		ln "s/$i/1" "s/b/$i"
	done
	stagetool copy --threads=16 s d
	same_tree s d
	[ "$(stat -c %i d/a/f)" = "$(stat -c %i d/b/f)" ]
	[ "$(du -sk d | cut -f1)" -lt 13000 ]
}

@test "M06: a link that is missing or astray is put right in a second run" {
	mkdir s/a s/b
	echo x >s/a/f
	ln s/a/f s/b/f
	ln s/a/f s/b/g
	stagetool copy s d
	rm d/b/f
	run stagetool copy s d
	status_is 0
	cmp s/b/f d/b/f
	[ "$(stat -c %i d/a/f d/b/f d/b/g | sort -u | wc -l)" -eq 1 ]
}

@test "M06: a file of several names is counted once where there is little space" {
	need_root
	need_mounts
	need_verb in
	mkdir s/a s/b d
	head -c 9M /dev/urandom >s/a/f
	ln s/a/f s/b/f
	run on_tmpfs d size=12m "$STAGETOOL" in s:t --dir=d
	status_is 0
	says "9.0 MiB"
}

@test "M06: past the limit of links a new file is begun, and it says so" {
	need strace
	sanitized && skip "strace and a sanitizer"
	mkdir s/a s/b
	echo x >s/a/f
	ln s/a/f s/b/f
	echo y >s/g
	run strace -f -qq -o /dev/null -e trace=link,linkat -e inject=link,linkat:error=EMLINK \
		"$STAGETOOL" copy s d
	status_is 3
	says "not a hard link but a copy of its own"
	says_not "failed"
	cmp s/a/f d/a/f
	cmp s/b/f d/b/f
	cmp s/g d/g
	[ "$(stat -c %h d/a/f d/b/f | tr '\n' ' ')" = "1 1 " ]
}

@test "M08: ACLs, default ACLs and xattrs of read-only files arrive" {
	need setfacl
	need setfattr
	mkdir s/x s/x/y
	echo x >s/x/f
	setfattr -n user.k -v v s/x/f s/x || skip "no user xattrs here"
	head -c 1000 /dev/urandom | base64 -w0 >value
	setfattr -n user.long -v "$(cat value)" s/x/f
	chmod 444 s/x/f
	setfacl -m u:1:rwx,d:u:1:rx s/x || skip "no ACLs here"
	setfacl -m u:1:rw,g:2:r s/x/f
	chmod 555 s/x/y
	stagetool copy s d
	same_tree s d
	diff <(acls s) <(acls d)
	need_verb in
	rm -r d
	stage_in
	same_tree s d/t
	diff <(acls s) <(acls d/t)
	# who is not root can set an attribute only before the file is read-only
	need_root
	give_user
	run as_user "$STAGETOOL" copy s e
	status_is 0
	same_tree s e
	diff <(acls s) <(acls e)
}

@test "M10: setuid bits and capabilities are dropped and reported; kept on request" {
	need_root
	cp /bin/true s/t
	chown 1:1 s/t
	chmod 6755 s/t
	cp /bin/true s/c
	if command -v setcap >/dev/null; then
		setcap cap_net_raw+ep s/c
	else
		setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 s/c
	fi
	run stagetool copy s d
	status_is 0
	says "s/t"
	says "s/c"
	[ "$(stat -c '%a %u:%g' d/t)" = "755 1:1" ]
	[ -z "$(getfattr -m security.capability d/c)" ]
	run stagetool copy --keep-special-bits s e
	status_is 0
	[ "$(stat -c '%a %u:%g' e/t)" = "6755 1:1" ]
	[ "$(getfattr -e hex -n security.capability s/c | tail -n +2)" = \
		"$(getfattr -e hex -n security.capability e/c | tail -n +2)" ]
	need_verb in
	run stagetool in s:t --dir=stage
	status_is 0
	says "s/t: without setuid and setgid"
	says "s/c"
	[ "$(stat -c '%a %u:%g' stage/t/t)" = "755 1:1" ]
	[ -z "$(getfattr -m security.capability stage/t/c)" ]
}

@test "M14: a FIFO is made anew and never opened, a socket is skipped, nothing hangs" {
	need python3
	mkfifo s/p
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s/k")'
	echo x >s/f
	run timeout 60 "$STAGETOOL" copy s d
	status_is 0
	[ -p d/p ]
	says "s/k"
	cmp s/f d/f
	run timeout 60 "$STAGETOOL" copy s/p q
	status_is 0
	[ -p q ]
	need_verb in
	run timeout 60 "$STAGETOOL" in s:t --dir=e
	status_is 0
	cmp s/f e/t/f
}

@test "M14: a FIFO that takes a file's place in the destination does not hang a second run" {
	echo x >s/f
	stagetool copy s d
	rm d/f
	mkfifo d/f
	touch -r s/f d/f
	run timeout 60 "$STAGETOOL" copy --checksum s d
	status_is 0
	cmp s/f d/f
}

@test "M15: times before 1970 and after 2038" {
	touch -d 1960-01-01 s/a
	touch -d 2100-01-01 s/b
	touch -d '1969-12-31 23:59:59.5 UTC' s/c
	mkdir s/d
	touch -d 1950-01-01 s/d
	stagetool copy s d
	diff <(cd s && stat -c '%.9Y %n' -- *) <(cd d && stat -c '%.9Y %n' -- *)
	run stagetool copy s d
	says "copied 0 files"
	need_verb in
	rm -r d
	stage_in
	diff <(cd s && stat -c '%.9Y %n' -- *) <(cd d/t && stat -c '%.9Y %n' -- *)
}

@test "M15: a time that the destination can not hold is said, and the data is there" {
	need_root
	need_mounts
	need mkfs.ext4
	truncate -s 8M image
	mkfs.ext4 -q -I 128 image 2>/dev/null # 32 bits
	mkdir m
	echo x >s/f
	touch -d 2100-01-01 s/f
	# shellcheck disable=SC2016
	run unshare -m bash -c 'mount -o loop image m || exit 99
		"$1" copy s m/d; rc=$?
		cmp s/f m/d/f || exit 98
		exit $rc' - "$STAGETOOL"
	[ "$status" -ne 99 ] || skip "no loop mounts"
	status_is 3
	says "s/f: times: the filesystem can not hold this one"
}

# ---- names

@test "N01: quotes, semicolons, blanks, parentheses, backslashes; no shell is involved" {
	# shellcheck disable=SC2016
	touch "s/3'end" 's/a;b' 's/f(1)' 's/x y' 's/\143\d' 's/$(touch hacked)' 's/`touch hacked`' \
		's/-rf' 's/*' 's/"'
	mv s 's \1'
	stagetool copy 's \1' 'd 2'
	diff -rq 's \1' 'd 2'
	need_verb out
	stagetool in 's \\1:t' --dir='e 3'
	diff -rq 's \1' 'e 3/t'
	mv 'e 3/t' 'e 3/n'\''w'
	stagetool out "n'w:r;4" --dir='e 3'
	diff -rq 's \1' 'r;4'
	[ ! -e hacked ]
}

@test "N03: a newline in a name makes no second line anywhere" {
	touch $'s/a\nfile has vanished: b' $'s/c\rd' $'s/e\tf\e[2J'
	mkdir -p $'d/a\nfile has vanished: b'
	run stagetool copy s d
	status_is 3
	says 's/a\nfile has vanished: b'
	[ "${#lines[@]}" -eq 2 ]
	rmdir $'d/a\nfile has vanished: b'
	run stagetool copy --json s d
	status_is 0
	[ "${#lines[@]}" -eq 2 ]
	diff -rq s d
}

@test "N06: names are bytes: Latin-1, other people's quotes; a second run copies nothing" {
	touch $'s/\xff\xfe' 's/test‛s' $'s/\xc3\x28' $'s/e\xcc\x81' $'s/\xc3\xa9'
	stagetool copy s d
	run stagetool copy s d
	status_is 0
	says "copied 0 files"
	diff -rq s d
	[ "$(find d -type f | wc -l)" -eq 5 ]
}

@test "N11: two inputs of one name are refused before anything is done" {
	mkdir x y
	echo A >x/f
	echo B >y/f
	run stagetool copy x/f y/f d/
	status_is 2
	says x/f
	says y/f
	[ ! -e d ]
	need_verb in
	run stagetool in x/f:d/ y/f:d/ --dir=e
	[ "$status" -ne 0 ]
	says x/f
	says y/f
	[ ! -e e/d/f ]
	run stagetool in x/f:d/ y/f:d/g --dir=e
	status_is 0
	[ "$(cat e/d/f e/d/g)" = $'A\nB' ]
}

@test "N12: one slash rule, for d, d/, d/., a missing d, and a symlink to a directory" {
	mkdir real d
	ln -s real dl
	echo x >s/f
	stagetool copy s/f dl/
	[ -L dl ]
	cmp s/f real/f
	rm real/f
	stagetool copy s/f dl/.
	[ -L dl ]
	cmp s/f real/f
	run stagetool copy s/f dl
	status_is 1
	[ -L dl ]
	run stagetool copy s/f d
	status_is 1
	stagetool copy s/f d/
	cmp s/f d/f
	stagetool copy s/f d/.
	stagetool copy s/f new
	[ -f new ]
	stagetool copy s/f newdir/
	cmp s/f newdir/f
}

# ---- races

@test "R01: a file that keeps growing or shrinking is flagged, and never hangs" {
	for change in append_line cut_and_grow; do
		rm -rf d
		head -c 256M /dev/zero | tr '\0' x >s/f
		echo fine >s/g
		touch changing
		keep_changing s/f $change
		run timeout 120 "$STAGETOOL" copy --engine=readwrite s d
		stop_changing
		status_is 3
		says "s/f"
		says "1 changed while being read"
		[ ! -e d/f ]
		no_temporaries d
		cmp s/g d/g
	done
	run stagetool copy s d
	status_is 0
	cmp s/f d/f
}

@test "R03: files that vanish after they were listed are told apart from errors" {
	need strace
	sanitized && skip "strace and a sanitizer"
	(cd s && seq 300 | xargs touch)
	# The first list is in hand, and held there while files go.
	strace -f -qq -o /dev/null -e trace=getdents64 \
		-e inject=getdents64:delay_exit=2000000:when=1 \
		"$STAGETOOL" copy --json --threads=2 s d >out 2>log &
	pid=$!
	wait_until test -d d
	sleep 0.5
	rm -f s/29*
	status=0
	wait $pid || status=$?
	status_is 3
	grep -q '"vanished":11,' out
	grep -q '"failed":0,' out
	grep -q 's/290: ' log
	[ "$(find d -type f | wc -l)" -eq 289 ]
}

@test "R06: a file rewritten with its old size and time: --checksum sees it, stages see it always" {
	printf aaaa >s/f
	stagetool copy s c
	stagetool copy --checksum s c
	printf bbbb >s/f
	touch -r c/f s/f
	stagetool copy --checksum s c
	[ "$(cat c/f)" = bbbb ]
	need_verb in
	stage_in
	printf cccc >s/f
	touch -r d/t/f s/f
	stage_in
	[ "$(cat d/t/f)" = cccc ]
	need_verb out
	printf dddd >d/t/f
	touch -r s/f d/t/f
	stagetool out t:s --dir=d
	[ "$(cat s/f)" = dddd ]
}

# ---- space

@test "S01: a full destination: an error, nothing under the final name, the source untouched" {
	need_root
	need_mounts
	mkdir d
	head -c 4M /dev/urandom >s/f
	sum=$(md5sum <s/f)
	run on_tmpfs d size=1m "$STAGETOOL" copy s d
	status_is 4
	says_not "ls: f"
	says_not "ls: .stagetool-tmp"
	[ "$(md5sum <s/f)" = "$sum" ]
	need_verb out
	mkdir stage
	cp s/f stage/f
	run on_tmpfs d size=1m "$STAGETOOL" out "f:$PWD/d/" --dir=stage
	status_is 1
	says "no space left for bytes"
	says "nothing in stage was removed"
	says_not "ls: f"
	says_not "ls: .stagetool-tmp"
	[ "$(md5sum <stage/f)" = "$sum" ]
}

@test "S03: too few inodes: it says so, a stage-in before it begins, and leaves nothing behind" {
	need_root
	need_mounts
	(cd s && seq 100 | xargs touch)
	mkdir d
	run on_tmpfs d nr_inodes=50 "$STAGETOOL" copy s d
	status_is 4
	says inodes
	need_verb in
	run on_tmpfs d nr_inodes=50 "$STAGETOOL" in s:t --dir=d
	status_is 4
	says "inodes: "
	says "needed"
	says_not "ls: "
}

# ---- partial failure

@test "E01: a missing parent or source is a failure" {
	echo x >s/f
	run stagetool copy s/f no/such/x
	status_is 1
	says "no/such"
	run stagetool copy nosrc d
	status_is 1
	says nosrc
	[ ! -e d ]
	need_verb in
	run stagetool in nosrc:t --dir=d
	status_is 1
	says nosrc
	need_verb out
	run stagetool out nosrc:r --dir=d
	status_is 1
	says nosrc
	[ ! -e r ]
}

@test "E02: an attribute that can not be set: data there, file named, its own status" {
	need strace
	sanitized && skip "strace and a sanitizer"
	echo x >s/f
	echo y >s/g
	setfattr -n user.k -v v s/f || skip "no user xattrs here"
	run strace -f -qq -o /dev/null -e trace=setxattr,lsetxattr,fsetxattr \
		-e inject=setxattr,lsetxattr,fsetxattr:error=EIO "$STAGETOOL" copy s d
	status_is 3
	says "s/f"
	says "user.k"
	says "1 attribute not set"
	says_not "failed"
	cmp s/f d/f
	cmp s/g d/g
	need_verb in
	run strace -f -qq -o /dev/null -e trace=setxattr,lsetxattr,fsetxattr \
		-e inject=setxattr,lsetxattr,fsetxattr:error=EIO "$STAGETOOL" in s:t --dir=e
	status_is 3
	says "s/f"
	says "user.k"
	says "1 attribute not set"
	cmp s/f e/t/f
}

@test "E02: the same for times and modes" {
	need strace
	sanitized && skip "strace and a sanitizer"
	echo x >s/f
	touch -d 2001-01-01 s/f
	run strace -f -qq -o /dev/null -e trace=utimensat -e inject=utimensat:error=EIO \
		"$STAGETOOL" copy s d
	status_is 3
	says "s/f"
	says "Input/output error"
	[ ! -e d/f ] || cmp s/f d/f
	no_temporaries d
}

@test "E03: a target that can not be: nothing delivered, and not success" {
	need_verb out
	mkdir d
	echo r >d/o
	run stagetool out o:/proc/nope/ --dir=d
	status_is 1
	says /proc/nope
	says "staged out 0 files"
	says "nothing in d was removed"
	[ "$(cat d/o)" = r ]
}

@test "T03: a stage-out that failed keeps the only copy and says where it is" {
	need_root
	need_verb out
	mkdir d
	echo r >d/o
	give_user
	chmod 555 s
	run as_user "$STAGETOOL" out "o:$PWD/s/" --dir=d
	status_is 1
	says "Permission denied"
	says "nothing in d was removed: the same command tries again"
	[ "$(cat d/o)" = r ]
	chmod 755 s
	run as_user "$STAGETOOL" out "o:$PWD/s/" --dir=d
	status_is 0
	[ "$(cat s/o)" = r ]
}

# ---- restart

@test "P01: killed half way: no partial file; the next run keeps what is done, removes what is not" {
	head -c 400M /dev/zero | tr '\0' y >s/f
	echo A >s/g
	mkdir d
	stagetool copy s/g d/
	inode=$(stat -c %i d/g)
	"$STAGETOOL" copy --engine=readwrite s d 2>log &
	pid=$!
	wait_until has_temporary d
	kill -9 $pid
	wait $pid || true
	has_temporary d
	[ ! -e d/f ]
	run stagetool copy s d
	status_is 0
	diff -r s d
	no_temporaries d
	[ "$(stat -c %i d/g)" = "$inode" ]
	says "1 unchanged"
}

@test "P01: temporaries of a dead run are never staged out" {
	need_verb out
	mkdir -p d/t
	echo x >d/t/f
	echo half >d/t/.stagetool-tmp.dead
	run stagetool out t:"$PWD/r" --dir=d
	status_is 0
	[ "$(ls -A r)" = f ]
}

@test "P02: a partial file that is newer is replaced: another size is always copied" {
	head -c 9M /dev/urandom >s/f
	mkdir d
	head -c 1M s/f >d/f
	run stagetool copy s d
	status_is 0
	cmp s/f d/f
	printf x >>d/f
	touch -r s/f d/f
	stagetool copy s d
	cmp s/f d/f
}

# ---- symlinks

@test "L02: symlinks are copied as they are, dangling or not, and nothing goes through them" {
	ln -s nowhere s/l
	ln -s /etc/passwd s/p
	ln -s ../outside s/o
	echo out >outside
	chmod 600 outside
	before=$(stat -c '%a %Y %Z' outside)
	run stagetool copy --durable --verify s d
	status_is 0
	[ "$(readlink d/l d/p d/o | tr '\n' ' ')" = "nowhere /etc/passwd ../outside " ]
	[ "$(stat -c '%a %Y %Z' outside)" = "$before" ]
	need_verb in
	stage_in
	[ "$(readlink d/t/l d/t/p d/t/o | tr '\n' ' ')" = "nowhere /etc/passwd ../outside " ]
}

@test "L02: a symlink at the destination is replaced and never written through" {
	echo secret >outside
	mkdir d
	ln -s ../outside d/f
	echo x >s/f
	stagetool copy s d
	[ ! -L d/f ]
	[ "$(cat outside)" = secret ]
	mkdir s/sub elsewhere
	echo y >s/sub/f
	ln -s ../elsewhere d/sub
	run stagetool copy s d
	status_is 3
	says s/sub
	[ -z "$(ls -A elsewhere)" ]
}

@test "L03: a destination inside the source is refused, however it is reached" {
	echo x >s/f
	mkdir -p s/d s/a/b
	ln -s s q
	ln -s s/a/b r
	for to in s/d s/d/ s/new s/a/b s/a/b/new r r/new q/d; do
		for from in s q s/.; do
			run timeout 60 "$STAGETOOL" copy "$from" "$to"
			status_is 1
			[ "$(find s | wc -l)" -eq 5 ]
		done
	done
	run stagetool copy s s
	status_is 1
	run stagetool copy s/f s/f
	[ "$(cat s/f)" = x ]
	need_verb in
	for stage in s/a s/a/b/new q/d r; do
		run timeout 60 "$STAGETOOL" in s:t --dir=$stage
		status_is 1
		says "lies inside it"
		[ -z "$(find s -name t)" ]
	done
}

@test "L03: the same through a bind mount" {
	need_root
	need_mounts
	mkdir -p s/d b
	echo x >s/f
	# shellcheck disable=SC2016
	run unshare -m bash -c 'mount --bind s b || exit 99
		timeout 60 "$1" copy s b/d; a=$?
		timeout 60 "$1" copy b s/d; b=$?
		echo "statuses $a $b"' - "$STAGETOOL"
	says "statuses 1 1"
	[ "$(find s | wc -l)" -eq 3 ]
}

# ---- security

@test "C06: setuid files lose the bit, devices are refused and reported" {
	need_root
	cp /bin/true s/t
	chmod 4755 s/t
	mknod s/n c 1 3
	run stagetool copy s d
	status_is 0
	[ "$(stat -c %a d/t)" = 755 ]
	[ ! -e d/n ]
	says s/t
	says s/n
}

@test "C07: a private file is never readable by others, not for a moment" {
	need strace
	sanitized && skip "strace and a sanitizer"
	echo k >s/k
	chmod 600 s/k
	mkdir -m 700 s/dir
	(umask 0 && strace -f -o log -e trace=openat,mkdirat,mkdir,fchmod,fchmodat "$STAGETOOL" copy s d)
	grep O_CREAT log | grep -q 0600
	grep O_CREAT log | grep -v -e 0600 && return 1
	grep -E 'mkdir(at)?\(.*"dir"' log | grep -q 0700
	need_verb in
	(umask 0 && strace -f -o log -e trace=openat,mkdirat,mkdir "$STAGETOOL" in s:t --dir=e)
	grep O_CREAT log | grep -E ', 0[0-7]*[1-7]([1-7]|0)?\)' | grep -vE ', 0?[0-7]?00\)' |
		grep -v -e 0600 -e 0700 && return 1
	[ "$(stat -c %a e)" = 700 ]
}

# ---- several at once

@test "X02: two deliver to one name: one whole file is kept, the other is told" {
	need_verb out
	mkdir d1 d2
	head -c 1M /dev/zero | tr '\0' A >d1/o
	head -c 1M /dev/zero | tr '\0' B >d2/o
	"$STAGETOOL" out o:"$PWD/s/" --dir=d1 2>log1 &
	one=$!
	"$STAGETOOL" out o:"$PWD/s/" --dir=d2 2>log2 &
	two=$!
	first=0 second=0
	wait $one || first=$?
	wait $two || second=$?
	[ "$(tr -d A <s/o | wc -c)" -eq 0 ] || [ "$(tr -d B <s/o | wc -c)" -eq 0 ]
	[ "$(stat -c %s s/o)" -eq 1048576 ]
	[ $((first + second)) -eq 5 ]
	[ "$(cat s/o* | tr -cd A | wc -c)" -eq 1048576 ]
	[ "$(cat s/o* | tr -cd B | wc -c)" -eq 1048576 ]
}

@test "X02: copies to one name at once leave one whole file and no temporary" {
	for i in 1 2 3 4; do
		mkdir "s/$i"
		head -c 1M /dev/zero | tr '\0' "$i" >"s/$i/o"
	done
	pids=()
	for i in 1 2 3 4; do
		"$STAGETOOL" copy -q "s/$i" d &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
	[ "$(stat -c %s d/o)" -eq 1048576 ]
	[ "$(fold -w1 d/o | sort -u | wc -l)" -eq 1 ]
	no_temporaries d
}

# ---- scale

@test "B01: a million entries in one directory are staged in with flat memory" {
	need_verb in
	to_memory 8000000
	entries=1000000
	sanitized && entries=20000
	(cd s && seq $entries | xargs -n5000 touch)
	with_peak "$STAGETOOL" in -q s:t --dir=d
	echo "# peak $(cat peak) KiB for $entries entries" >&3
	[ "$(find d/t -maxdepth 1 -type f -printf x | wc -c)" -eq $entries ]
	# What the manifest maps is file cache, and counted here all the same.
	sanitized || [ "$(cat peak)" -lt 200000 ]
}

@test "B01: the memory of a copy does not grow with the number of entries" {
	sanitized && skip "sanitizers have memory of their own"
	to_memory 4000000
	for entries in 2000 200000; do
		(cd s && seq $entries | xargs -n5000 touch)
		with_peak "$STAGETOOL" copy -q s d
		cp peak "peak$entries"
		[ "$(find d -maxdepth 1 -type f -printf x | wc -c)" -eq $entries ]
	done
	echo "# peak $(cat peak2000) and $(cat peak200000) KiB" >&3
	[ "$(cat peak200000)" -lt 60000 ]
}

@test "B02: a file beyond 2 GiB arrives whole, by every engine" {
	local free
	to_memory 8000000
	free=$(df --output=avail -k . | tail -n 1)
	[ "$free" -gt 6000000 ] || skip "needs 6 GB"
	yes | head -c 2200M >s/f
	for engine in copy_file_range readwrite; do
		stagetool copy --engine=$engine s d
		cmp s/f d/f
		rm -r d
	done
}

# ---- filesystems

@test "K01: modification times are kept, and no cleaner of old files takes a stage for old" {
	need_verb in
	mkdir s/a
	echo x >s/f
	echo y >s/a/g
	touch -a -d '60 days ago' s/f s/a/g
	touch -m -d '60 days ago' s/f s/a/g
	stage_in
	[ "$(stat -c %.9Y s/f s/a/g)" = "$(stat -c %.9Y d/t/f d/t/a/g)" ]
	[ -z "$(find d -type f -atime +30 -mtime +30)" ]
	[ -z "$(find d -atime +30)" ]
	# there is no lock that would have to be held for as long as a job runs
	flock -n d true
}

@test "K07: trusted.*, security.* and a filesystem's own xattrs stay behind" {
	need_root
	echo x >s/f
	setfattr -n user.k -v v s/f || skip "no user xattrs here"
	setfattr -n trusted.lov -v a s/f || skip "no trusted xattrs here"
	run stagetool copy s d
	status_is 0
	[ "$(getfattr -m - d/f | grep -v '^#' | grep .)" = user.k ]
	need_verb in
	stage_in
	[ "$(getfattr -m - d/t/f | grep -v '^#' | grep .)" = user.k ]
}

# ---- verification

@test "V02: verify reads what is there, and names the file that is not as staged" {
	need_verb verify
	head -c 9M /dev/urandom >s/f
	echo x >s/g
	stage_in
	run stagetool verify --dir=d
	status_is 0
	printf Z | dd of=d/t/f bs=1 seek=99 conv=notrunc status=none
	touch -r s/f d/t/f
	run stagetool verify --dir=d
	status_is 3
	says "t/f: changed"
	says_not t/g
	says "nothing was read"
	run stagetool verify --content --dir=d
	status_is 3
	says "t/f: changed"
	says_not t/g
	says "1 files, 2 B read here and at the source"
}

@test "V02: --verify reads the destination again, and finds what the disk made of it" {
	need strace
	sanitized && skip "strace and a sanitizer"
	head -c 1M /dev/urandom >s/f
	run strace -f -qq -y -o log -e trace=pread64,read,fadvise64,fsync,fdatasync \
		"$STAGETOOL" copy --engine=readwrite --verify s d
	status_is 0
	says "verified 1 file, 1.0 MiB"
	# written, out of the cache, and only then read, to its last byte
	grep -F "/d/.stagetool-tmp." log >destination
	awk '/sync\(/ { synced = 1 } /DONTNEED/ && synced { dropped = 1 }
		/read/ { if (!dropped) exit 1; sum += $NF } END { exit !(dropped && sum == 1048576) }' destination
}

@test "G01: a log holds few plain lines, no carriage return, the summary last" {
	head -c 99M /dev/zero >s/f
	stagetool copy s d >log 2>&1
	[ "$(tr -cd '\r' <log | wc -c)" -eq 0 ]
	[ "$(wc -l <log)" -le 3 ]
	tail -n 1 log | grep -q "copied 1 file, "
}
