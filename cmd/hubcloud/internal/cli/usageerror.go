package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// checkGiven rejects empty values of the flags of the API's clients. An empty value mostly comes
// from an unset variable of a script: without its --idempotency-key or --site, the command would do
// something else than the script wants.
func checkGiven(command *kong.Context) error {
	node := command.Selected()
	if node == nil || !node.Target.CanAddr() {
		return nil
	}
	client, ok := node.Target.Addr().Interface().(interface{ rejectsEmpty() bool })
	if !ok || !client.rejectsEmpty() {
		return nil
	}
	for _, element := range command.Path {
		if element.Flag == nil {
			continue
		}
		if text, ok := command.FlagValue(element.Flag).(string); ok && text == "" {
			return fmt.Errorf("%s: --%s: must not be empty", node.Path(), element.Flag.Name)
		}
	}
	return nil
}

// commandOf returns the command line that was being parsed. It may be nil.
func commandOf(command *kong.Context, err error) *kong.Context {
	if failed := (*kong.ParseError)(nil); errors.As(err, &failed) {
		return failed.Context
	}
	return command
}

// adviceOn returns what to do about a command line that is wrong. command may be nil.
func adviceOn(args []string, command *kong.Context) string {
	name := "hubcloud"
	if command != nil {
		for _, element := range command.Path {
			if element.Command != nil {
				name += " " + element.Command.Name
			}
		}
	}
	advice := fmt.Sprintf("see `%s --help`", name)
	previous := ""
	for _, arg := range args {
		if arg == "--" {
			break
		}
		_, err := strconv.ParseFloat(arg, 64)
		if err == nil && strings.HasPrefix(arg, "-") && !strings.HasPrefix(previous, "-") {
			return fmt.Sprintf("put -- before %s; %s", arg, advice)
		}
		previous = arg
	}
	return advice
}
