package generators

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/httpapi/docpages"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
	"hubcloud/test/nodejs"
)

func TestMain(m *testing.M) {
	harness.Main(m, 0)
}

// steps are the lines that each workflow prints.
var steps = []string{
	"lists", "command", "stream", "pages",
	"error invalid_request", "error unauthenticated", "error insufficient_scope",
	"error forbidden", "error not_found", "error hub_not_addable", "error cursor_expired",
	"error idempotency_conflict", "error command_refused", "error hub_unavailable",
	"error hub_error", "error hub_timeout", "error hub_offline", "error rate_limited",
}

// settings is what a workflow needs to know.
type settings struct {
	Base          string `json:"base"`
	Key           string `json:"key"`
	NarrowKey     string `json:"narrowKey"`
	BurstKey      string `json:"burstKey"`
	Hub           string `json:"hub"`
	FaultyHub     string `json:"faultyHub"`
	OfflineHub    string `json:"offlineHub"`
	Lamp          int64  `json:"lamp"`
	ForeignCursor string `json:"foreignCursor"`
	UnknownSerial string `json:"unknownSerial"`
	Unlinked      string `json:"unlinked"`
}

// TestGeneratedClients runs the workflow with the client of each generator. The generators that are
// missing or cannot be downloaded are skipped.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	target := harness.NewTarget(t, "--hub-timeout", "2s")
	t.Run("oapi-codegen", func(t *testing.T) {
		t.Parallel()
		program := buildGo(
			t, "go", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", "api/api.go",
			"openapi.yaml",
		)
		settings := prepare(t, target)
		expect(t, nodejs.Run(t, nodejs.Command(t, t.TempDir(), program, settings)), steps)
	})
	t.Run("ogen", func(t *testing.T) {
		t.Parallel()
		program := buildGo(t, "ogen", "ogen", "--target", "api", "--package", "api", "openapi-3.2.yaml")
		settings := prepare(t, target)
		expect(
			t, nodejs.Run(t, nodejs.Command(t, t.TempDir(), program, settings)),
			append(slices.Clone(steps[:4]), "error not_found", "error hub_offline"),
		)
	})
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		dir := buildTypeScript(t)
		for _, name := range []string{"openapi-fetch", "hey-api"} {
			t.Run(name, func(t *testing.T) {
				settings := prepare(t, target)
				program := filepath.Join(dir, "out", name+".js")
				expect(t, nodejs.Run(t, nodejs.Command(t, dir, "node", program, settings)), steps)
			})
		}
	})
}

// expect compares the lines that a workflow printed.
func expect(t *testing.T, printed string, want []string) {
	t.Helper()
	if got := strings.Split(strings.TrimSpace(printed), "\n"); !slices.Equal(got, want) {
		t.Errorf("got the steps\n%s\nwant\n%s", printed, strings.Join(want, "\n"))
	}
}

// described is the document from which clients are generated.
const described = "../../httpapi/openapi.yaml"

// buildGo generates the Go client from openapi.yaml or openapi-3.2.yaml with a generator, and builds
// the workflow of a folder with it. It returns the program's path.
func buildGo(t *testing.T, workflow string, generator ...string) string {
	t.Helper()
	dir := t.TempDir()
	harness.Must(t, os.Mkdir(filepath.Join(dir, "api"), 0o755))
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		harness.CopyFile(t, filepath.Join(workflow, name), filepath.Join(dir, name))
	}
	document, err := os.ReadFile(described)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(filepath.Join(dir, "openapi.yaml"), document, 0o600))
	harness.Must(t, os.WriteFile(
		filepath.Join(dir, "openapi-3.2.yaml"), []byte(docpages.OpenAPI32(string(document))), 0o600,
	))
	inModule := func(args ...string) {
		t.Helper()
		cmd := nodejs.Command(t, dir, "go", args...)
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		switch text := string(out); {
		case err == nil:
		case strings.Contains(text, "dial tcp") || strings.Contains(text, "no such host") ||
			strings.Contains(text, "module lookup disabled") || strings.Contains(text, "403 "):
			t.Skipf("NOT TRIED: the Go proxy cannot be reached:\n%s", text)
		case cmd.ProcessState.ExitCode() < 0:
			t.Skipf("NOT TRIED: go %s was too slow:\n%s", strings.Join(args, " "), text)
		default:
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, text)
		}
	}
	inModule("mod", "download")
	inModule(append([]string{"tool"}, generator...)...)
	// Without the folder's path in it, what was compiled before is taken from the build cache.
	inModule("build", "-trimpath", "-ldflags=-w", "-o", "workflow", ".")
	return filepath.Join(dir, "workflow")
}

