#!/usr/bin/env bats
# Exit statuses of the command, what stands behind each, and what is left.

load helpers

@test "1: FROM is missing, nothing is made" {
	run stagetool copy nosuch d
	status_is 1
	says nosuch
	says "No such file"
	echo x >s/f
	run stagetool copy s/f nosuch d/
	status_is 1
	[ ! -e d ]
}

@test "1: TO's parent is missing, nothing is made" {
	echo x >s/f
	for to in no/such/x no/such/x/ no/such/; do
		run stagetool copy s/f "$to"
		status_is 1
		says "no/such"
		[ ! -e no ]
	done
	run stagetool copy s/f s/f/x
	status_is 1
}

@test "1: nothing of what was asked for could be done" {
	need_root
	echo x >f
	chmod 000 f
	give_user
	run as_user "$STAGETOOL" copy f g
	status_is 1
	says "Permission denied"
	[ ! -e g ]
}

@test "1: TO can not be written to" {
	need_root
	mkdir d
	echo x >s/f
	give_user
	chmod 555 d
	run as_user "$STAGETOOL" copy s/f d/
	status_is 1
	says "Permission denied"
	run as_user "$STAGETOOL" copy s d/t
	status_is 1
}

@test "3: one unreadable file does not stop the others" {
	need_root
	seq 50 | (cd s && xargs touch)
	chmod 000 s/7
	give_user
	run as_user "$STAGETOOL" copy s d
	status_is 3
	says "s/7"
	says "1 failed"
	[ "$(find d -type f | wc -l)" -eq 49 ]
	no_temporaries d
}

@test "3: an unreadable directory does not stop the others" {
	need_root
	mkdir s/closed s/open
	touch s/closed/f s/open/f
	give_user
	chmod 000 s/closed
	run as_user "$STAGETOOL" copy s d
	status_is 3
	says "s/closed"
	[ -e d/open/f ]
}

@test "3: of several FROMs one can not be copied, the others are" {
	mkdir d
	echo x >f
	mkdir -p d/s
	run stagetool copy d f d/s
	status_is 3
	cmp f d/s/f
}

@test "4: no bytes are left, and how many there are" {
	need_root
	need_mounts
	head -c 4M /dev/urandom >s/f
	mkdir d
	run on_tmpfs d size=1m "$STAGETOOL" copy s d
	status_is 4
	says "bytes"
	says "free"
	says_not .stagetool-tmp
	[ "${lines[-1]}" != f ]
}

@test "4: no inodes are left, and it says inodes" {
	need_root
	need_mounts
	seq 100 | (cd s && xargs touch)
	mkdir d
	run on_tmpfs d nr_inodes=50 "$STAGETOOL" copy s d
	status_is 4
	says "inodes"
	says_not .stagetool-tmp
}

@test "a signal: ends by it, no half file, no temporary" {
	head -c 600M /dev/zero | tr '\0' x >s/f
	for signal in TERM HUP; do
		"$STAGETOOL" copy --engine=readwrite s d 2>err &
		pid=$!
		while kill -0 $pid 2>/dev/null && ! compgen -G 'd/.stagetool-tmp.*' >/dev/null; do
			sleep 0.01
		done
		kill -$signal $pid 2>/dev/null || true
		status=0
		wait $pid || status=$?
		[ "$status" -eq 0 ] || status_is $((128 + $(kill -l $signal)))
		if grep -q "SIG$signal" err; then
			[ ! -e d/f ]
		else # it was through before the signal came
			cmp s/f d/f
		fi
		no_temporaries d
		rm -rf d
	done
}

@test "a signal that is ignored stays ignored" {
	echo x >s/f
	run env --ignore-signal=HUP "$STAGETOOL" copy s d
	status_is 0
	head -c 100M /dev/zero >s/g
	env --ignore-signal=TERM "$STAGETOOL" copy --engine=readwrite s e 2>err &
	pid=$!
	while kill -0 $pid 2>/dev/null && [ ! -d e ]; do
		sleep 0.01
	done
	kill -TERM $pid 2>/dev/null || true
	wait $pid
	cmp s/g e/g
}
