_hubcloud() {
    local candidate words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("$(printf %q "$candidate")")
    done < <(hubcloud complete -- "${words[@]//[\"\'\\]/}" 2>/dev/null)
}
complete -o default -F _hubcloud hubcloud
