# A tree with every kind of entry and attribute that is to arrive, and its comparison by tools that are not
# ours. For "load every_kind".
# shellcheck shell=bash

# every_kind DIR: builds it in the existing directory DIR, as whoever calls. As root it also holds what only
# root can make; special bits apart (every_kind_special), since they are dropped by rule.
every_kind() {
	(
		set -e
		cd "$1"
		every_kind_names
		every_kind_bytes
		every_kind_links
		every_kind_attributes
		[ "$(id -u)" -ne 0 ] || every_kind_of_root
		every_kind_times
	)
}

every_kind_names() {
	mkdir -p names/' leading and trailing '
	local long name
	long=$(printf 'n%.0s' {1..255})
	(
		cd names
		# shellcheck disable=SC2016
		for name in $'new\nline' $'tab\t' "quote'" 'double"quote' 'back\slash' '\143' $'\xff\xfe' $'\x01' \
			-dash '$(id)' '*' 'semi;colon' 'a,b' 'a:b' 'ünïcödé' '.hidden' "$long"; do
			echo "$name" >./"$name"
		done
		mkdir -- $'dir\n' '-r'
		echo x >$'dir\n/f'
		ln -s -- $'new\nline' $'link\n'
	)
}

every_kind_bytes() {
	mkdir -p bytes/empty
	: >bytes/none
	for size in 1 4095 4096 4097 262144 262145 1048577 20000003; do
		head -c "$size" /dev/urandom >"bytes/$size"
	done
	truncate -s 3M bytes/hole
	printf x | dd of=bytes/ends-in-hole bs=1 seek=5M conv=notrunc status=none
	truncate -s 40M bytes/ends-in-hole
	printf x | dd of=bytes/begins-with-hole bs=1 seek=30M conv=notrunc status=none
	head -c 100000 /dev/zero >bytes/zeros
}

every_kind_links() {
	mkdir -p links/a/deep links/b
	echo one >links/a/file
	ln links/a/file links/a/deep/second
	ln links/a/file links/b/third
	for i in {1..20}; do ln links/a/file "links/b/more$i"; done
	ln -s file links/a/to-file
	ln -s ../b links/a/to-directory
	ln -s nowhere/at/all links/a/dangling
	ln -s / links/a/absolute
	ln -s self links/a/self
	ln links/a/dangling links/b/dangling-too
	mkfifo -m 640 links/fifo
	ln links/fifo links/a/fifo-too
}

every_kind_attributes() {
	mkdir -p attributes/read-only/deep attributes/acl/nested
	echo x >attributes/plain
	setfattr -n user.text -v value attributes/plain
	setfattr -n user.empty attributes/plain
	setfattr -n user.binary -v 0x00ff0a0d00 attributes/plain
	for i in {1..30}; do setfattr -n "user.a-rather-long-name-of-an-attribute-$i" -v "$i" attributes/plain; done
	echo x >attributes/read-only/deep/file
	setfattr -n user.k -v v attributes/read-only/deep/file attributes/read-only/deep attributes/read-only
	setfacl -m u:1:rw,g:2:r attributes/read-only/deep/file
	chmod 444 attributes/read-only/deep/file
	echo x >attributes/acl/file
	# the group has nothing, the mask all: the mode's group bits are not the group's
	setfacl -m u::rw,u:1:rwx,g::-,m::rwx,o::- attributes/acl/file
	setfacl -m u:1:rwx,d:u:1:rx,d:g:2:rwx attributes/acl
	setfacl -m d:o::- attributes/acl/nested
	echo x >attributes/acl/nested/inherits
	for mode in 000 400 600 640 644 666 755 1644; do
		echo x >"attributes/mode$mode"
		chmod "$mode" "attributes/mode$mode"
	done
	for mode in 700 711 750 755 1777 2755; do
		mkdir "attributes/directory$mode"
		echo x >"attributes/directory$mode/f"
		chmod "$mode" "attributes/directory$mode"
	done
	# what the user of a test can not read would fail it
	[ "$(id -u)" -eq 0 ] || rm -f attributes/mode000
}

every_kind_of_root() {
	mkdir root root/group
	for owner in 1:1 65534:0 0:100 4000000000:4000000000; do
		echo x >"root/$owner"
		ln -s x "root/link$owner"
		mkdir "root/directory$owner"
		mkfifo "root/fifo$owner"
		chown -h "$owner" root/*"$owner"
		chmod 640 "root/$owner" "root/fifo$owner"
	done
	chgrp 100 root/group
	chmod 2775 root/group
	mkdir root/group/inherits
}

# Last, from the bottom up: a read-only directory takes no more entries.
every_kind_times() {
	touch -d '1960-01-01 00:00:00.000000001 UTC' bytes/none
	touch -d '2100-01-01 00:00:00.999999999 UTC' bytes/1
	touch -d '1969-12-31 23:59:59.5 UTC' bytes/4095
	touch -hd '2001-02-03 04:05:06.123456789 UTC' links/a/dangling links/a/self links/fifo
	touch -d '2001-02-03 04:05:06.000000100 UTC' links/a/file
	chmod 555 attributes/read-only/deep attributes/read-only
	find . -depth -type d -exec touch -d '2002-03-04 05:06:07.987654321 UTC' {} +
}

# every_kind_special DIR: what loses something by rule (root).
every_kind_special() {
	cp /bin/true "$1/setuid"
	cp /bin/true "$1/setgid"
	cp /bin/true "$1/capable"
	chown 1:1 "$1"/set?id
	chmod 4755 "$1/setuid"
	chmod 2755 "$1/setgid"
	setcap cap_net_raw+ep "$1/capable"
}

# Blocks of data, where a file has many holes.
every_kind_blocks() {
	local file blocks
	for file in hole ends-in-hole begins-with-hole; do
		blocks=$(stat -c %b "$1/bytes/$file")
		[ "$blocks" -lt 2048 ] || {
			echo "$file has $blocks blocks"
			return 1
		}
	done
}

every_kind_sums() {
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum --)
}

# The access lists of all but symlinks, which have none and would be followed.
every_kind_acls() {
	(cd "$1" && find . ! -type l -print0 | LC_ALL=C sort -z | xargs -0 getfacl -n --)
}

every_kind_xattrs() {
	(cd "$1" && find . -print0 | LC_ALL=C sort -z | xargs -0 getfattr -h -d -m - -e hex --)
}

# Which names are one file: each set by the number of its first name.
every_kind_hard_links() {
	(cd "$1" && find . ! -type d -links +1 -printf '%i %p\0' | LC_ALL=C sort -z -k2 |
		every_kind_number)
}

every_kind_number() {
	local -A first=()
	local inode name n=0
	while IFS=' ' read -r -d '' inode name; do
		[ -n "${first[$inode]:-}" ] || first[$inode]=$((++n))
		printf '%s %q\n' "${first[$inode]}" "$name"
	done
}

# every_kind_same A B: fails, and says where, if anything differs.
every_kind_same() {
	local said
	diff <(tree_list "$1") <(tree_list "$2") || return 1
	said=$(rsync -naAXHi --checksum --modify-window=-1 --delete "$1/" "$2/") || return 1
	if [ -n "$said" ]; then
		echo "rsync sees: $said"
		return 1
	fi
	diff <(every_kind_sums "$1") <(every_kind_sums "$2") || return 1
	diff <(every_kind_acls "$1") <(every_kind_acls "$2") || return 1
	diff <(every_kind_xattrs "$1") <(every_kind_xattrs "$2") || return 1
	diff <(every_kind_hard_links "$1") <(every_kind_hard_links "$2") || return 1
	every_kind_blocks "$2"
}
