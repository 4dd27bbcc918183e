# shellcheck shell=bash
# Counting TAP. Every level writes TAP to a log; these read it. $passed, $failed, $skipped are the totals.

passed=0 failed=0 skipped=0

# tap_count LOG: adds up the log, and prints what failed and what was skipped, with the reason.
tap_count() {
	local ok not skip
	ok=$(grep -cE '^ok ' "$1")
	not=$(grep -cE '^not ok ' "$1")
	skip=$(grep -cE '^ok .*# [Ss][Kk][Ii][Pp]' "$1")
	passed=$((passed + ok - skip))
	failed=$((failed + not))
	skipped=$((skipped + skip))
	tap_reasons "$1"
	printf '%d passed, %d failed, %d skipped' $((ok - skip)) "$not" "$skip"
}

# What failed, with its diagnosis, and what was skipped: on standard error, to be seen at once.
tap_reasons() {
	awk '/^not ok /{show=1; print "  " $0; next}
		/^ok .*# [Ss][Kk][Ii][Pp]/{print "  " $0; show=0; next}
		/^ok /{show=0; next}
		show && /^#/{print "    " $0}' "$1" >&2
}

# A single named check of a level that is not TAP itself: tap_check LOG NAME COMMAND...
tap_check() {
	local log=$1 name=$2
	shift 2
	if "$@" >"$log.part" 2>&1; then
		printf 'ok - %s\n' "$name" >>"$log"
	else
		printf 'not ok - %s\n' "$name" >>"$log"
		tail -n 40 "$log.part" | sed 's/^/# /' >>"$log"
	fi
	rm -f "$log.part"
}
