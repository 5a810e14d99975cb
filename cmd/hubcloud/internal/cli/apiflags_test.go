package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/streamstest"
)

const hub1 = "hub-demo-0000-0001"

// TestAPIUsageErrors tries the commands that use the API.
func TestAPIUsageErrors(t *testing.T) {
	t.Parallel()
	const given = " --url http://127.0.0.1:1 --retry 0s --key k"
	usageErrors(t, [][2]string{
		{"hubs --url localhost", "--url"},
		{"hubs --url ftp://localhost", "--url"},
		{"hubs --url http://localhost/v1?x=y", "--url"},
		{"hubs --url http://localhost", "HUBCLOUD_API_KEY"},
		{"hubs --retry -1s", "--retry"},
		{"hubs --site ", "--site: must not be empty"},
		{"hubs --key=", "--key: must not be empty"},
		{"events " + hub1 + " --after ", "--after: must not be empty"},
		{"send " + hub1 + " 1 lock true --idempotency-key ", "--idempotency-key: must not be empty"},
		{"send " + hub1 + " 1 level -5", "put -- before -5"},
		{"send " + hub1, "hubcloud send --help"},
		{"hubs --retry soon", "--retry"},
		{"hubs " + hub1, hub1},
		{"devices", "hub"},
		{"events", "hub"},
		{"events " + hub1 + " --new", "--follow"},
		{"events " + hub1 + " --follow --new --after c", "used together"},
		{"state lock --value maybe", `--value must be one of "true","false"`},
		{"events " + hub1 + " --url x", "--url"},
		{"send " + hub1 + " 1 lock", "value"},
		{"send " + hub1 + " 1 lock true --limit 0s", "--limit"},
		{"hubs --url http://localhost --key two\twords", "APIKey"},
		{"send " + hub1 + given + " 1 lock true --idempotency-key " + strings.Repeat("x", 256), "255"},
	})
}

// When nothing answers, the error has the address and what to do.
func TestNothingAnswers(t *testing.T) {
	t.Parallel()
	if _, errs, code := run(t, "hubs", "--data-dir", t.TempDir()); code != exitFailed ||
		!strings.Contains(errs, "--url") {
		t.Errorf("exit code %d, printed %q", code, errs)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	url := "http://" + listener.Addr().String()
	listener.Close()
	_, errs, code := run(t, "hubs", "--url", url, "--key", "hc_dev_x", "--retry", "0s")
	if code != exitFailed || !strings.Contains(errs, "nothing answers at "+url) ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("exit code %d, printed %q", code, errs)
	}
}

// By default, commands use the service and the demo's key of the data directory. Flags win over
// both, and the demo's key is sent only to the demo.
func TestAPIAddressAndKey(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		fmt.Fprint(w, `{"data":[],"has_more":false}`)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	keep := func(name string, content any) {
		text, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		streamstest.Must(t, err)
	}
	keep(
		"endpoints.json",
		installation.Endpoints{
			HTTP:      strings.TrimPrefix(server.URL, "http://"),
			PublicURL: "https://elsewhere.example.com",
		},
	)
	keep("dev.json", demoState{Key: "hc_dev_demo"})
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "/v1/hubs Bearer hc_dev_demo"},
		{[]string{"--key", "hc_dev_mine"}, "/v1/hubs Bearer hc_dev_mine"},
		{[]string{"--url", server.URL, "--key", "hc_dev_mine"}, "/v1/hubs Bearer hc_dev_mine"},
		{
			[]string{"--url", server.URL + "/v1/", "--key", "hc_dev_mine"},
			"/v1/hubs Bearer hc_dev_mine",
		},
		{
			[]string{"--url", server.URL + "/behind/v1", "--key", "hc_dev_mine"},
			"/behind/v1/hubs Bearer hc_dev_mine",
		},
		{[]string{"--url", server.URL}, ""},
	} {
		_, errs, code := run(t, append([]string{"hubs", "--json", "--data-dir", dir}, c.args...)...)
		if c.want == "" {
			if code != exitUsage || len(asked) != 0 {
				t.Errorf(
					"%v: exit code %d, printed %q: the demo's key must not go to an address that "+
						"was given",
					c.args, code, errs,
				)
			}
			continue
		}
		if code != exitOK {
			t.Errorf("%v: exit code %d, printed %q", c.args, code, errs)
			continue
		}
		if got := <-asked; got != c.want {
			t.Errorf("%v: requested %q, want %q", c.args, got, c.want)
		}
	}
}

// A device's name may contain escape sequences, which must not reach the terminal, and directions,
// which reversed the rest of its line.
func TestControlCharactersAreReplaced(t *testing.T) {
	t.Parallel()
	const name = `\u001b[2J\u009b\tFront` + "\u202edoor\u2067" + `\u007f`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":1,"name":"%s","channels":[]}]}`, name)
	}))
	t.Cleanup(server.Close)
	for flag, c := range map[string]struct{ want, hidden string }{
		"--json": {`\u009b\tFront\u202edoor\u2067\u007f`, "\x1b\t\x7f\u009b\u202e\u2067"},
		"":       {"Frontdoor", "\x1b\x7f\t\u009b\u202e\u2067"},
	} {
		args := []string{"devices", hub1, "--url", server.URL, "--key", "hc_dev_x"}
		if flag != "" {
			args = append(args, flag)
		}
		out, errs, code := run(t, args...)
		if code != exitOK || strings.ContainsAny(out, c.hidden) ||
			!strings.Contains(out, c.want) {
			t.Errorf("devices %s: got exit code %d, %q and %q, want %s", flag, code, out, errs, c.want)
		}
	}
}

// An interrupt ends events --follow successfully; every other command fails.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"events " + hub1 + " --follow", exitOK, ""},
		{"events " + hub1, exitFailed, "interrupted"},
		{"send " + hub1 + " 1 lock true --wait", exitFailed, "interrupted"},
		{"hubs", exitFailed, "interrupted"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		go func() {
			<-asked
			interrupt()
		}()
		var out, errs bytes.Buffer
		code := Run(
			ctx, append(strings.Split(c.line, " "), "--url", server.URL, "--key", "hc_dev_x"),
			Output{Out: &out, Err: &errs},
		)
		interrupt()
		if code != c.code || (c.says == "") != (errs.Len() == 0) ||
			!strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit code %d, printed %q", c.line, code, errs.String())
		}
	}
}
