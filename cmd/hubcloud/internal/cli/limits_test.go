package cli

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/streams"
)

// limitRow matches the flag and the default in a row of the table in deploy/docs/limits.md.
var limitRow = regexp.MustCompile("(?m)^\\|[^|]+\\| `--([a-z-]+)` \\| `([^`]+)` \\|")

// serveFlags returns the flags of the command serve by name.
func serveFlags(t *testing.T) map[string]*kong.Flag {
	t.Helper()
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
	return flags
}

// Every flag of the group Limits has one row in limits.md, and every row has an existing flag with
// its default.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	flags := serveFlags(t)
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

// The default of a flag is the default of the package that the flag configures.
func TestDefaultsOfPackages(t *testing.T) {
	t.Parallel()
	flags := serveFlags(t)
	for name, want := range map[string]time.Duration{
		"hub-timeout":        domain.DefaultHubTimeout,
		"idempotency-window": streams.DefaultIdempotencyWindow,
		"invitation-ttl":     domain.DefaultInvitationTTL,
		"stream-lifetime":    httpapi.DefaultStreamLifetime,
		"stream-keepalive":   httpapi.DefaultStreamKeepalive,
		"event-retention":    httpapi.DefaultRetention,
	} {
		if got, err := time.ParseDuration(flags[name].Default); err != nil || got != want {
			t.Errorf("--%s: got the default %s, want %s", name, flags[name].Default, want)
		}
	}
	for name, want := range map[string]int{
		"rate":                httpapi.DefaultRate,
		"burst":               httpapi.DefaultBurst,
		"invitations-per-org": domain.DefaultInvitationsPerHour,
		"streams-per-key":     httpapi.DefaultStreamsPerKey,
	} {
		if got := flags[name].Default; got != strconv.Itoa(want) {
			t.Errorf("--%s: got the default %s, want %d", name, got, want)
		}
	}
}
