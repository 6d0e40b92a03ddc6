# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# Read by tools/run and tools/test, which set $root: install packages, build.
# Says everything on stderr.

me=tools/$(basename "$0")

say() {
	echo "$me: $*" >&2
}

die() {
	say "$@"
	exit 125
}

# Names of the packages of these kinds in tools/packages that are not installed.
# A third column names a command that makes the package needless.
missing_packages() {
	wanted=
	while read -r kind package command; do
		case " $* " in *" $kind "*) ;; *) continue ;; esac
		if [ -n "$command" ] && command -v "$command" >/dev/null; then
			continue
		fi
		wanted="$wanted $package"
	done <"$root/tools/packages"
	# shellcheck disable=SC2086
	dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null |
		awk -v wanted="$wanted" '
			$2 == "installed" { installed[$1] = 1 }
			END {
				n = split(wanted, package, " ")
				for (i = 1; i <= n; i++)
					if (!(package[i] in installed))
						printf " %s", package[i]
			}'
}

install_packages() {
	command -v dpkg-query >/dev/null ||
		die "this is not a Debian system (no dpkg): install what tools/packages lists by hand, then run meson and ninja"
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null || die "there is no apt-get to install:$missing"
	[ "$(id -u)" = 0 ] || die "not root, so these packages cannot be installed:$missing"
	say "installing:$missing"
	apt="apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o APT::Install-Recommends=false"
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive $apt update </dev/null >&2 &&
		DEBIAN_FRONTEND=noninteractive $apt install $missing </dev/null >&2 ||
		die "apt-get could not install:$missing (is the machine offline?)"
}

# Was all built, with these options (none: whichever) and from these sources?
is_built() {
	[ -e "$dir/built" ] || return 1
	[ $# = 0 ] || [ "$*" = "$(cat "$dir/options" 2>/dev/null)" ] || return 1
	[ -z "$(cd "$root" && find bpf src export tests tools meson.build meson_options.txt \
		-newer "$dir/built" -not -name '*.py' -not -name __pycache__ \
		-not -path tests/e2e -print -quit)" ]
}

# build DIR MESON_OPTIONS…: configures once, and again for other options, then builds if a
# source is newer than the last build. No options: as it is. What root builds belongs to
# the owner of the tree. $targets: what to build, if not all.
build() {
	dir=$root/$1
	shift
	! is_built "$@" || return 0
	mkdir -p "$dir"
	# Two at a time would spoil each other's work. The lock is not for wallprof to keep.
	(
		flock 9
		touch "$dir/built.new"
		wanted_options=$*
		if [ ! -e "$dir/build.ninja" ]; then
			say "configuring ${dir#"$root"/}"
			set -- setup "$dir" "$root" "$@"
		else
			set -- ${1:+configure "$dir"} "$@"
		fi
		[ $# = 0 ] || PATH=$PATH:/usr/sbin meson "$@" >"$dir/setup.log" 2>&1 || {
			cat "$dir/setup.log" >&2
			exit 1
		}
		say "building ${dir#"$root"/}"
		# shellcheck disable=SC2086
		PATH=$PATH:/usr/sbin ninja -C "$dir" ${targets:-} >&2 || exit 1
		[ -z "$wanted_options" ] || echo "$wanted_options" >"$dir/options"
		mv "$dir/built.new" "$dir/built"
		[ "$(id -u)" != 0 ] || chown -R --reference="$root" "$dir"
	) 9>"$dir/lock" || die "the build failed"
}
