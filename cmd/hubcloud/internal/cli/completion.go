package cli

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"hubcloud/domain"
	"hubcloud/httpapi/client"
)

// completionTimeout bounds the requests of a completion.
const completionTimeout = 2 * time.Second

// completionCommand prints the script that makes a shell complete the command line.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// completionScripts ask `hubcloud complete` for the candidates, with the words of the command line
// up to the cursor. A candidate may have a description behind a tab. Where there are no candidates,
// the shell completes the names of files.
//
//go:embed completion
var completionScripts embed.FS

// Run prints the script.
func (c *completionCommand) Run(out Output) error {
	script, err := completionScripts.ReadFile("completion/hubcloud." + c.Shell)
	if err == nil {
		_, err = out.Out.Write(script)
	}
	return err
}

// completeCommand prints the candidates for the last of the words, one a line. The completion
// scripts call it.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the candidates.
func (c *completeCommand) Run(ctx context.Context, app *kong.Kong, out Output) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	line := partialLine{node: app.Model.Node, flags: map[string]string{}}
	for _, candidate := range line.candidates(ctx, words) {
		if _, err := fmt.Fprintln(out.Out, candidate); err != nil {
			return err
		}
	}
	return nil
}

// partialLine is a command line whose last word is being completed.
type partialLine struct {
	// node is the command that the words before the last one select, args are its arguments, and
	// flags the values of flags by name.
	node  *kong.Node
	args  []string
	flags map[string]string
}

// candidates returns the candidates for the last word: the values of a flag or an argument, flags,
// or commands. Without words, the candidates are the commands.
func (l *partialLine) candidates(ctx context.Context, words []string) (matching []string) {
	last := ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	pending := l.read(words)
	var all []string
	switch name, _, assigned := strings.Cut(last, "="); {
	case pending != nil:
		all = l.values(ctx, pending.Value)
	case assigned && strings.HasPrefix(last, "--"):
		if flag := flagOf(l.node, name); flag != nil {
			for _, value := range l.values(ctx, flag.Value) {
				all = append(all, name+"="+value)
			}
		}
	case strings.HasPrefix(last, "-"):
		for _, group := range l.node.AllFlags(true) {
			for _, flag := range group {
				all = append(all, "--"+flag.Name)
			}
		}
	default:
		for _, child := range l.node.Children {
			if !child.Hidden {
				all = append(all, child.Name)
			}
		}
		if n := len(l.args); n < len(l.node.Positional) {
			all = append(all, l.values(ctx, l.node.Positional[n])...)
		}
	}
	for _, candidate := range all {
		if strings.HasPrefix(candidate, last) {
			matching = append(matching, candidate)
		}
	}
	return matching
}

// read reads the words before the last one. It returns the flag whose value the last one is; nil for
// none.
func (l *partialLine) read(words []string) (pending *kong.Flag) {
	for _, word := range words {
		name, value, assigned := strings.Cut(word, "=")
		switch {
		case pending != nil:
			l.flags[pending.Name], pending = word, nil
		case strings.HasPrefix(word, "-"):
			flag := flagOf(l.node, name)
			switch {
			case flag == nil:
			case assigned:
				l.flags[flag.Name] = value
			case !flag.IsBool():
				pending = flag
			}
		default:
			if child := childOf(l.node, word); child != nil {
				l.node, l.args = child, nil
			} else {
				l.args = append(l.args, word)
			}
		}
	}
	return pending
}

// values returns the values that a flag or an argument allows, as far as they are known.
func (l *partialLine) values(ctx context.Context, value *kong.Value) (all []string) {
	if value.Enum != "" {
		return value.EnumSlice()
	}
	what := value.Tag.Get("complete")
	if what == "" {
		return nil
	}
	flag := func(name, variable string) string {
		return cmp.Or(l.flags[name], os.Getenv(variablePrefix+variable))
	}
	flags := apiFlags{
		URL: flag("url", "URL"), Key: flag("key", "API_KEY"), Profile: flag("profile", "PROFILE"),
		DataDir: flag("data-dir", "DATA_DIR"),
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	_ = flags.withClient(ctx, func(api *client.Client) (err error) { // no candidates on an error
		all, err = l.ask(ctx, api, what)
		return err
	})
	return all
}

// ask returns what the service has of something: its id with the name as description, and the name
// with the id.
func (l *partialLine) ask(
	ctx context.Context, api *client.Client, what string,
) (all []string, err error) {
	add := func(id, name string) {
		name = domain.PlainLine(name)
		if all = append(all, id+"\t"+name); name != "" {
			all = append(all, name+"\t"+id)
		}
	}
	switch what {
	case "hub":
		for hub, err := range api.Hubs(ctx, "") {
			if err != nil {
				return all, err
			}
			add(hub.ID, orEmpty(hub.Name))
		}
	case "site":
		for site, err := range api.Sites(ctx) {
			if err != nil {
				return all, err
			}
			add(site.ID, site.Name)
		}
	case "device":
		hub, err := hubID(ctx, api, l.args[0])
		if err != nil {
			return nil, err
		}
		devices, err := api.Devices(ctx, hub)
		for _, device := range devices {
			add(strconv.FormatInt(device.ID, 10), device.Name)
		}
		return all, err
	case "channel":
		hub, id, err := deviceID(ctx, api, l.args[0], l.args[1])
		if err != nil {
			return nil, err
		}
		device, err := api.Device(ctx, hub, id)
		for _, channel := range device.Channels {
			if channel.Writable {
				all = append(all, nameOfChannel(channel.ChannelHead)+"\t"+textOf(channel.Value))
			}
		}
		return all, err
	}
	return all, nil
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
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}
