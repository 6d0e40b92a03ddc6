# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh disable=SC2154
# Read by tools/run and tools/test, which set $root: install packages, build.
# Says everything on stderr.

me=tools/${0##*/}

say() {
	echo "$me: $*" >&2
}

die() {
	say "$@"
	exit 125
}

# is_present SIGN: whether that command, library or header is there (tools/packages).
is_present() {
	case $1 in
	-) return 1 ;;
	pkg-config:*) pkg-config --exists "${1#pkg-config:}" 2>/dev/null ;;
	"<"*) echo "#include $1" | ${CC:-cc} -E - >/dev/null 2>&1 ;;
	*) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
	esac
}

# The lines "kind packages sign upstream" of these kinds that have no sign of being there.
absent_lines() {
	while read -r kind package sign upstream; do
		case " $* " in *" $kind "*) ;; *) continue ;; esac
		is_present "$sign" || echo "$kind $package $sign $upstream"
	done <"$root/tools/packages"
}

# Of lines on stdin those of which none of the alternative packages is installed: only the packages.
packages_to_install() {
	lines=$(cat)
	# shellcheck disable=SC2046
	installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' \
		$(echo "$lines" | awk '{ gsub(/\|/, " ", $2); print $2 }') 2>/dev/null |
		awk '$2 == "installed" { print $1 }')
	echo "$lines" | awk -v installed="$installed" '
		BEGIN {
			n = split(installed, list)
			for (i = 1; i <= n; i++)
				is[list[i]] = 1
		}
		{
			n = split($2, names, "|")
			for (i = 1; i <= n; i++)
				if (names[i] in is)
					next
			print $2
		}'
}

# Whether this file of apt-get's messages says that a host could not be reached.
is_offline() {
	grep -q -e 'Temporary failure resolving' -e 'Could not resolve' -e 'Could not connect' \
		-e 'Cannot initiate the connection' -e 'Connection failed' \
		-e 'Unable to connect' -e 'Network is unreachable' -e 'Connection timed out' "$1"
}

# run_apt FILE ARGUMENTS…: apt-get with these, its messages also in FILE.
run_apt() {
	messages=$1
	shift
	{
		DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
			-o DPkg::Lock::Timeout=300 -o APT::Install-Recommends=false "$@" \
			</dev/null 2>&1 || echo "$?" >"$messages.status"
	} | tee "$messages" >&2
	[ ! -e "$messages.status" ]
}

# choose PACKAGE|PACKAGE…: the first that apt can install; nothing if there is none.
choose() {
	for candidate in $(echo "$1" | tr '|' ' '); do
		if LC_ALL=C apt-cache policy "$candidate" 2>/dev/null |
			grep -q '^  Candidate: [^(]'; then
			echo "$candidate"
			return
		fi
	done
}

# Installs these packages|alternatives by apt.
install_by_apt() (
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	# What it could not fetch is a failure only if something that is wanted is not found.
	run_apt "$scratch/update" update || true
	chosen='' unknown=''
	for names in "$@"; do
		name=$(choose "$names")
		if [ -n "$name" ]; then
			chosen="$chosen $name"
		else
			unknown="$unknown $names"
		fi
	done
	if [ -n "$unknown" ] && is_offline "$scratch/update"; then
		die "apt-get update failed: the archive cannot be reached (offline?); not found:$unknown"
	elif [ -n "$unknown" ]; then
		die "apt finds no such package in this machine's sources:$unknown"
	fi
	say "installing:$chosen"
	# shellcheck disable=SC2086
	run_apt "$scratch/install" install $chosen && exit
	! is_offline "$scratch/install" ||
		die "apt-get install failed: the archive cannot be reached (offline?); wanted:$chosen"
	die "apt-get install failed (its messages are above); wanted:$chosen"
)

# install_packages KIND…: installs what is missing, or says what is.
install_packages() {
	absent=$(absent_lines "$@")
	[ -n "$absent" ] || return 0
	if ! command -v dpkg-query >/dev/null; then
		# Parts are not built.
		needed=$(echo "$absent" | sed -n '/^part /!s/^\([^ ]* \)\{3\}/  /p')
		[ -z "$needed" ] ||
			die "please install, by your distribution's means (there is no dpkg here):
$needed"
		return 0
	fi
	missing=$(echo "$absent" | packages_to_install | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	command -v apt-get >/dev/null || die "there is no apt-get to install: $missing"
	[ "$(id -u)" = 0 ] || die "not root, so these packages cannot be installed: $missing"
	# shellcheck disable=SC2086
	install_by_apt $missing || exit
}

# Was all built, with these options (none: whichever) and from these sources?
is_built() {
	[ -e "$dir/built" ] || return 1
	[ $# = 0 ] || [ "$*" = "$(cat "$dir/options" 2>/dev/null)" ] || return 1
	[ -z "$(cd "$root" && find bpf src export tests tools meson.build meson_options.txt \
		-newer "$dir/built" -not -name '*.py' -not -name __pycache__ \
		-not -path 'tests/e2e*' -print -quit)" ]
}

run_meson() {
	PATH=$PATH:/usr/sbin meson "$@" >"$dir/setup.log" 2>&1
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
		# A folder of a version that had other options cannot be configured again.
		if [ -e "$dir/build.ninja" ] && [ $# != 0 ] &&
			! run_meson configure "$dir" "$@"; then
			rm -rf "$dir/build.ninja" "$dir/meson-private" "$dir/meson-info"
		fi
		if [ ! -e "$dir/build.ninja" ]; then
			say "configuring ${dir#"$root"/}"
			run_meson setup "$dir" "$root" "$@" || {
				cat "$dir/setup.log" >&2
				exit 1
			}
		fi
		say "building ${dir#"$root"/}"
		# shellcheck disable=SC2086
		PATH=$PATH:/usr/sbin ninja -C "$dir" ${targets:-} >&2 || exit 1
		[ -z "$wanted_options" ] || echo "$wanted_options" >"$dir/options"
		mv "$dir/built.new" "$dir/built"
		[ "$(id -u)" != 0 ] || chown -R --reference="$root" "$dir"
	) 9>"$dir/lock" || die "the build failed"
}
