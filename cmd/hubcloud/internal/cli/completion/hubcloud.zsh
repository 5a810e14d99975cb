#compdef hubcloud
_hubcloud() {
    local -a lines
    lines=("${(@f)$(hubcloud complete -- "${(@Q)words[2,$CURRENT]}" 2>/dev/null)}")
    if [[ -n "${lines[*]}" ]]; then
        compadd -l -d lines -- "${(@)lines%%$'\t'*}"
    else
        _files
    fi
}
compdef _hubcloud hubcloud
