#!/usr/bin/env bats
# stagetool plan: what in and out would do, without doing it.

load helpers

@test "in: what goes where, how much, whether it fits, and nothing is made" {
	mkdir s/a
	head -c 10K /dev/zero >s/a/f
	echo 1 >s/g
	run stagetool plan in 's/*:data/' s/g:one --dir new/d
	status_is 0
	says "$PWD/s/a -> data/a: 2 entries, 16.0 KiB"
	says "$PWD/s/g -> one: 1 entries, 4.0 KiB"
	says "it fits: 4 entries, 24.0 KiB"
	says "about "
	[ ! -e new ]
}

@test "in: what does not fit" {
	need_mounts
	head -c 8M /dev/urandom >s/f
	mkdir t
	# shellcheck disable=SC2016
	run unshare -m sh -c 'mount -t tmpfs -o size=4m t t && "$0" plan in s --dir t/d' "$STAGETOOL"
	status_is 4
	says "bytes: 9.0 MiB needed, 4.0 MiB available"
}

@test "in: a missing source" {
	run stagetool plan in none --dir d
	status_is 1
	says "none"
}

@test "out: what is new or changed" {
	mkdir -p s/a s/b
	echo 1 >s/a/f
	echo 1 >s/b/g
	stagetool in s --dir d -q
	run stagetool plan out s:back --dir d
	status_is 0
	says "s -> $PWD/back: 0 entries to send, 0 B; 5 unchanged"
	echo 22 >d/s/a/f
	mkdir d/s/new
	echo 333 >d/s/new/h
	run stagetool plan out s:back 's/b/*:x/' --dir d
	status_is 0
	says "s -> $PWD/back: 3 entries to send, 7 B; 4 unchanged"
	says "s/b/g -> $PWD/x/g: 0 entries to send"
	[ ! -e back ] && [ ! -e x ]
	stagetool out s:back --dir d -q
	run stagetool plan out s:back --dir d
	says "0 entries to send"
	run stagetool plan out .:all --dir d
	says "3 entries to send, 7 B; 4 unchanged"
}

@test "out: where nothing was staged in all is new" {
	mkdir -p d/r
	echo 1 >d/r/f
	run stagetool plan out r:back none:x,optional --dir d
	status_is 0
	says "r -> $PWD/back: 2 entries to send, 2 B"
	says "none -> $PWD/x: not there"
	run stagetool plan out none:x --dir d
	status_is 1
	[ ! -e d/.stagetool ]
}

@test "a name with a newline is one line" {
	echo 1 >$'s/a\nb'
	run stagetool plan in $'s/a?b:x/' --dir d
	status_is 0
	says 's/a\nb -> x/a\nb: 1 entries'
}

@test "wrong usage" {
	for words in "" in "s" "up s" "in s:../x" "out s"; do
		# shellcheck disable=SC2086
		run stagetool plan $words --dir d
		status_is 2
	done
}

@test "--json" {
	need jq
	echo 1 >s/f
	stagetool plan in s --dir d --json >out
	[ "$(jq -r '.verb, .status, .fits, .entries, .items[0].local' <out | tr '\n' ' ')" = "plan 0 true 2 s " ]
	stagetool in s --dir d -q
	echo 22 >d/s/f
	stagetool plan out s:back --dir d --json >result
	[ "$(jq -r '.items[0].entries, .items[0].unchanged' <result | tr '\n' ' ')" = "1 1 " ]
}
