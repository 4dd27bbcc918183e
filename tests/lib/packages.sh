# shellcheck shell=bash disable=SC2154
# Installing what a script needs. Sourced by ./check and ./demo; $root is the project's directory.

# Prints the packages of the given groups that are not installed.
packages_missing() {
	local package group why wanted
	while read -r package group why; do
		case $package in '' | '#'*) continue ;; esac
		: "$why"
		for wanted; do
			[ "$group" = "$wanted" ] || continue
			dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
				grep -qx installed || printf '%s\n' "$package"
		done
	done <"$root/packaging/debian-packages"
}

# Names what is missing where there is no apt-get, by the commands and headers that stand for it.
packages_name_missing() {
	local missing=() command
	for command in gcc make autoconf automake libtoolize pkg-config bats strace rsync jq \
		slurmctld slurmd munged go-md2man; do
		command -v "$command" >/dev/null || missing+=("$command")
	done
	for command in lmdb jansson inih libxxhash cmocka; do
		pkg-config --exists "$command" 2>/dev/null || missing+=("$command (development files)")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	printf 'missing on this system: %s\n' "${missing[@]}"
	echo "Install them by this system's own means and start again. Debian's names, each with its" \
		"use, are in packaging/debian-packages."
	return 1
}

# Installs what is missing of the given groups; a service that a package brings is not started.
packages_need() {
	local log missing policy=/usr/sbin/policy-rc.d made_policy='' status=0
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		packages_name_missing
		return
	fi
	mapfile -t missing < <(packages_missing "$@")
	[ ${#missing[@]} -eq 0 ] && return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "missing packages: ${missing[*]}"
		echo "Run this as root, or install them: apt-get install --no-install-recommends ${missing[*]}"
		return 1
	fi
	echo "installing: ${missing[*]}"
	log=$(mktemp) || return 1
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && made_policy=1
	fi
	{
		packages_install "${missing[@]}" || {
			apt-get update && packages_install "${missing[@]}"
		}
	} >"$log" 2>&1 || status=1
	[ -z "$made_policy" ] || rm -f $policy
	[ $status -eq 0 ] || {
		tail -n 20 "$log"
		echo "apt-get could not install: ${missing[*]}"
	}
	rm -f "$log"
	return $status
}

packages_install() {
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null
}
