package typescript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/nodejs"
)

const source = "../../httpapi/client/typescript"

func TestMain(m *testing.M) {
	harness.Main(m, 0)
}

// TestPackage builds, packs and installs the client once, and runs programs with it.
func TestPackage(t *testing.T) {
	t.Parallel()
	project := install(t)
	t.Run("calls", func(t *testing.T) { t.Parallel(); calls(t, project) })
	t.Run("outcomes", func(t *testing.T) { t.Parallel(); outcomes(t, project) })
	t.Run("the feed over restarts", func(t *testing.T) { t.Parallel(); feedRestarts(t, project) })
	t.Run("README", func(t *testing.T) { t.Parallel(); readme(t, project) })
	t.Run("gaps and resets", func(t *testing.T) { t.Parallel(); resets(t, project) })
}

// install returns the folder of a project in which the packed client is installed and the test's
// programs are.
func install(t *testing.T) string {
	t.Helper()
	tools := nodejs.Install(t, source, "typescript")
	dir, err := os.MkdirTemp(tools, "run-")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	harness.Must(t, os.CopyFS(filepath.Join(dir, "client", "src"), os.DirFS(filepath.Join(source, "src"))))
	for _, name := range []string{"package.json", "tsconfig.json", "README.md"} {
		harness.CopyFile(t, filepath.Join(source, name), filepath.Join(dir, "client", name))
	}
	client := filepath.Join(dir, "client")
	document, err := filepath.Abs("../../httpapi/openapi.yaml")
	harness.Must(t, err)
	nodejs.Run(t, nodejs.Program(
		t, tools, client, "openapi-typescript", document, "--output", "expected.ts",
	))
	if !bytes.Equal(read(t, client, "expected.ts"), read(t, client, "src/api.ts")) {
		t.Errorf("src/api.ts is not what `npm run generate` writes in %s", source)
	}
	nodejs.Run(t, nodejs.Program(t, tools, client, "tsc", "-p", "."))
	packed := nodejs.Run(t, nodejs.Command(
		t, client, "npm", "pack", "--json", "--ignore-scripts", "--offline",
	))
	var packages []struct {
		Filename string
		Files    []struct{ Path string }
	}
	harness.Must(t, json.Unmarshal([]byte(packed), &packages))
	for _, file := range packages[0].Files {
		if !strings.HasPrefix(file.Path, "dist/") &&
			!slices.Contains([]string{"README.md", "package.json"}, file.Path) {
			t.Errorf("the package has %s, want only dist, README.md and package.json", file.Path)
		}
	}
	project := filepath.Join(dir, "project")
	harness.Must(t, os.Mkdir(project, 0o755))
	harness.Must(t, os.WriteFile(
		filepath.Join(project, "package.json"), []byte(`{"private": true}`), 0o600,
	))
	nodejs.Run(t, nodejs.Command(
		t, project, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund",
		filepath.Join(client, packages[0].Filename),
	))
	for _, name := range []string{"calls.mjs", "feed.mjs", "follow.mjs", "jammed.mjs", "outcomes.mjs"} {
		harness.CopyFile(t, name, filepath.Join(project, name))
	}
	return project
}

// readmeNames are what the examples of the README leave to their reader.
const readmeNames = `declare const process: { env: Record<string, string | undefined> };
declare const hubId: string, position: string;
declare function handle(...what: unknown[]): void;
declare function store(position: string): void;
`