// buildTypeScript generates the TypeScript clients and compiles the workflows. It returns the
// folder that has them in out.
func buildTypeScript(t *testing.T) string {
	t.Helper()
	installation := nodejs.Install(t, ".", "generators")
	// below the installation, so that Node finds its packages
	dir, err := os.MkdirTemp(installation, "run-")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	sources, err := filepath.Glob("typescript/*.ts")
	harness.Must(t, err)
	for _, source := range sources {
		harness.CopyFile(t, source, filepath.Join(dir, filepath.Base(source)))
	}
	harness.CopyFile(t, described, filepath.Join(dir, "openapi.yaml"))
	run := func(name string, args ...string) {
		t.Helper()
		nodejs.Run(t, nodejs.Program(t, installation, dir, name, args...))
	}
	run("openapi-typescript", "openapi.yaml", "--output", "api.ts")
	run("openapi-ts", "--input", "openapi.yaml", "--output", "hey", "--client",
		"@hey-api/client-fetch")
	run("tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--lib",
		"es2022,dom,dom.iterable", "--module", "commonjs", "--moduleResolution", "node10",
		"--types", "node", "--esModuleInterop", "--outDir", "out", "openapi-fetch.ts",
		"hey-api.ts")
	return dir
}

// prepare makes an organization with three hubs and writes the settings of a workflow to a file.
// One hub is in order, one fails each device's commands in another way, one is offline.
func prepare(t *testing.T, target *harness.Target) string {
	t.Helper()
	c := target.For(t)
	tenant := c.Tenant("Generated")
	hub := c.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{
		{Kind: "lock", Name: "Front door"}, {Kind: "color_bulb", Name: "Lamp"},
	}})
	harness.Stored(t, hub)
	faulty := c.RawHub()
	faulty.OnRequest(answerByDevice)
	faulty.Enroll()
	faulty.GoOnline()
	tenant.For(t).Add(faulty.Serial)
	offline := c.Online(tenant)
	offline.Disconnect()
	_, narrow := c.OwnService().Key(tenant.Org, "sites:read")
	_, burst := c.OwnService().Key(tenant.Org, "sites:read")
	text, err := json.Marshal(settings{
		Base: tenant.Base, Key: tenant.Key, NarrowKey: narrow, BurstKey: burst,
		Hub: hub.ID(), FaultyHub: faulty.ID, OfflineHub: offline.ID, Lamp: 2,
		ForeignCursor: tenant.For(t).Events(faulty.ID, "", 1, 0).NextCursor,
		UnknownSerial: "TRY-0000-0000-0000", Unlinked: tenant.Site,
	})
	harness.Must(t, err)
	path := filepath.Join(t.TempDir(), "settings.json")
	harness.Must(t, os.WriteFile(path, text, 0o600))
	return path
}

// answerByDevice fails the commands of devices 1 to 3, and does not answer those of others.
func answerByDevice(request harness.Request) harness.Response {
	var params struct {
		DeviceID int `json:"device_id"`
	}
	request.DecodeParams(&params)
	errorTypes := []string{1: "command_refused", 2: "hub_unavailable", 3: "storage"}
	if params.DeviceID >= len(errorTypes) || params.DeviceID == 0 {
		return harness.Response{Silent: true}
	}
	return harness.Response{
		Error: &harness.LinkError{Type: errorTypes[params.DeviceID], Message: "as asked"},
	}
}
