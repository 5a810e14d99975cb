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
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
)

const hub1 = "hub-demo-0000-0001"

// A usage error is one line that names the mistake, and exit code 2.
func TestAPIUsageErrors(t *testing.T) {
	t.Parallel()
	given := []string{"--url", "http://127.0.0.1:1", "--key", "hc_dev_x", "--retry", "0s"}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"hubs", "--url", "localhost"}, "--url"},
		{[]string{"hubs", "--url", "ftp://localhost"}, "--url"},
		{[]string{"hubs", "--url", "http://localhost/v1?x=y"}, "--url"},
		{[]string{"hubs", "--url", "http://localhost"}, "HUBCLOUD_API_KEY"},
		{[]string{"hubs", "--url", "http://localhost", "--key", "two words"}, "APIKey"},
		{[]string{"hubs", "--retry", "-1s"}, "--retry"},
		{[]string{"hubs", "--site", ""}, "--site: must not be empty"},
		{[]string{"hubs", "--key="}, "--key: must not be empty"},
		{[]string{"events", hub1, "--after", ""}, "--after: must not be empty"},
		{
			[]string{"send", hub1, "1", "lock", "true", "--idempotency-key", ""},
			"--idempotency-key: must not be empty",
		},
		{[]string{"send", hub1, "1", "level", "-5"}, "put -- before -5"},
		{[]string{"send", hub1}, "hubcloud send --help"},
		{[]string{"hubs", "--retry", "soon"}, "--retry"},
		{[]string{"hubs", hub1}, hub1},
		{[]string{"devices"}, "hub"},
		{[]string{"events"}, "hub"},
		{[]string{"events", hub1, "--new"}, "--follow"},
		{[]string{"events", hub1, "--follow", "--new", "--after", "c"}, "used together"},
		{[]string{"state", "lock", "--value", "maybe"}, `--value must be one of "true","false"`},
		{[]string{"events", hub1, "--url", "x"}, "--url"},
		{[]string{"send", hub1, "1", "lock"}, "value"},
		{[]string{"send", hub1, "1", "lock", "true", "--limit", "0s"}, "--limit"},
		{
			append([]string{
				"send", hub1, "1", "lock", "true", "--idempotency-key",
				strings.Repeat("x", 256),
			}, given...),
			"255",
		},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), c.args, Output{Out: &out, Err: &errs})
		if code != exitUsage || !strings.Contains(errs.String(), c.says) ||
			strings.Count(errs.String(), "\n") != 1 {
			t.Errorf(
				"hubcloud %s: exit code %d, printed %q", strings.Join(c.args, " "), code,
				errs.String(),
			)
		}
	}
}

// When nothing answers, the error has the address and what to do.
func TestNothingAnswers(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{
		"hubs", "--data-dir", t.TempDir(),
	}, Output{Out: &out, Err: &errs}); code != exitFailed ||
		!strings.Contains(errs.String(), "--url") {
		t.Errorf("exit code %d, printed %q", code, errs.String())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	errs.Reset()
	code := Run(
		t.Context(),
		[]string{"hubs", "--url", "http://" + address, "--key", "hc_dev_x", "--retry", "0s"},
		Output{Out: &out, Err: &errs},
	)
	if code != exitFailed ||
		!strings.Contains(errs.String(), "nothing answers at http://"+address) ||
		strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit code %d, printed %q", code, errs.String())
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
		if err != nil {
			t.Fatal(err)
		}
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
		var out, errs bytes.Buffer
		code := Run(
			t.Context(), append([]string{"hubs", "--json", "--data-dir", dir}, c.args...),
			Output{Out: &out, Err: &errs},
		)
		if c.want == "" {
			if code != exitUsage || len(asked) != 0 {
				t.Errorf(
					"%v: exit code %d, printed %q: the demo's key must not go to an address that "+
						"was given",
					c.args, code, errs.String(),
				)
			}
			continue
		}
		if code != exitOK {
			t.Errorf("%v: exit code %d, printed %q", c.args, code, errs.String())
			continue
		}
		if got := <-asked; got != c.want {
			t.Errorf("%v: requested %q, want %q", c.args, got, c.want)
		}
	}
}

