# The trees that are copied. Each function fills the directory $1. Contents are the same on every machine.
# Sourced by run.
# shellcheck shell=bash disable=SC2154,SC2016

# $2 files of 1 to 16 KiB in $3 directories.
make_small() {
	perl -e '
		my ($top, $files, $dirs) = @ARGV;
		my $data = join "", map { pack "N", ($_ * 2654435761) & 0xffffffff } 1 .. 8192;
		for my $d (0 .. $dirs - 1) { mkdir sprintf("%s/d%04d", $top, $d) or die $! }
		for my $i (0 .. $files - 1) {
			open my $f, ">", sprintf("%s/d%04d/f%06d", $top, $i % $dirs, $i) or die $!;
			print $f substr $data, $i % 8192, 1024 + $i * 7919 % 15361;
			close $f or die $!;
		}' "$1" "$2" "$3"
}

make_small100k() { make_small "$1" $((100000 / scale)) 1000; }
make_small20k() { make_small "$1" $((20000 / scale)) 200; }
make_small15k() { make_small "$1" $((15000 / scale)) 150; }
make_onedir() { make_small "$1" $((100000 / scale)) 1; }

# A copy of what this machine has, without what is too large.
make_tree() {
	local parts=(include share)
	[ "$scale" -eq 1 ] || parts=(include/linux)
	tar -C /usr -cf - --exclude='share/locale' "${parts[@]}" 2>/dev/null | tar -C "$1" -xpf -
}

# $2 files of $3 MiB.
make_large() {
	local i
	for ((i = 0; i < $2; i++)); do
		openssl enc -aes-128-ctr -nosalt -K "$(printf '%032d' $i)" -iv 0 </dev/zero 2>/dev/null |
			head -c $(($3 << 20)) >"$1/large$i"
	done
}

make_large16() { make_large "$1" 16 $((256 / scale)); }
make_large8() { make_large "$1" 8 $((256 / scale)); }
make_huge() { make_large "$1" 1 $((4096 / scale)); }
make_clone() { make_large "$1" 1 $((2048 / scale)); }

# 100 MiB of data in 10 GiB.
make_sparse() {
	local i
	truncate -s $((10240 / scale))M "$1/sparse"
	for ((i = 0; i < 100 / scale; i++)); do
		head -c 1M /dev/zero | tr '\0' x |
			dd of="$1/sparse" bs=1M seek=$((i * 100)) conv=notrunc status=none
	done
}

# 20 chains, 400 levels each, with one file a level.
make_deep() {
	perl -e '
		my ($top, $chains, $levels) = @ARGV;
		for my $c (1 .. $chains) {
			chdir $top or die $!;
			for (1 .. $levels) {
				mkdir "level" . $c or die $!;
				chdir "level" . $c or die $!;
				open my $f, ">", "file" or die $!;
				print $f "x" x 3000;
				close $f or die $!;
			}
		}' "$1" 20 $((400 / scale))
}

# change_some DIR: other content in one file of a hundred, the same size.
change_some() {
	find "$1" -type f | LC_ALL=C sort | awk 'NR % 100 == 1' |
		xargs perl -e '
			for (@ARGV) {
				open my $f, "+<", $_ or die $!;
				print $f sprintf "%016x", int rand 2 ** 48;
				close $f or die $!;
			}'
}
