#!/usr/bin/env bats
# What long work says where there is no terminal, and where there is one.

load helpers

# Runs "copy ARGUMENTS" on a terminal of this type and width, slowly: each open is held up. What the terminal
# got is in typescript, without the lines that script adds.
slow_copy_on() {
	local term=$1 columns=$2
	shift 2
	need script
	need strace
	sanitized && skip "strace and a sanitizer"
	cat >slow <<-END
		stty cols $columns
		exec strace -f -qq -o /dev/null -e trace=openat -e inject=openat:delay_enter=60000 \\
			"$STAGETOOL" copy --threads=1 $*
	END
	TERM=$term script -qec "sh ./slow" raw >/dev/null || [ "$?" -eq 3 ]
	grep -av -e '^Script started' -e '^Script done' raw | sed '${/^$/d}' >typescript
}

# What was drawn, each on a line, as the eye saw it.
drawn() {
	tr '\r' '\n' <typescript | sed $'s/\033\\[K//g' | grep '^copy: '
}

@test "a log gets no carriage returns, no escapes, and the summary last" {
	head -c 99M /dev/zero >s/f
	seq 1000 | (cd s && xargs touch)
	stagetool copy s d >log 2>&1
	[ "$(tr -cd '\r\033' <log | wc -c)" -eq 0 ]
	[ "$(wc -l <log)" -le 3 ]
	tail -n 1 log | grep -q '^stagetool: copied 1,001 files, 99.0 MiB in '
}

@test "a terminal gets a line that is redrawn, and taken away at the end" {
	(cd s && seq 30 | xargs touch)
	slow_copy_on xterm 60 s d
	[ "$(drawn | uniq | wc -l)" -ge 2 ]
	[ "$(drawn | awk '{ if (length > max) max = length } END { print max }')" -lt 60 ]
	tr -d '\r' <typescript | tail -n 1 | grep -q $'\033\\[Kstagetool: copied 30 files'
}

@test "a narrow terminal gets a cut line" {
	(cd s && seq 30 | xargs touch)
	slow_copy_on xterm 14 s d
	[ "$(drawn | awk '{ if (length > max) max = length } END { print max }')" -eq 13 ]
}

@test "-q and a dumb terminal get no line" {
	(cd s && seq 15 | xargs touch)
	slow_copy_on xterm 80 -q s d
	[ -z "$(cat typescript)" ]
	slow_copy_on dumb 80 s e
	[ "$(tr -d '\r' <typescript | wc -l)" -eq 1 ]
	[ "$(grep -c $'\033' typescript)" -eq 0 ]
	grep -q "copied 15 files" typescript
}

@test "a problem on a terminal stands on a line of its own" {
	(cd s && seq 30 | xargs touch)
	mkdir -p d/9
	slow_copy_on xterm 80 s d
	tr '\r' '\n' <typescript | sed $'s/^\033\\[K//' | grep -q '^stagetool: error: s/9: '
}
