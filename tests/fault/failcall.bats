#!/usr/bin/env bats
# shellcheck disable=SC2016
bats_require_minimum_version 1.5.0
# failcall does what the level "fault" believes of it; tried on programs that are not ours.

setup() {
	FAILCALL=${STAGETOOL_BUILD:?the build directory}/tests/fault/failcall
	CROWD=$STAGETOOL_BUILD/tests/fault/crowd
	cd "$BATS_TEST_TMPDIR" || return 1
	printf 'eleven byte' >from
}

@test "failcall --list counts calls, and those below a directory" {
	mkdir a && cp from a/from
	"$FAILCALL" --list --below a --report list -- cat a/from from
	grep -qE '^read [0-9]+ 2$' list
	"$FAILCALL" --list --report list -- cat a/from from
	awk '$1 == "read" && $2 == $3 && $2 > 4 {found=1} END {exit !found}' list
}

@test "failcall --entry leaves out what the loader does" {
	"$FAILCALL" --list --report all -- cat from
	"$FAILCALL" --list --entry --report own -- cat from
	[ "$(awk '$1 == "mmap" {print $2}' own)" -lt "$(awk '$1 == "mmap" {print $2}' all)" ]
	run ! grep -q '^arch_prctl' own
}

@test "failcall fails the chosen call only" {
	run "$FAILCALL" --entry --call openat --below . --at 2 --errno EDQUOT --report report -- \
		dd if=from of=to
	[ "$status" -eq 1 ]
	[[ $output == *"Disk quota exceeded"* ]]
	[ ! -e to ]
	grep -q "^failcall: reached: openat, 1 of 2, $PWD/to" report
}

@test "failcall says where a point was not reached, and the command is as ever" {
	run "$FAILCALL" --call openat --below . --at 999 --errno EIO --report report -- cat from
	[ "$status" -eq 0 ]
	[ "$output" = "eleven byte" ]
	grep -q '^failcall: not reached: 1 such calls' report
}

@test "failcall --late runs the call and hides its result" {
	run "$FAILCALL" --entry --call mkdir --at 1 --errno ETIMEDOUT --late -- mkdir new
	[ "$status" -eq 1 ]
	[ -d new ]
}

@test "failcall --short moves less, and a program that loops copies all" {
	run "$FAILCALL" --call read --below . --at 1 --every --short 2 --report report -- cat from
	[ "$status" -eq 0 ]
	[ "$output" = "eleven byte" ]
	grep -q '^failcall: reached: read, 7 of 7' report
}

@test "failcall counts over threads and children, and fails from the K-th on" {
	mkdir made
	run "$FAILCALL" --call mkdirat --below made --at 3 --every --errno EACCES --report report -- \
		"$CROWD" made
	[ "$(grep -c ' 13$' <<<"$output")" -eq 3 ]
	[ "$(find made -mindepth 1 | wc -l)" -eq 2 ]
	grep -q '^failcall: reached: mkdirat, 3 of 5' report
}

@test "failcall --kill ends all processes before the call, --after behind it" {
	mkdir made
	run "$FAILCALL" --call mkdirat --below made --at 5 --kill --report report -- \
		sh -c '"$0" made; :' "$CROWD"
	[ "$status" -eq 137 ]
	[ "$(find made -mindepth 1 | wc -l)" -eq 4 ]
	mkdir again
	run "$FAILCALL" --call mkdirat --below again --at 5 --kill --after -- \
		sh -c '"$0" again; :' "$CROWD"
	[ "$status" -eq 137 ]
	[ "$(find again -mindepth 1 | wc -l)" -eq 5 ]
}

@test "failcall --kill --alone leaves the other processes" {
	mkdir made
	run "$FAILCALL" --call mkdirat --below made --at 5 --kill --alone -- \
		sh -c '"$0" made; echo on' "$CROWD"
	[ "$status" -eq 0 ]
	[[ $output == *on* ]]
	[ ! -e made/child ]
}

@test "failcall --call any --kill kills at each call" {
	run "$FAILCALL" --entry --call any --at 3 --kill -- cp from to
	[ "$status" -eq 137 ]
	run "$FAILCALL" --entry --call any --at 100000 --kill -- cp from to
	[ "$status" -eq 0 ]
}

@test "failcall --signal ends the command the way the signal does" {
	run "$FAILCALL" --call mkdir --at 1 --signal 15 -- mkdir new
	[ "$status" -eq 143 ]
}

@test "failcall --no-sleep and --timeout" {
	run "$FAILCALL" --no-sleep --timeout 20000 --call mkdir --at 1 --errno EIO -- sleep 30
	[ "$status" -eq 0 ]
	run "$FAILCALL" --timeout 300 --call mkdir --at 1 --errno EIO -- sleep 30
	[ "$status" -eq 124 ]
}

@test "failcall follows a command that becomes another user" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	mkdir -m 1777 made && cp from made/from && chmod 444 made/from
	cd made # the directories above may be closed to that user
	run "$FAILCALL" --call openat --below . --at 2 --errno ENOSPC --report ../report -- \
		setpriv --reuid 65534 --regid 65534 --clear-groups dd if=from of=to
	[ "$status" -eq 1 ]
	[ ! -e to ]
	grep -q '^failcall: reached: openat' ../report
	run "$FAILCALL" --user 65534:65534 --list --report ../report -- cp from to
	[ "$status" -eq 0 ]
	[ "$(stat -c %u to)" -eq 65534 ]
	grep -q 'NoNewPrivs:.*0' <("$FAILCALL" --list --report report -- cat /proc/self/status)
}

@test "failcall refuses what it can not do" {
	run "$FAILCALL" --call nothing --at 1 --errno EIO -- true
	[ "$status" -eq 125 ]
	run "$FAILCALL" --call openat --at 1 --errno ENOTHING -- true
	[ "$status" -eq 125 ]
	run "$FAILCALL" --call openat --at 0 --errno EIO -- true
	[ "$status" -eq 125 ]
	run "$FAILCALL" --call mkdir --at 1 --short 1 -- true
	[ "$status" -eq 125 ]
	run "$FAILCALL" --call openat --at 1 --errno EIO
	[ "$status" -eq 125 ]
	run -127 "$FAILCALL" --list --report report -- /nowhere
}
