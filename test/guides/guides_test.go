package guides

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/nodejs"
)

const pages = "../../httpapi/docs"

func TestMain(m *testing.M) {
	harness.Main(m, 0)
}

// block is a fenced block of a page, with the lines that its output must have.
type block struct {
	language, options, text string
	output                  []string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]+)([^\n]*)\n(.*?)^```$")

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pages, page))
	harness.Must(t, err)
	var all []block
	for _, found := range fence.FindAllStringSubmatch(string(text), -1) {
		if found[1] == "text" && len(all) > 0 {
			all[len(all)-1].output = strings.Split(strings.TrimSpace(found[3]), "\n")
			continue
		}
		all = append(all, block{language: found[1], options: found[2], text: found[3]})
	}
	return all
}

// needs returns the programs that a block needs.
func (b block) needs() []string {
	_, needs, _ := strings.Cut(b.options, "needs=")
	return strings.Split(needs, ",")
}

// missing returns the programs that a block needs and that are not installed.
func (b block) missing() []string {
	var missing []string
	for _, name := range b.needs() {
		if _, err := exec.LookPath(name); name != "" && err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// installation is the service of the guides.
type installation struct {
	// home is the folder that has data, and http the address of the API.
	home, http string
	env        []string
}

// TestGuides runs every page of the index.
func TestGuides(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("NOT TRIED: the guides need %s", name)
		}
	}
	index, err := os.ReadFile(filepath.Join(pages, "README.md"))
	harness.Must(t, err)
	var names []string
	for _, found := range regexp.MustCompile(`\]\(([a-z-]+\.md)\)`).FindAllSubmatch(index, -1) {
		names = append(names, string(found[1]))
	}
	files, err := filepath.Glob(filepath.Join(pages, "*.md"))
	harness.Must(t, err)
	if len(names) != len(files)-1 {
		t.Errorf("the index has %d guides, the folder %d", len(names), len(files)-1)
	}
	service := begin(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service.try(t, name)
		})
	}
}

// begin starts the service with the command of the first guide, on free ports.
func begin(t *testing.T) *installation {
	t.Helper()
	all := blocks(t, "first-call.md")
	start := slices.IndexFunc(all, func(b block) bool {
		return strings.TrimSpace(b.options) == "background"
	})
	if start < 0 {
		t.Fatal("first-call.md does not start a service")
	}
	source, err := filepath.Abs("../..")
	harness.Must(t, err)
	s := &installation{home: t.TempDir(), http: streamstest.FreeAddress(t)}
	// Folders of its own: the one of the binary may have another program with the name, and the cache
	// is where sim finds virtual hubs.
	programs := t.TempDir()
	harness.Must(t, os.Symlink(harness.Binary(t), filepath.Join(programs, "hubcloud")))
	s.env = append(
		os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "SOURCE="+source,
		"XDG_CACHE_HOME="+t.TempDir(),
	)
	cmd := nodejs.Command(t, s.home, "bash", "-c", "exec "+all[start].text)
	cmd.Env = append(
		s.env, "HUBCLOUD_HTTP="+s.http, "HUBCLOUD_ADMIN="+streamstest.FreeAddress(t),
		"HUBCLOUD_MQTT="+streamstest.FreeAddress(t), "HUBCLOUD_NATS="+streamstest.FreeAddress(t),
	)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	harness.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // fails if it has ended
		<-ended
		if t.Failed() {
			t.Logf("the service printed\n%s", log.String())
		}
	})
	data := filepath.Join(s.home, "data")
	streamstest.EventuallyWithin(t, 2*time.Minute, "hubcloud dev is ready", func() bool {
		out, _, _ := harness.RunBinary(t, "hubs", "--data-dir", data, "--json", "--retry", "0s")
		return strings.Count(out, `"status":"online"`) == 3
	})
	return s
}

// try runs the commands of a page in a folder of their own, which has the service's data.
func (s *installation) try(t *testing.T, page string) {
	t.Helper()
	home := t.TempDir()
	harness.Must(t, os.Symlink(filepath.Join(s.home, "data"), filepath.Join(home, "data")))
	script := "set -euo pipefail\n"
	var tried []block
	all := blocks(t, page)
	if slices.ContainsFunc(all, func(b block) bool { return slices.Contains(b.needs(), "npm") }) {
		packages := filepath.Join(nodejs.Install(t, ".", "guides"), "node_modules")
		harness.Must(t, os.Symlink(packages, filepath.Join(home, "node_modules")))
	}
	for _, b := range all {
		switch missing := b.missing(); {
		case b.language == "yaml":
			var value map[string]any
			if err := yaml.Unmarshal([]byte(b.text), &value); err != nil || len(value) == 0 {
				t.Errorf("a block of YAML: got %v, %v", value, err)
			}
		case b.language != "sh" || strings.TrimSpace(b.options) == "background":
		case len(missing) > 0:
			t.Logf("NOT TRIED: %v are not installed:\n%s", missing, b.text)
		default:
			script += fmt.Sprintf("echo %s\n%s\n", marker(len(tried)), b.text)
			tried = append(tried, b)
		}
	}
	script = strings.ReplaceAll(script, "localhost:8080", s.http)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := nodejs.Command(t, home, "bash", "-c", script)
	context.AfterFunc(ctx, func() { _ = cmd.Cancel() }) // fails if it has ended
	cmd.Env = append(
		s.env, "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"ANALYTICS="+s.database(t, page), "GOCACHE="+goCache(t), "GOFLAGS=",
	)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	for i, b := range tried {
		_, printed, _ := strings.Cut(out.String(), marker(i)+"\n")
		printed, _, _ = strings.Cut(printed, marker(i+1)+"\n")
		if !b.matches(printed) {
			t.Errorf(
				"%s\nprinted\n%s\nwant\n%s", b.text, printed, strings.Join(b.output, "\n"),
			)
		}
	}
}

func marker(i int) string { return fmt.Sprintf("=== block %d ===", i) }

// matches reports whether the output has the lines of the page, in their order.
func (b block) matches(printed string) bool {
	lines := strings.Split(printed, "\n")
	for _, want := range b.output {
		parts := strings.Split(want, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		form := regexp.MustCompile("^" + strings.Join(parts, ".*") + `\s*$`)
		at := slices.IndexFunc(lines, form.MatchString)
		if at < 0 {
			return false
		}
		lines = lines[at+1:]
	}
	return true
}

// database makes a database beside the service's own and returns its URL. It returns "" for pages
// that use none, and where psql is missing.
func (s *installation) database(t *testing.T, page string) string {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil || page != "analytics.md" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(s.home, "data", "postgres.json"))
	harness.Must(t, err)
	var own struct{ URL string }
	harness.Must(t, json.Unmarshal(text, &own))
	nodejs.Run(t, nodejs.Command(
		t, s.home, psql, own.URL, "--command", "CREATE DATABASE analytics",
	))
	address, err := url.Parse(own.URL)
	harness.Must(t, err)
	address.Path = "/analytics"
	return address.String()
}

// goCache returns the folder in which the go command caches what it builds.
func goCache(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(nodejs.Run(t, nodejs.Command(t, ".", "go", "env", "GOCACHE")))
}
