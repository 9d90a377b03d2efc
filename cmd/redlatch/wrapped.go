package main

// After -- there is another command line, and it is completed as one. Each
// shell has a way to do so, for commands such as nice or sudo.

// afterDashesBash follows what cobra generates for bash. bash-completion has
// _command_offset, in newer versions under another name. Without it, names of
// commands and files are completed.
const afterDashesBash = `
__redlatch_or_wrapped() {
    local i
    case "${COMP_WORDS[1]}" in run|dev)
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
            fi
            return
        done
    esac
    __start_redlatch "$@"
}
complete -o default -F __redlatch_or_wrapped redlatch
`

// afterDashesZsh comes before what cobra generates for zsh calls its function.
const afterDashesZsh = `
functions[_redlatch_itself]=$functions[_redlatch]
_redlatch() {
    local i=${words[(i)--]}
    if [[ $words[2] == (run|dev) ]] && (( i < CURRENT )); then
        shift i words
        (( CURRENT -= i ))
        _normal
        return
    fi
    _redlatch_itself "$@"
}
`

// afterDashesFish follows what cobra generates for fish, which offers nothing
// there.
const afterDashesFish = `
function __redlatch_wrapped
    set -l words (commandline -opc)
    contains -- "$words[2]" run dev; and contains -- -- $words
end
function __redlatch_complete_wrapped
    set -l words (commandline -opc)
    set -l i (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $i + 1)..-1]) (commandline -ct))
end
complete -c redlatch -n __redlatch_wrapped -f -a '(__redlatch_complete_wrapped)'
`
