# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of wallprof(1) for fish: install it as fish/vendor_completions.d/wallprof.fish.
# wallprof itself says what may stand at a place: src/cli/completion.h.

function __wallprof_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l word $words[-1]
    set -l before (string match -r -- '^--[^=]*=' $word)
    set -l text (string replace -r -- '^--[^=]*=' '' $word)

    for line in ($words[1] --complete $words[2..-1] 2>/dev/null)
        set -l parts (string split ' ' -- $line)
        switch $parts[1]
            case :files
                # Files with such names and folders; all files if there is none.
                set -l ends (string escape --style=regex -- $parts[2..-1] | string join '|')
                set -l all (__fish_complete_path $text)
                set -l found (string match -r -- "^[^\t]*(?:$ends|/)(?:\t.*)?\$" $all)
                string match -q -r -- "^[^\t]*[^/\t](?:\t|\$)" $found; or set found $all
                string replace -r -- '^' "$before" $found
            case :folders
                test -z "$text"; and set -q parts[2]; and set text $parts[2]/
                __fish_complete_directories $text '' | string replace -r -- '^' "$before"
            case :commands
                complete -C (string escape -- $word)
            case :command
                set -l first (math $parts[2] + 2)
                complete -C (string join ' ' -- (string escape -- $words[$first..-2]) "$words[-1]")
            case '*'
                echo $line
        end
    end
end

complete -c wallprof -f -k -a '(__wallprof_complete)'
