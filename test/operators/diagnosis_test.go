package operators

import (
	"encoding/json"
	"hubcloud/streams"
	"hubcloud/test/harness"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// component is one line of `hubcloud doctor --json`.
type component struct {
	Name    string   `json:"name"`
	OK      bool     `json:"ok"`
	Verdict string   `json:"verdict"`
	Detail  string   `json:"detail"`
	Advice  []string `json:"advice"`
}

// diagnosis is the doctor's output by component, and its exit code.
type diagnosis struct {
	t          *testing.T
	components map[string]component
	code       int
	text       string
}

// diagnose runs the doctor on a service and checks its output for consistency: it is quick, the
// exit code matches the verdicts, exactly the unhealthy components have advice, and it contains no
// secret.
func diagnose(t *testing.T, s *harness.Service, args ...string) diagnosis {
	t.Helper()
	began := time.Now()
	out, stderr, code := harness.RunBinary(
		t,
		append([]string{"doctor", "--json", "--data-dir", s.Dir}, args...)...)
	if took := time.Since(began); took > time.Minute { // five seconds on an idle machine
		t.Errorf("doctor took %s, want less than a minute", took)
	}
	d := diagnosis{t: t, components: map[string]component{}, code: code, text: out}
	unhealthy := false
	for line := range strings.Lines(out) {
		var c component
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%q: %v\n%s", line, err, stderr)
		}
		d.components[c.Name] = c
		unhealthy = unhealthy || !c.OK
		if c.Detail == "" ||
			c.OK != (c.Verdict == "ok" || c.Verdict == "warning" || c.Verdict == "skipped") {
			t.Errorf("want a detail, and ok exactly for ok, warning and skipped: %s", line)
		}
		if (c.Verdict != "ok" && c.Verdict != "skipped") != (len(c.Advice) > 0) &&
			c.Verdict != "skipped" {
			t.Errorf("want advice exactly for unhealthy components, got %s", line)
		}
	}
	if want := map[bool]int{false: 0, true: 1}[unhealthy]; code != want || stderr != "" {
		t.Errorf("got exit code %d, want %d: %s%s", code, want, out, stderr)
	}
	for _, secret := range secrets(t, s) {
		if strings.Contains(out, secret) {
			t.Errorf("got a secret in the output: %s", out)
		}
	}
	return d
}

// secrets returns the secrets in a data directory.
func secrets(t *testing.T, s *harness.Service) []string {
	t.Helper()
	all := []string{"pa55word"} // in the addresses of these tests
	credentials, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	if err != nil {
		return all
	}
	for _, user := range credentials.Users {
		all = append(all, user.Password)
	}
	return append(all, credentials.IssuerSeed)
}

// expect checks that a component has the verdict and a detail with all texts.
func (d diagnosis) expect(name, verdict string, texts ...string) {
	d.t.Helper()
	c, ok := d.components[name]
	if !ok || c.Verdict != verdict {
		d.t.Errorf("%s: got %+v, want verdict %s", name, c, verdict)
	}
	for _, text := range texts {
		if !strings.Contains(c.Detail, text) {
			d.t.Errorf("%s: got detail %s, want %q in it", name, c.Detail, text)
		}
	}
}

// allComponents are the components that are always reported.
var allComponents = []string{
	"service", "broker", "disk", "sync", "open_files", "clock", "certificates", "postgres",
	"projections", "mail", "sign_in", "webhooks", "hubs", "shares", "logs", "journal",
}

// expectComplete checks that all components are reported.
func (d diagnosis) expectComplete() {
	d.t.Helper()
	for _, name := range allComponents {
		if _, ok := d.components[name]; !ok {
			d.t.Errorf("component %s: not found in %s", name, d.text)
		}
	}
}

// generous has limits that a busy machine with a small disk does not reach.
var generous = []string{"--disk-free", "0", "--sync-time", "1m", "--clock-skew", "1m"}
