# Completion of haft for bash. The words come from `haft __complete`.
_haft() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local -a words
    # bash itself also splits at the characters of COMP_WORDBREAKS, such as `:` and `=`.
    IFS=$' \t\n' read -r -a words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local word="${words[${#words[@]} - 1]}"
    local IFS=$'\n'
    COMPREPLY=($("${words[0]}" __complete -- "${words[@]:1}" 2> /dev/null | cut -f 1))
    # bash replaces only what follows the last of these characters.
    local breaks=""
    [[ "$COMP_WORDBREAKS" == *:* ]] && breaks+=":"
    [[ "$COMP_WORDBREAKS" == *=* ]] && breaks+="="
    if [[ -n "$breaks" && "$word" == *["$breaks"]* ]]; then
        local before="${word%"${word##*["$breaks"]}"}"
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
}
complete -o default -o bashdefault -F _haft haft