// readme compiles the examples of the README, and runs the first against a service.
func readme(t *testing.T, project string) {
	text := string(read(t, source, "README.md"))
	blocks := regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 5 {
		t.Fatalf("got %d examples, want those of the README", len(blocks))
	}
	first := blocks[0][1]
	header, _, _ := strings.Cut(first, "\nconst client")
	args := []string{
		"--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "nodenext",
		"--lib", "es2022,dom,dom.iterable",
	}
	for i, block := range blocks {
		program := block[1]
		if i > 0 {
			program = strings.Replace(header, "isGap", "isFeedGap, isGap", 1) + program
			if !strings.Contains(program, "const client") {
				program = "declare const client: Client;\n" + program
			}
		}
		name := fmt.Sprintf("readme%d.mts", i)
		content := readmeNames + program
		harness.Must(t, os.WriteFile(filepath.Join(project, name), []byte(content), 0o600))
		args = append(args, name)
	}
	nodejs.Run(t, nodejs.Program(t, filepath.Join(project, "..", ".."), project, "tsc", args...))

	target := harness.NewTarget(t)
	tenant := target.Tenant("Readme")
	hub := target.VirtualHub(tenant, house)
	program := strings.NewReplacer(
		"https://api.example.com/v1", tenant.Base, "process.env.HUBCLOUD_KEY!", strconv.Quote(tenant.Key),
		"hub-7k2m-q4xd-93ta", hub.ID(), ", 3, {", ", 1, {",
	).Replace(first) + "console.log(outcome.status);\n"
	harness.Must(t, os.WriteFile(filepath.Join(project, "readme.mjs"), []byte(program), 0o600))
	got := nodejs.Run(t, nodejs.Command(t, project, "node", "readme.mjs"))
	if want := hub.ID() + " online\nsynchronized\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// house are the devices of the tests' hubs.
var house = virtualhub.Config{
	GiveUp: time.Second,
	Devices: []virtualhub.DeviceSpec{
		{Kind: "lock", Name: "Front door"}, {Kind: "color_bulb", Name: "Lamp"},
	},
}

// calls checks the results of every kind of call.
func calls(t *testing.T, project string) {
	target := harness.NewTarget(t)
	tenant := target.Tenant("Calls")
	hub := target.VirtualHub(tenant, house)
	offline := target.Online(tenant)
	offline.Disconnect()
	got := run(t, project, "calls.mjs", map[string]any{
		"base": tenant.Base, "key": tenant.Key, "hub": hub.ID(), "offline": offline.ID,
		"site": tenant.Site,
	})
	want := []string{
		`sites ["One","Two","Three"]`, `hubs 2 true`, `name Cellar null`, `site Mill 2`,
		`devices ["Front door","Lamp"] true`, `states 1 lock true`,
		`live Error: begun true`, `past true`, `audit Mill key true true`,
		`label {"id":1,"name":"Front door","room":"Hall"}`,
		`window open`, `lock synchronized false`, `color synchronized 2`, `idempotent true`,
		`conflict 409 idempotency_conflict 26`, `invalid 400 invalid_request 26`,
		`offline 503 hub_offline 26`, `missing 404 not_found 26`, `members ["owner"]`,
		`owner 403 forbidden 26`, `invitation admin pending`, `revoked 404 not_found 26`,
		`page 1 true`, `abort Error: left`, `key 401 unauthenticated 26`,
		`keyless 401 unauthenticated 26`,
		`retry after true`, `retry after true`, `retry after true`, `retry after true`,
		`nobody true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	hub.Jam(1)
	settings := map[string]any{"base": tenant.Base, "key": tenant.Key, "hub": hub.ID()}
	// the lock was locked by the last command
	if got := run(t, project, "jammed.mjs", settings); !slices.Equal(
		got, []string{"jammed diverged true"},
	) {
		t.Errorf("a jammed lock: got %v, want diverged", got)
	}
}

// outcomes checks that only a report after a command is its outcome. A report of the value from
// before the command passed for it: the hub's state of a lock that had not reported since, or the
// report to an earlier command that asked for the same.
func outcomes(t *testing.T, project string) {
	want := []string{
		"locks: synchronized true", "jams: diverged false",
		"report to an earlier command: pending undefined", "no report: pending undefined",
		"no event for the same value: synchronized true", "another resolution: synchronized 1",
	}
	if got := run(t, project, "outcomes.mjs", nil); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// feedRestarts checks that a program that follows two of three hubs gets each of their events of a
// kind once, each hub's in order, while the service is killed.
func feedRestarts(t *testing.T, project string) {
	target := harness.NewTarget(t, "--stream-lifetime", "2s", "--stream-keepalive", "500ms")
	service := target.OwnService()
	tenant := target.Tenant("Feed")
	var hubs []*virtualhub.Hub
	for range 3 {
		hubs = append(hubs, target.VirtualHub(tenant, house))
	}
	const each, rounds = 10, 3
	for _, hub := range hubs {
		emit(t, hub, each)
		harness.Stored(t, hub)
	}
	program := start(t, project, "feed.mjs", map[string]any{
		"base": tenant.Base, "key": tenant.Key, "after": "",
		"hubs": []string{hubs[0].ID(), hubs[1].ID()}, "count": 2 * each * (rounds + 1),
	})
	for range rounds {
		service.Kill()
		service.Begin()
		for _, hub := range hubs {
			emit(t, hub, each)
			harness.Connected(t, hub)
			harness.Stored(t, hub)
		}
	}
	program.await(t, func(lines []string) bool { return slices.Contains(lines, "page true true") })
	for i, hub := range hubs {
		var got, want []string
		for _, line := range program.lines() {
			if strings.HasPrefix(line, hub.ID()) {
				got = append(got, line)
			}
		}
		for _, event := range tenant.AllEvents(hub.ID(), "") {
			if i < 2 && strings.HasPrefix(event.Type, "channel.") {
				want = append(want, hub.ID()+" "+event.Cursor+" "+event.Type)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("hub %d: got %d events\n%v\nwant %d\n%v", i, len(got), got, len(want), want)
		}
	}
}

// resets checks that lost events are reported as a gap, and a reset of the hub as the need to
// resync, over which a program with onResync continues.
func resets(t *testing.T, project string) {
	target := harness.NewTarget(t)
	tenant := target.Tenant("Resets")
	hub := target.VirtualHub(tenant, house)
	settings := func(resync bool) map[string]any {
		return map[string]any{
			"base": tenant.Base, "key": tenant.Key, "hub": hub.ID(), "after": tenant.Head(hub.ID()),
			"resync": resync, "count": 0,
		}
	}
	emit(t, hub, 1)
	harness.Stored(t, hub)
	strict, lenient := start(t, project, "follow.mjs", settings(false)),
		start(t, project, "follow.mjs", settings(true))
	first, last, err := hub.LoseEvents(7)
	harness.Must(t, err)
	emit(t, hub, 1)
	gap := fmt.Sprintf("gap %d %d", first, last)
	for _, program := range []*program{strict, lenient} {
		program.await(t, func(lines []string) bool { return slices.Contains(lines, gap) })
	}
	harness.Must(t, hub.FactoryReset())
	harness.Connected(t, hub)
	strict.await(t, func(lines []string) bool { return slices.Contains(lines, "ResyncError") })
	lenient.await(t, func(lines []string) bool { return slices.Contains(lines, "resync 2") })
	before := len(lenient.lines())
	emit(t, hub, 1)
	lenient.await(t, func(lines []string) bool { return len(lines) > before })
}

// emit makes the hub report events.
func emit(t *testing.T, hub *virtualhub.Hub, count int) {
	t.Helper()
	for i := range count {
		_, err := hub.Emit(virtualhub.Event{
			Type: "channel.observed", DeviceID: 1,
			Data: map[string]any{
				"key": "scene", "endpoint": 0,
				"value": map[string]any{"scene": i, "attribute": "pressed"},
			},
		})
		harness.Must(t, err)
	}
}

// program is a running program that prints lines.
type program struct {
	mu     sync.Mutex
	output bytes.Buffer
	ended  chan error // receives once, when the program has ended
}

// Write keeps the output.
func (p *program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(text)
}

// lines returns the complete lines that the program has printed.
func (p *program) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.output.String(), "\n")
	return lines[:len(lines)-1]
}

// await waits until the program has printed what is wanted.
func (p *program) await(t *testing.T, enough func(lines []string) bool) {
	t.Helper()
	if !streamstest.Poll(time.Minute, func() bool { return enough(p.lines()) }) {
		t.Fatalf("after a minute the program has printed\n%s", strings.Join(p.lines(), "\n"))
	}
}

// start runs a program of the project until the test ends.
func start(t *testing.T, project, name string, settings map[string]any) *program {
	t.Helper()
	text, err := json.Marshal(settings)
	harness.Must(t, err)
	p := &program{ended: make(chan error, 1)}
	cmd := nodejs.Command(t, project, "node", name, string(text))
	cmd.Stdout, cmd.Stderr = p, p
	harness.Must(t, cmd.Start())
	go func() { p.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Cancel() // fails if the program has ended
		<-p.ended
	})
	return p
}

// run runs a program of the project to its end and returns the lines that it printed.
func run(t *testing.T, project, name string, settings map[string]any) []string {
	t.Helper()
	text, err := json.Marshal(settings)
	harness.Must(t, err)
	out := nodejs.Run(t, nodejs.Command(t, project, "node", name, string(text)))
	return strings.Split(strings.TrimSpace(out), "\n")
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	harness.Must(t, err)
	return text
}
