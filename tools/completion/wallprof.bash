# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of wallprof(1) for bash: source it, or install it as bash-completion/completions/wallprof.

_wallprof_takes_value() {
	case $1 in
	--viewer | --output | -o | --pid | -p | --tid | -t | --cgroup | --unwind | --format | --kernel-stacks | --stacks | --fault-source) ;;
	--waker-stacks | --frequency | -F | --duration | -d | --fault-threshold | --unwind-memory | --ring-size) ;;
	--delay | --json-summary | --function | --port | --idle-timeout | --compression | --capture-compression) ;;
	--flight-recorder | --from | --to | --process | --thread | --state) ;;
	*) return 1 ;;
	esac
}

# Prints the values of the option before the word. Fails if it takes none.
_wallprof_values() {
	case $1 in
	--viewer) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -W "https://profiler.firefox.com" -- "$2") ;;
	--output | -o | --json-summary) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--pid | -p) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$2") ;;
	--tid | -t) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*/task/[0-9]* | sed 's,[0-9]*/task/,,g')" -- "$2") ;;
	--cgroup) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "${2:-/sys/fs/cgroup/}") ;;
	--unwind)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -W "$(cd /proc && echo [0-9]*)" -- "$2")
		;;
	--format) mapfile -t COMPREPLY < <(compgen -W "firefox chrome" -- "$2") ;;
	--kernel-stacks) mapfile -t COMPREPLY < <(compgen -W "all blocked none" -- "$2") ;;
	--stacks) mapfile -t COMPREPLY < <(compgen -W "dwarf fp none" -- "$2") ;;
	--fault-source) mapfile -t COMPREPLY < <(compgen -W "auto fentry events off" -- "$2") ;;
	--delay) mapfile -t COMPREPLY < <(compgen -W "1s signal" -- "$2") ;;
	--state) mapfile -t COMPREPLY < <(compgen -W "running runnable blocked unknown" -- "$2") ;;
	--waker-stacks) mapfile -t COMPREPLY < <(compgen -W "0 100us off" -- "$2") ;;
	*) _wallprof_takes_value "$1" ;;
	esac
}

_wallprof_options() {
	local reading="--from --process --thread --to"
	local all="--help --licenses --no-debuginfod --quiet --verbose --version"
	local recording="--all --as-root --capture-compression --cgroup --cost --defer-symbols --delay --duration --fault-source --fault-threshold
		--flight-recorder --frequency --kernel-stacks --kthreads --no-args --no-source --output --pid --ring-size --stacks --tid --unwind-memory
		--waker-stacks"

	case $1 in
	"") echo "$all" "$recording" --compression --cpu-graph --format --json-summary --keep-capture ;;
	record) echo "$all" "$recording" ;;
	export) echo "$all" "$reading" --compression --cpu-graph --format --json-summary --no-source --output --state ;;
	report) echo "$all" "$reading" --critical-path --function --json ;;
	open) echo "$all" --idle-timeout --no-browser --port --viewer ;;
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
			# COMP_WORDBREAKS makes "=" and the value after it words of their own.
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
	# The command's own completion completes its arguments.
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
		mapfile -t COMPREPLY < <(compgen -W "record export report open doctor help" -c -- "$word")
	elif [[ $verb == record ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	fi
}

complete -F _wallprof wallprof
