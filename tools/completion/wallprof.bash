# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of wallprof(1) for bash: source it, or install it as bash-completion/completions/wallprof.

_wallprof_takes_value() {
	case $1 in
	--viewer | --output | -o | --pid | -p | --unwind | --format | --kernel-stacks | --stacks | --fault-source) ;;
	--waker-stacks | --frequency | -F | --duration | -d | --fault-threshold | --unwind-memory | --ring-size) ;;
	--delay | --json-summary | --function | --port | --silence) ;;
	*) return 1 ;;
	esac
}

# The values of the option that stands before the word; fails if it takes none.
_wallprof_values() {
	case $1 in
	--viewer) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -W "https://profiler.firefox.com" -- "$2") ;;
	--output | -o | --json-summary) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--pid | -p) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$2") ;;
	--unwind)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -W "$(cd /proc && echo [0-9]*)" -- "$2")
		;;
	--format) mapfile -t COMPREPLY < <(compgen -W "firefox chrome" -- "$2") ;;
	--kernel-stacks) mapfile -t COMPREPLY < <(compgen -W "all blocked none" -- "$2") ;;
	--stacks) mapfile -t COMPREPLY < <(compgen -W "dwarf fp none" -- "$2") ;;
	--fault-source) mapfile -t COMPREPLY < <(compgen -W "auto fentry events off" -- "$2") ;;
	--delay) mapfile -t COMPREPLY < <(compgen -W "1s signal" -- "$2") ;;
	--waker-stacks) mapfile -t COMPREPLY < <(compgen -W "0 100us off" -- "$2") ;;
	*) _wallprof_takes_value "$1" ;;
	esac
}

_wallprof_options() {
	local all="--help --no-debuginfod --quiet --verbose --version"
	local recording="--as-root --cost --defer-symbols --delay --duration --fault-source --fault-threshold --frequency
		--kernel-stacks --no-source --output --pid --ring-size --stacks --unwind-memory --waker-stacks"

	case $1 in
	"") echo "$all" "$recording" --cpu-graph --format --json-summary --keep-capture ;;
	record) echo "$all" "$recording" ;;
	export) echo "$all" --cpu-graph --format --json-summary --no-source --output ;;
	report) echo "$all" --critical-path --function --json ;;
	open) echo "$all" --no-browser --port --silence --viewer ;;
	doctor) echo "$all" --unwind ;;
	esac
}

_wallprof() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb="" file="" i

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) ((i++)) && break ;;
		-*)
			# A value behind "=" is a word of its own, and so is that.
			if [[ ${COMP_WORDS[i + 1]} == = ]]; then
				((i += 2))
			elif _wallprof_takes_value "${COMP_WORDS[i]}"; then
				((i++))
			fi
			;;
		record | export | report | open | doctor)
			if [[ ! $verb ]]; then
				verb=${COMP_WORDS[i]}
			elif [[ $verb == record ]]; then
				break
			else
				file=1
			fi
			;;
		*) [[ $verb == export || $verb == report || $verb == open ]] && file=1 || break ;;
		esac
	done
	# The command and its arguments complete themselves.
	if ((i < COMP_CWORD)) || [[ $before == -- ]]; then
		declare -F _command_offset >/dev/null && _command_offset "$i" && return
		mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
		return
	fi
	if [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $word == = ]]; then
		word=""
	fi
	_wallprof_values "$before" "$word" && return
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_wallprof_options "$verb")" -- "$word")
	elif [[ $verb == export || $verb == report || $verb == open ]] && [[ ! $file ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	elif [[ ! $verb ]]; then
		mapfile -t COMPREPLY < <(compgen -W "record export report open doctor" -c -- "$word")
	elif [[ $verb == record ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	fi
}

complete -F _wallprof wallprof
