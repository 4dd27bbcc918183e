#!/usr/bin/env bats
# The completion of bash offers what the command itself says.

load helpers

# What is offered after these words, the last one half written.
offered() {
	# shellcheck source=etc/completion/stagetool
	. "$BATS_TEST_DIRNAME/../../etc/completion/stagetool"
	compopt() { :; }
	COMP_WORDS=(stagetool "$@")
	COMP_CWORD=$#
	_stagetool "$STAGETOOL" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}"
}

@test "verbs" {
	[ "$(offered co)" = copy ]
	offered "" | grep -qx help
	[ "$(offered help cop)" = copy ]
}

@test "options of the verb, with what takes a value marked" {
	[ "$(offered copy --dur)" = --durable ]
	[ "$(offered copy --eng)" = --engine= ]
	offered copy -- | grep -qx -e --json
	[ -z "$(offered help --dur)" ]
}

@test "values and files" {
	[ "$(offered copy --engine = read)" = readwrite ]
	[ "$(offered pack --format = z)" = zip ]
	touch 'a file'
	[ "$(offered copy 'a f')" = 'a file' ]
	[ "$(offered copy --threads = a)" = '' ]
}
