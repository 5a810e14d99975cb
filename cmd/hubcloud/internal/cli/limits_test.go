package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/alecthomas/kong"
)

// limitRow matches a row of the table in deploy/docs/limits.md: its flag and its default.
var limitRow = regexp.MustCompile("(?m)^\\|[^|]+\\| `--([a-z-]+)` \\| `([^`]+)` \\|")

// TestLimitsAreDocumented holds the table of limits to the flags of serve: every flag of the group
// Limits has one row, and every row names a flag that there is, with its default. Bounds were
// spread over doc comments and flags before, and some had no flag.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, kong.Name("hubcloud"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]*kong.Flag{}
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			flags[flag.Name] = flag
		}
	}
	text, err := os.ReadFile("../../../../deploy/docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range limitRow.FindAllStringSubmatch(string(text), -1) {
		name, value := row[1], row[2]
		switch flag := flags[name]; {
		case rows[name]:
			t.Errorf("--%s has two rows in limits.md", name)
		case flag == nil:
			t.Errorf("limits.md has --%s; serve has no such flag", name)
		case flag.Default != value:
			t.Errorf("limits.md has --%s with the default %s; it is %s", name, value, flag.Default)
		}
		rows[name] = true
	}
	for name, flag := range flags {
		if flag.Group != nil && flag.Group.Key == "Limits" && !rows[name] {
			t.Errorf("--%s (%s) has no row in limits.md", name, flag.Default)
		}
	}
	if len(rows) < 10 {
		t.Errorf("only %d rows were read", len(rows))
	}
}
