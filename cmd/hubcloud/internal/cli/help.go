package cli

import (
	"cmp"
	"embed"
	"strings"

	"github.com/alecthomas/kong"
)

// helpTexts are the long help texts, each in a file with the words of its command, such as
// projections-drop.txt.
//
//go:embed help
var helpTexts embed.FS

// helpText returns a long help text, "" if there is none.
func helpText(name string) string {
	text, _ := helpTexts.ReadFile("help/" + name + ".txt") // not every command has one
	return strings.TrimSuffix(string(text), "\n")
}

// addHelp sets the long help texts of the commands below a node. name has the words of the node.
func addHelp(node *kong.Node, name string) {
	for _, child := range node.Children {
		words := strings.TrimPrefix(name+"-"+child.Name, "-")
		child.Detail = cmp.Or(child.Detail, helpText(words))
		addHelp(child, words)
	}
}
