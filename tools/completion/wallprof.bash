# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of wallprof(1) for bash: source it, or install it as bash-completion/completions/wallprof.
# wallprof itself says what may stand at a place: src/cli/completion.h.

# Adds the files whose names end in one of the suffixes, and all folders; all files if there is none.
_wallprof_files() {
	local word=$1 suffix file found=""
	shift

	compopt -o filenames
	while IFS= read -r file; do
		for suffix; do
			[[ $file == *"$suffix" ]] && COMPREPLY+=("$file") && found=1 && break
		done
	done < <(compgen -f -- "$word")
	if [[ $found ]]; then
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$word")
	else
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
	fi
}

# Completes the words from that index on as a command of their own.
_wallprof_command() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
	fi
}

_wallprof() {
	local word=${COMP_WORDS[COMP_CWORD]} line
	local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}") parts

	COMPREPLY=()
	[[ $word == = ]] && word=""
	while IFS= read -r line; do
		read -ra parts <<<"$line"
		case ${parts[0]} in
		:files) _wallprof_files "$word" "${parts[@]:1}" ;;
		:folders)
			compopt -o filenames
			[[ ! $word && ${parts[1]} ]] && word=${parts[1]}/
			mapfile -t COMPREPLY < <(compgen -d -- "$word")
			;;
		:commands) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$word") ;;
		:command) _wallprof_command $((parts[1] + 1)) "$word" ;;
		*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done < <("${COMP_WORDS[0]/#\~\//$HOME/}" --complete "${words[@]}" 2>/dev/null)
}

complete -F _wallprof wallprof
