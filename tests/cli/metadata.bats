#!/usr/bin/env bats
# Everything that an entry carries arrives, as rsync, find, getfacl and getfattr see it.

load helpers
load every_kind

need_tools() {
	for tool in setfattr setfacl rsync "$@"; do need "$tool"; done
}

# Under strace, to which the leak check of a sanitizer objects.
traced() {
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -qq "$@"
}

@test "the comparison sees each difference" {
	need_tools
	every_kind s
	cp -a s same
	every_kind_same s same
	local change
	for change in 'touch -hd "2001-02-03 04:05:06.123456788 UTC" links/a/dangling' \
		'touch -d "2002-03-04 05:06:07.987654322 UTC" bytes' \
		'chmod 1755 attributes/directory755' \
		'setfattr -n user.text -v valuE attributes/plain' \
		'setfattr -x user.empty attributes/plain' \
		'setfacl -m d:u:1:rwx attributes/acl' \
		'setfacl -m g::r,m::rwx attributes/acl/file' \
		'printf y | dd of=bytes/20000003 bs=1 seek=1M conv=notrunc status=none; touch -r ../s/bytes/20000003 bytes/20000003' \
		'cp -a --remove-destination links/a/file links/b/third; touch -r ../s/links/b links/b' \
		'cp --sparse=never --preserve=all bytes/hole x; mv x bytes/hole; touch -r ../s/bytes bytes' \
		'ln -sfn nowhere/at/alL links/a/dangling; touch -hr ../s/links/a/dangling links/a/dangling; touch -r ../s/links/a links/a'; do
		rm -rf d
		cp -a s d
		(cd d && eval "$change")
		run every_kind_same s d
		[ "$status" -ne 0 ] || {
			echo "not seen: $change"
			return 1
		}
	done
}

@test "every kind of entry and attribute arrives" {
	need_tools
	every_kind s
	run stagetool copy s d
	status_is 0
	every_kind_same s d
	no_temporaries d
}

# Staged in, given another name (so that the manifest knows nothing of it), and sent back: s, d/s and back.
round_trip() {
	"$@" "$STAGETOOL" in s --dir d -q &&
		every_kind_same s d/s &&
		mv d/s d/made &&
		"$@" "$STAGETOOL" out --dir d made:back -q &&
		every_kind_same s back
}

@test "the same into a stage and back from it" {
	need_tools
	every_kind s
	run round_trip env
	status_is 0
	no_temporaries back
}

@test "the same into a stage and back from it, for an ordinary user" {
	need_root
	need_tools
	declare -f every_kind every_kind_names every_kind_bytes every_kind_links every_kind_attributes \
		every_kind_times >build
	echo 'every_kind s' >>build
	give_user
	as_user bash build
	run round_trip as_user
	status_is 0
	no_temporaries back
}

@test "the same by every engine" {
	need_tools
	every_kind s
	local engine
	for engine in readwrite copy_file_range; do
		run stagetool copy --engine=$engine s "d-$engine"
		status_is 0
		every_kind_same s "d-$engine"
	done
}

@test "the same with many threads and with one" {
	need_tools
	every_kind s
	stagetool copy --threads=32 s many
	every_kind_same s many
	stagetool copy --threads=1 s one
	every_kind_same s one
}

@test "the same into an existing tree that differs in everything" {
	need_tools
	every_kind s
	stagetool copy s d
	(
		cd d
		find . -type f ! -path './attributes/read-only/*' -exec sh -c 'echo other >"$1"' - {} \;
		find . -type d -exec chmod 700 {} +
		find . ! -type l -exec setfacl -b -- {} +
		find . \( -type f -o -type d \) -exec touch -d 2020-01-01 -- {} +
	) 2>/dev/null || true
	run stagetool copy s d
	status_is 0
	every_kind_same s d
}

@test "a second copy changes nothing" {
	need_tools
	every_kind s
	stagetool copy s d
	find d ! -type d -printf '%C@ %i %p\n' | sort >before
	run stagetool copy s d
	status_is 0
	says "copied 0 files"
	every_kind_same s d
	find d ! -type d -printf '%C@ %i %p\n' | sort | diff before -
}

@test "the same for an ordinary user" {
	need_tools
	need_root
	cp "$BATS_TEST_DIRNAME/every_kind.bash" .
	give_user
	as_user bash -c '. ./every_kind.bash && every_kind s'
	run as_user "$STAGETOOL" copy s d
	status_is 0
	every_kind_same s d
}

@test "an umask makes no difference" {
	need_tools
	every_kind s
	(umask 077 && stagetool copy s d)
	every_kind_same s d
	(umask 0 && stagetool copy s e)
	every_kind_same s e
}

@test "special bits and capabilities arrive on request, else all but them" {
	need_tools setcap
	need_root
	mkdir s/x
	every_kind_special s/x
	stagetool copy --keep-special-bits s d
	diff <(tree_list s) <(tree_list d)
	diff <(cd s && getcap -r .) <(cd d && getcap -r .)
	run stagetool copy s e
	status_is 0
	says setuid
	says setgid
	says capabilities
	[ "$(stat -c '%a %u' e/x/setuid e/x/setgid | sort -u)" = "755 1" ]
	[ -z "$(getcap -r e)" ]
	cmp s/x/capable e/x/capable
}

@test "access times arrive, and reading leaves those of the source" {
	need_tools
	echo x >s/f
	touch -ad '2010-01-01 00:00:00.111111111 UTC' s/f
	local before
	before=$(stat -c %x s/f)
	stagetool copy s d
	[ "$(stat -c %x d/f)" = "$before" ]
}

@test "an attribute that fails is named, its file and all others arrive" {
	need_tools strace
	every_kind s
	run traced -o /dev/null -e inject=fsetxattr,lsetxattr,setxattr:error=EIO "$STAGETOOL" copy s d
	status_is 3
	says attributes/plain
	says user.text
	diff <(every_kind_sums s) <(every_kind_sums d)
	diff <(cd s && find . -printf '%T@ %p\n' | sort) <(cd d && find . -printf '%T@ %p\n' | sort)
	# what an access list would have let in, the group bits do not
	[ "$(stat -c %a d/attributes/acl/file)" = 600 ]
}

@test "nothing is more open on its way than in the end" {
	need_tools strace
	mkdir s/private
	for mode in 600 640 400 644; do
		echo x >s/private/$mode
		chmod $mode s/private/$mode
	done
	chmod 700 s/private
	(umask 0 && traced -o log -e trace=openat,open,creat,mkdir,mkdirat,mknodat "$STAGETOOL" copy s d)
	cat log
	# each is created for exactly those who may have it in the end
	diff <(sed -nE 's/.*stagetool-tmp.*O_CREAT[^,]*, (0[0-7]+).*/\1/p' log | sort) \
		<(printf '%s\n' 0400 0600 0640 0644)
	# a sanitizer makes sure of the directories of its reports, by absolute names
	run grep -E 'mkdir(at)?\([^/]*, 0?[0-7]?[0-7][0-7]*[1-7]\)' log
	[ -z "$output" ]
}
