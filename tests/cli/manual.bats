#!/usr/bin/env bats
# stagetool(1) and --help agree.

load helpers

page() {
	cat "$BATS_TEST_DIRNAME/../../man/stagetool.1.md"
}

verbs() {
	"$STAGETOOL" --help | sed -n '/^Verbs:/,/^$/p' | awk '/^  /{print $1}' | grep -vx help
}

# The long options that a verb's --help knows.
help_options() {
	"$STAGETOOL" "$1" --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}

# The long options in a verb's section of the page, and those of all verbs.
page_options() {
	page | awk -v verb="stagetool $1" '
		/^#/ { on = index($0 ",", verb " ") || /Options of all verbs/ }
		on && /^\*\*-/' | grep -oE -- '--[a-z-]+' | sort -u
}

@test "every verb has a section in the manual" {
	for verb in $(verbs); do
		page | grep -qE "^## .*stagetool $verb " || { echo "no section: $verb"; false; }
	done
	[ "$(verbs | wc -l)" -ge 10 ]
}

@test "the manual has no verb that the command does not know" {
	for verb in $(page | grep -E '^## ' | grep -oE 'stagetool [a-z]+' | awk '{print $2}'); do
		"$STAGETOOL" "$verb" --help >/dev/null || { echo "unknown: $verb"; false; }
	done
}

@test "the manual has one section for each verb" {
	local twice
	twice=$(page | grep -E '^## ' | grep -oE 'stagetool [a-z]+' | sort | uniq -d)
	[ -z "$twice" ] || { echo "twice: $twice"; false; }
}

@test "the options of each verb are the same in --help and in the manual" {
	for verb in $(verbs); do
		diff <(help_options "$verb") <(page_options "$verb") || { echo "differs: $verb"; false; }
	done
}

@test "the exit statuses of --help are in the manual" {
	for status in $("$STAGETOOL" --help | sed -n '/^Exit status/,$p' | awk '/^  [0-9]/{print $1}'); do
		page | grep -q "^| $status |"
	done
}
