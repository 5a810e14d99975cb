package cli

import (
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
)

// variablePrefix begins the name of the environment variable of each flag.
const variablePrefix = "HUBCLOUD_"

// foreignVariables are variables of others: of Kubernetes, which describes a service named hubcloud
// to each container, and of the tests.
var foreignVariables = regexp.MustCompile(
	`^HUBCLOUD_(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$` +
		`|^HUBCLOUD_(TEST|BENCH)_`,
)

// checkEnvironment returns an error that names an environment variable which is no flag of any
// command, and the nearest one that is. The service would otherwise run without a setting. Other
// commands run in the environments of people and scripts, so they only reject what is close to a
// name.
func checkEnvironment(model *kong.Application, command string, environment []string) error {
	var known []string
	err := kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				known = append(known, strings.TrimPrefix(name, variablePrefix))
			}
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		short, ours := strings.CutPrefix(name, variablePrefix)
		if !ours || slices.Contains(known, short) || foreignVariables.MatchString(name) {
			continue
		}
		if meant := domain.Closest(short, known); meant != "" {
			return installation.Usagef(
				"environment variable %s: there is no such flag; the name is %s%s", name,
				variablePrefix, meant,
			)
		}
		if isService(command) {
			return installation.Usagef("environment variable %s: there is no such flag", name)
		}
	}
	return nil
}

// isService reports whether a command runs the service.
func isService(command string) bool { return command == "serve" || command == "dev" }

// logsJSON reports whether a command line makes the service write its log as JSON.
func logsJSON(args []string, variable func(string) string) bool {
	const flag = "--log-format"
	if !isService(args[0]) {
		return false
	}
	format := variable(variablePrefix + "LOG_FORMAT")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			format = value
		} else if arg == flag && i+1 < len(args) {
			format = args[i+1]
		}
	}
	return format == "json"
}

// jsonErrors writes each line about an error as one of a JSON log.
type jsonErrors struct{ to io.Writer }

// Write writes one line.
func (j jsonErrors) Write(line []byte) (int, error) {
	text := strings.TrimPrefix(strings.TrimSpace(string(line)), "hubcloud: ")
	slog.New(slog.NewJSONHandler(j.to, nil)).Error("ended", "error", text)
	return len(line), nil
}
