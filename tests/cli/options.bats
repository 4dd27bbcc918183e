#!/usr/bin/env bats
# What every verb has in common: help, options, wrong usage.

load helpers

# The names in the list of verbs, one a line.
verbs() {
	stagetool --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

@test "--help lists the verbs and what the exit status means" {
	run stagetool --help
	status_is 0
	says "Usage: stagetool VERB"
	says "  copy "
	says "  3  some entries failed"
	[ "$(verbs | wc -l)" -ge 2 ]
}

@test "-h, help and help VERB are the same as --help" {
	diff <(stagetool --help) <(stagetool -h)
	diff <(stagetool --help) <(stagetool help)
	diff <(stagetool copy --help) <(stagetool help copy)
	diff <(stagetool copy --help) <(stagetool copy -h)
}

@test "--version says the version" {
	run stagetool --version
	status_is 0
	[[ $output =~ ^stagetool\ [0-9]+\.[0-9]+ ]]
}

@test "without a verb: wrong usage, the verbs are named" {
	run stagetool
	status_is 2
	[ "${#lines[@]}" -eq 1 ]
	says "expected a verb"
	says "copy"
	says "see stagetool --help"
}

@test "an unknown verb: wrong usage, the verbs are named" {
	run stagetool cpy a b
	status_is 2
	[ "${#lines[@]}" -eq 1 ]
	says "unknown verb 'cpy'"
	says "copy"
	run stagetool help cpy
	status_is 2
	says "unknown verb 'cpy'"
}

@test "an option before the verb is refused" {
	run stagetool -q copy a b
	status_is 2
	says "unknown option -q before the verb"
}

@test "every verb explains itself on standard output and exits 0" {
	for verb in $(verbs); do
		stagetool "$verb" --help >out 2>err
		[ ! -s err ]
		head -n 1 out | grep -q "^Usage: stagetool $verb"
		for option in --json --quiet --verbose --help; do
			grep -q -e "$option" out
		done
	done
}

@test "help texts are at most 80 columns wide, without tabs" {
	for verb in "" $(verbs); do
		# shellcheck disable=SC2086
		stagetool $verb --help >out
		[ "$(LC_ALL=C awk '{ if (length > max) max = length } END { print max + 0 }' out)" -le 80 ]
		run grep -n "$(printf '\t')" out
		[ "$status" -eq 1 ]
	done
}

@test "every option that a help text names is known to its verb" {
	for verb in $(verbs); do
		while read -r option value; do
			# Words enough for no verb: what is refused must be the words, not the option.
			if [ -n "$value" ]; then
				run stagetool "$verb" "$option" 1 --no-such-option
			else
				run stagetool "$verb" "$option" --no-such-option
			fi
			case $option in
			--help) status_is 0 ;;
			*)
				[ "$status" -ne 0 ]
				says_not "unknown option $option"
				;;
			esac
		done < <(stagetool "$verb" --help |
			sed -n 's/^ \+\(-[a-z], \)\?\(--[a-z-]*\)\(=[A-Za-z]*\)\?\( .*\)\?$/\2 \3/p')
	done
}

@test "an unknown option: one line, what is known, status 2" {
	for verb in $(verbs); do
		for option in --no-such-option -Z; do
			run stagetool "$verb" "$option"
			status_is 2
			[ "${#lines[@]}" -eq 1 ]
			says "unknown option $option"
			says "--quiet"
			says "see stagetool $verb --help"
		done
	done
}

@test "a value where none is expected, and none where one is" {
	run stagetool copy --json=1 a b
	status_is 2
	says "option --json=1: no value is expected"
	run stagetool copy a b --threads
	status_is 2
	says "option --threads needs a value"
	[ ! -e b ]
}

@test "--threads takes 1 to 512" {
	for value in 0 513 -1 1.5 many "" 99999999999999999999; do
		run stagetool copy --threads="$value" a b
		status_is 2
		says "--threads"
		[ "${#lines[@]}" -eq 1 ]
	done
	echo x >s/f
	for value in 1 512; do
		run stagetool copy --threads="$value" s "d$value"
		status_is 0
		[ -e "d$value/f" ]
	done
}

@test "an unknown engine is wrong usage, and those that are known are named" {
	echo x >s/f
	run stagetool copy --engine=warp s d
	status_is 2
	says "warp"
	says "readwrite"
	[ ! -e d ]
}

@test "too few and too many words" {
	run stagetool copy
	status_is 2
	says "expected FROM... TO"
	run stagetool copy a
	status_is 2
	says "expected FROM... TO"
	run stagetool help copy help
	status_is 2
	says "unexpected 'help'"
}

@test "a word that begins with '-' goes after --" {
	echo x >./-q
	run stagetool copy -- -q -v
	status_is 0
	[ -e ./-v ]
}

@test "control bytes of a wrong word are escaped" {
	run stagetool $'no\nverb\e[2J'
	status_is 2
	[ "${#lines[@]}" -eq 1 ]
	says 'no\nverb\x1b[2J'
}

@test "output that can not be written is a failure" {
	[ -e /dev/full ] || skip "no /dev/full"
	echo x >s/f
	local command
	for command in --help --version "help copy" "copy --help" "copy --json s d"; do
		status=0
		# shellcheck disable=SC2086
		stagetool $command >/dev/full 2>err || status=$?
		status_is 1
		grep -q "standard output" err
	done
}

@test "a reader that went away does not stop a copy" {
	mkfifo messages
	seq 200 | (cd s && xargs -I{} mkfifo p{})
	mkdir d
	seq 200 | (cd d && xargs -I{} mkdir p{})
	echo x >s/f
	# 200 conflicts are said to somebody who has gone after the first.
	head -n 1 <messages >first &
	status=0
	stagetool copy s d 2>messages || status=$?
	status_is 3
	[ -s first ]
	[ -e d/f ]
}

@test "closed standard descriptors do no harm, and what can not be said is a failure" {
	echo content >s/f
	mkdir s/g d d/g d/f
	touch s/h
	status=0
	stagetool copy s d <&- >&- 2>&- || status=$?
	status_is 3
	[ ! -s d/h ]
	rmdir d/f
	stagetool copy -v s d <&- >&- 2>&-
	cmp s/f d/f
	[ ! -s d/h ]
	status=0
	stagetool copy --json s d >&- || status=$?
	status_is 1
}
