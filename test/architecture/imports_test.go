package architecture

import (
	"bufio"
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// room is one folder at the top with what its packages may import of this module, and the reason
// for the rule.
type room struct {
	folder string
	may    []string
	// libraries, when not nil, are the only packages from outside the module and the standard
	// library that it may import.
	libraries []string
	why       string
}

var rooms = []room{
	{
		folder: "hubcloud/domain", may: []string{"hubcloud/domain"},
		libraries: []string{
			"github.com/oklog/ulid/v2",
			"golang.org/x/net/idna",
			"golang.org/x/text/unicode/norm",
		},
		why: "the rules are pure: whoever imports them gets no I/O with them",
	},
	{
		folder: "hubcloud/streams/telemetry", may: []string{"hubcloud/domain"},
		libraries: []string{
			"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
			"go.opentelemetry.io/otel/propagation",
			"go.opentelemetry.io/otel/semconv/v1.43.0", "go.opentelemetry.io/otel/trace",
		},
		why: "every part tells of itself through it: whoever imports it gets no exporter with it",
	},
	{
		folder: "hubcloud/cmd/hubcloud/otlp", may: []string{"hubcloud/streams/telemetry"},
		why: "exporters are for the program: nothing else may import them, and they know of nothing else",
	},
	{
		folder: "hubcloud/streams", may: []string{"hubcloud/domain", "hubcloud/streams"},
		why: "the logs are the ground that everything else stands on",
	},
	{
		folder: "hubcloud/projections",
		may:    []string{"hubcloud/domain", "hubcloud/streams", "hubcloud/projections"},
		why:    "read models are made from streams, and from nothing else, so that they can be rebuilt",
	},
	{
		folder: "hubcloud/hubbridge/protocol", may: []string{"hubcloud/hubbridge/protocol"},
		libraries: []string{},
		why:       "the messages of the hub link are shared with hubs, which know nothing of the cloud",
	},
	{
		folder: "hubcloud/hubbridge/virtualhub",
		may: []string{
			"hubcloud/domain",
			"hubcloud/hubbridge/protocol",
			"hubcloud/hubbridge/virtualhub",
		},
		why: "a virtual hub speaks the hub link and shares nothing else with the cloud's side: it tests that side",
	},
	{
		folder: "hubcloud/hubbridge",
		may:    []string{"hubcloud/domain", "hubcloud/streams", "hubcloud/hubbridge"},
		why:    "hubs must be heard when Postgres is away",
	},
	{
		folder: "hubcloud/httpapi/client", may: []string{}, libraries: []string{},
		why: "whoever imports the client gets the standard library with it, and nothing of the service",
	},
	{
		folder: "hubcloud/httpapi",
		may: []string{
			"hubcloud/domain", "hubcloud/hubbridge/protocol", "hubcloud/httpapi",
			"hubcloud/streams/telemetry", "hubcloud/streams/durablefile",
		},
		why: "the API is an adapter: what it serves comes through interfaces that it declares itself",
	},
}

// TestImports checks the direction of imports against the table. Imports of tests are not checked.
func TestImports(t *testing.T) {
	t.Parallel()
	for pkg, imports := range packages(t) {
		r, ok := roomOf(pkg)
		if !ok {
			continue
		}
		for _, imported := range imports {
			switch {
			case strings.HasPrefix(imported, "hubcloud/"):
				if !within(imported, r.may) {
					t.Errorf(
						"%s imports %s; %s may import %s: %s", pkg, imported, r.folder,
						strings.Join(r.may, ", "), r.why,
					)
				}
			case strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") && r.libraries != nil:
				if !slices.Contains(r.libraries, imported) {
					t.Errorf(
						"%s imports %s; of libraries it may import only %v: %s", pkg, imported,
						r.libraries, r.why,
					)
				}
			}
		}
	}
}

// TestExporters checks that only the program imports the trace exporters, so that no package
// depends on a collector.
func TestExporters(t *testing.T) {
	t.Parallel()
	for pkg, imports := range packages(t) {
		if slices.Contains(imports, "hubcloud/cmd/hubcloud/otlp") &&
			pkg != "hubcloud/cmd/hubcloud/internal/server" {
			t.Errorf("%s imports hubcloud/cmd/hubcloud/otlp", pkg)
		}
	}
}

// TestEveryRoomIsThere fails when a folder of the table has moved: a rule about nothing holds
// nothing.
func TestEveryRoomIsThere(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, r := range rooms {
		found := false
		for pkg := range all {
			found = found || within(pkg, []string{r.folder})
		}
		if !found {
			t.Errorf("no package under %s", r.folder)
		}
	}
}

// roomOf returns the most specific rule for pkg. Test helper packages (…test) have none.
func roomOf(pkg string) (room, bool) {
	var best room
	if strings.HasSuffix(pkg, "test") {
		return best, false
	}
	for _, r := range rooms {
		if within(pkg, []string{r.folder}) && len(r.folder) > len(best.folder) {
			best = r
		}
	}
	return best, best.folder != ""
}

func within(pkg string, folders []string) bool {
	for _, folder := range folders {
		if pkg == folder || strings.HasPrefix(pkg, folder+"/") {
			return true
		}
	}
	return false
}

func packages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "hubcloud/...").
		Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		all[fields[0]] = fields[1:]
	}
	return all
}
