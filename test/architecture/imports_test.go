package architecture

import (
	"bufio"
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule is what the packages below a folder may import.
type rule struct {
	folder string
	// allowed are the folders of this module that may be imported, with all packages below them.
	allowed []string
	// libraries, if not nil, are the only packages that may be imported from outside the module and
	// the standard library.
	libraries []string
	reason    string
}

var rules = []rule{
	{
		folder: "hubcloud/domain", allowed: []string{"hubcloud/domain"},
		libraries: []string{
			"github.com/oklog/ulid/v2",
			"golang.org/x/net/idna",
			"golang.org/x/text/unicode/norm",
		},
		reason: "the rules are pure: importing them brings no I/O",
	},
	{
		folder: "hubcloud/streams/telemetry", allowed: []string{"hubcloud/domain"},
		libraries: []string{
			"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
			"go.opentelemetry.io/otel/propagation",
			"go.opentelemetry.io/otel/semconv/v1.43.0", "go.opentelemetry.io/otel/trace",
		},
		reason: "every package may use it: importing it brings no exporter",
	},
	{
		folder: "hubcloud/cmd/hubcloud/otlp", allowed: []string{"hubcloud/streams/telemetry"},
		reason: "exporters depend on telemetry only",
	},
	{
		folder: "hubcloud/streams", allowed: []string{"hubcloud/domain", "hubcloud/streams"},
		reason: "all other folders depend on the streams",
	},
	{
		folder:  "hubcloud/projections",
		allowed: []string{"hubcloud/domain", "hubcloud/streams", "hubcloud/projections"},
		reason:  "read models are built from streams only, so that they can be rebuilt",
	},
	{
		folder: "hubcloud/hubbridge/protocol", allowed: []string{"hubcloud/hubbridge/protocol"},
		libraries: []string{},
		reason:    "the messages are shared with hubs, which know nothing of the cloud",
	},
	{
		folder: "hubcloud/hubbridge/virtualhub",
		allowed: []string{
			"hubcloud/domain",
			"hubcloud/hubbridge/protocol",
			"hubcloud/hubbridge/virtualhub",
		},
		reason: "a virtual hub shares only the messages with the cloud, since it tests the cloud",
	},
	{
		folder:  "hubcloud/hubbridge",
		allowed: []string{"hubcloud/domain", "hubcloud/streams", "hubcloud/hubbridge"},
		reason:  "the bridge must work while Postgres is down",
	},
	{
		folder: "hubcloud/httpapi/client", allowed: []string{}, libraries: []string{},
		reason: "importing the client brings only the standard library",
	},
	{
		folder: "hubcloud/httpapi",
		allowed: []string{
			"hubcloud/domain", "hubcloud/hubbridge/protocol", "hubcloud/httpapi",
			"hubcloud/streams/telemetry", "hubcloud/streams/durablefile",
		},
		reason: "the API is an adapter: it uses interfaces that it declares itself",
	},
}

// TestImports checks the direction of imports against the table. Imports of tests are not checked.
func TestImports(t *testing.T) {
	t.Parallel()
	for pkg, imports := range packages(t) {
		r, ok := ruleFor(pkg)
		if !ok {
			continue
		}
		for _, imported := range imports {
			switch {
			case strings.HasPrefix(imported, "hubcloud/"):
				if !within(imported, r.allowed) {
					t.Errorf(
						"%s imports %s; %s may import %s: %s", pkg, imported, r.folder,
						strings.Join(r.allowed, ", "), r.reason,
					)
				}
			case strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") && r.libraries != nil:
				if !slices.Contains(r.libraries, imported) {
					t.Errorf(
						"%s imports %s; the only libraries allowed are %v: %s", pkg, imported,
						r.libraries, r.reason,
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

// TestFoldersExist fails if a folder of the table has no packages, as after a move.
func TestFoldersExist(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, r := range rules {
		found := false
		for pkg := range all {
			found = found || within(pkg, []string{r.folder})
		}
		if !found {
			t.Errorf("no package under %s", r.folder)
		}
	}
}

// ruleFor returns the most specific rule for pkg. Test helper packages (…test) have none.
func ruleFor(pkg string) (rule, bool) {
	var best rule
	if strings.HasSuffix(pkg, "test") {
		return best, false
	}
	for _, r := range rules {
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
