package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/alecthomas/kong"

	"hubcloud/streams/streamstest"
)

// limitRow matches the flag and the default in a row of the table in deploy/docs/limits.md.
var limitRow = regexp.MustCompile("(?m)^\\|[^|]+\\| `--([a-z-]+)` \\| `([^`]+)` \\|")

// serveFlags returns the flags of the command serve by name.
func serveFlags(t *testing.T) map[string]*kong.Flag {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Name("hubcloud"))
	streamstest.Must(t, err)
	flags := map[string]*kong.Flag{}
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			flags[flag.Name] = flag
		}
	}
	return flags
}

// Every flag of the group Limits has one row in limits.md, and every row has an existing flag with
// its default.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	flags := serveFlags(t)
	text, err := os.ReadFile("../../../../deploy/docs/limits.md")
	streamstest.Must(t, err)
	rows := map[string]bool{}
	for _, row := range limitRow.FindAllStringSubmatch(string(text), -1) {
		name, value := row[1], row[2]
		switch flag := flags[name]; {
		case rows[name]:
			t.Errorf("--%s has two rows in limits.md", name)
		case flag == nil:
			t.Errorf("limits.md has --%s; serve has no such flag", name)
		case flag.Default != value:
			t.Errorf("limits.md has --%s with the default %s, want %s", name, value, flag.Default)
		}
		rows[name] = true
	}
	for name, flag := range flags {
		if flag.Group != nil && flag.Group.Key == "Limits" && !rows[name] {
			t.Errorf("--%s (%s) has no row in limits.md", name, flag.Default)
		}
	}
	if len(rows) < 10 {
		t.Errorf("only %d rows were found in limits.md", len(rows))
	}
}
