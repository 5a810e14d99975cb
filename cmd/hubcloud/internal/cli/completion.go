package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints the script that makes a shell complete the command line.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help returns the long help text.
func (*completionCommand) Help() string {
	return `Prints a script that makes the shell complete commands, flags and their values.

  source <(hubcloud completion bash)                                      # in ~/.bashrc
  source <(hubcloud completion zsh)                                       # in ~/.zshrc, after compinit
  hubcloud completion fish >~/.config/fish/completions/hubcloud.fish`
}

// completionScripts ask `hubcloud complete` for the candidates, with the words of the command line
// up to the cursor. Where there are none, the shell completes the names of files.
var completionScripts = map[string]string{
	"bash": `_hubcloud() {
    local IFS=$'\n'
    COMPREPLY=($(hubcloud complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _hubcloud hubcloud
`,
	"zsh": `#compdef hubcloud
_hubcloud() {
    local -a candidates
    candidates=("${(@f)$(hubcloud complete -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    if [[ -n "${candidates[*]}" ]]; then
        compadd -- "${candidates[@]}"
    else
        _files
    fi
}
compdef _hubcloud hubcloud
`,
	"fish": `function __hubcloud_complete
    set -l words (commandline -opc)
    hubcloud complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c hubcloud -a '(__hubcloud_complete)'
`,
}

// Run prints the script.
func (c *completionCommand) Run(out Output) error {
	_, err := io.WriteString(out.Out, completionScripts[c.Shell])
	return err
}

// completeCommand prints the candidates for the last of the words, one a line. The completion
// scripts call it.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the candidates.
func (c *completeCommand) Run(app *kong.Kong, out Output) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, candidate := range completions(app.Model.Node, words) {
		if _, err := fmt.Fprintln(out.Out, candidate); err != nil {
			return err
		}
	}
	return nil
}

// completions returns the candidates for the last word: the values of a flag, flags, or commands.
// The words before it select the command. Without words, the candidates are the commands.
func completions(node *kong.Node, words []string) []string {
	last := ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	positional := 0
	var pending *kong.Flag // a flag whose value is the next word
	for _, word := range words {
		switch {
		case pending != nil:
			pending = nil
		case strings.HasPrefix(word, "-"):
			if flag := flagOf(node, word); flag != nil && !flag.IsBool() {
				pending = flag
			}
		default:
			if child := childOf(node, word); child != nil {
				node, positional = child, 0
			} else {
				positional++
			}
		}
	}
	var all []string
	switch name, _, assigned := strings.Cut(last, "="); {
	case pending != nil:
		all = enumOf(pending.Value)
	case assigned && strings.HasPrefix(last, "--"):
		if flag := flagOf(node, name); flag != nil {
			for _, value := range enumOf(flag.Value) {
				all = append(all, name+"="+value)
			}
		}
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				all = append(all, "--"+flag.Name)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				all = append(all, child.Name)
			}
		}
		if positional < len(node.Positional) {
			all = append(all, enumOf(node.Positional[positional])...)
		}
	}
	var matching []string
	for _, candidate := range all {
		if strings.HasPrefix(candidate, last) {
			matching = append(matching, candidate)
		}
	}
	return matching
}

// flagOf returns the flag of a node that a word names as --name or -n; nil if there is none, or if
// the word has the flag's value too.
func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// enumOf returns the values that a flag or argument allows; none if it allows others.
func enumOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}
