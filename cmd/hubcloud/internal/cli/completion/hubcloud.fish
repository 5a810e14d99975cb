function __hubcloud_complete
    set -l words (commandline -opc)
    set -l lines (hubcloud complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
    and test -n "$lines"
    and printf '%s\n' $lines
    or __fish_complete_path (commandline -ct)
end
complete -c hubcloud -f -a '(__hubcloud_complete)'