// The help of each command has examples, its scopes, and the variable of the key.
func TestAPIHelp(t *testing.T) {
	t.Parallel()
	for command, says := range map[string][]string{
		"hubs": {"hubs:read", "jq"}, "devices": {"hubs:read", "hub-demo-0000-0001 1"},
		"events": {"events:read", "--follow --new", "--after=CURSOR"},
		"send":   {"hubs:command", "lock true --wait", "--limit=30s", "color"},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{
			command, "--help",
		}, Output{Out: &out, Err: &errs}); code != exitOK {
			t.Fatalf("exit code %d, printed %q", code, errs.String())
		}
		says = append(says, "$HUBCLOUD_URL", "$HUBCLOUD_API_KEY", "--retry=5s", "--json")
		for _, want := range says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the help of %s has no %s", command, want)
			}
		}
	}
}

// A device's name may contain escape sequences, which must not reach the terminal.
func TestControlCharactersAreReplaced(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":1,"name":"\u001b[2J\u009b\tDoor\u007f","channels":[]}]}`)
	}))
	t.Cleanup(server.Close)
	var out, errs bytes.Buffer
	code := Run(
		t.Context(), []string{"devices", hub1, "--url", server.URL, "--key", "hc_dev_x"},
		Output{Out: &out, Err: &errs},
	)
	if code != exitOK || strings.ContainsAny(out.String(), "\x1b\x7f\t\u009b") ||
		!strings.Contains(out.String(), "Door") {
		t.Errorf("exit code %d, printed %q and %q", code, out.String(), errs.String())
	}
}

// TestDirectionOfNames: the name of a device reversed the rest of its line in a terminal.
func TestDirectionOfNames(t *testing.T) {
	t.Parallel()
	const name = "Front\u202edoor\u2067"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":1,"name":"%s","channels":[]}]}`, name)
	}))
	t.Cleanup(server.Close)
	for flag, want := range map[string]string{"--json": `"name":"Front\u202edoor\u2067"`, "": "Frontdoor"} {
		args := []string{"devices", hub1, "--url", server.URL, "--key", "hc_dev_x"}
		if flag != "" {
			args = append(args, flag)
		}
		var out, errs bytes.Buffer
		code := Run(t.Context(), args, Output{Out: &out, Err: &errs})
		if code != exitOK || strings.ContainsAny(out.String(), "\u202e\u2067") ||
			!strings.Contains(out.String(), want) {
			t.Errorf("devices %s: got exit code %d, %q and %q, want %s", flag, code, &out, &errs, want)
		}
	}
}

// A command retries for as long as --retry allows, and then reports the last error.
func TestRetryEnds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(
			w,
			`{"error":{"type":"hub_unavailable","message":"its radio is down","request_id":"01J"}}`,
		)
	}))
	t.Cleanup(server.Close)
	for _, command := range [][]string{
		{"hubs"}, {"events", hub1}, {"send", hub1, "1", "lock", "true", "--wait"},
	} {
		var out, errs bytes.Buffer
		began := time.Now()
		code := Run(
			t.Context(),
			append(command, "--url", server.URL, "--key", "hc_dev_x", "--retry", "500ms"),
			Output{Out: &out, Err: &errs},
		)
		if took := time.Since(began); code != exitFailed || took > 30*time.Second ||
			!strings.Contains(errs.String(), "hub_unavailable: its radio is down") {
			t.Errorf("%v: exit code %d after %s, printed %q", command, code, took, errs.String())
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
		args []string
		code int
		says string
	}{
		{[]string{"events", hub1, "--follow"}, exitOK, ""},
		{[]string{"events", hub1}, exitFailed, "interrupted"},
		{[]string{"send", hub1, "1", "lock", "true", "--wait"}, exitFailed, "interrupted"},
		{[]string{"hubs"}, exitFailed, "interrupted"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		go func() {
			<-asked
			interrupt()
		}()
		var out, errs bytes.Buffer
		code := Run(
			ctx, append(c.args, "--url", server.URL, "--key", "hc_dev_x"),
			Output{Out: &out, Err: &errs},
		)
		interrupt()
		if code != c.code || (c.says == "") != (errs.Len() == 0) ||
			!strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit code %d, printed %q", c.args, code, errs.String())
		}
	}
}
