#compdef haft
# Completion of haft for zsh. The words come from `haft __complete`.
_haft() {
    local -a lines candidates
    local line
    lines=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    for line in "${lines[@]}"; do
        [[ -n "$line" ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#candidates} )); then
        _describe haft candidates
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == _haft ]]; then
    _haft "$@"
else
    compdef _haft haft
fi
