package installation

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"hubcloud/projections/schema"
)

// Every field has a value also in a build without stamps, such as a test.
func TestCurrentHasEveryField(t *testing.T) {
	t.Parallel()
	got := Program()
	fields := reflect.ValueOf(got)
	for i := range fields.NumField() {
		if fields.Field(i).String() == "" {
			t.Errorf("Program().%s is empty", fields.Type().Field(i).Name)
		}
	}
	if got.Schema != schema.Hash() {
		t.Errorf("Schema: got %s, want %s", got.Schema, schema.Hash())
	}
}

// What the linker recorded wins over what the Go command recorded.
func TestFill(t *testing.T) {
	t.Parallel()
	recorded := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		},
	}
	for name, c := range map[string]struct{ stamped, want ProgramInfo }{
		"in a checkout": {
			ProgramInfo{}, ProgramInfo{Version: "1.2.3", Commit: "abc", Date: "2026-01-02T03:04:05Z"},
		},
		"stamped": {
			ProgramInfo{Version: "9.0.0", Commit: "def", Date: "2027-01-01T00:00:00Z"},
			ProgramInfo{Version: "9.0.0", Commit: "def", Date: "2027-01-01T00:00:00Z"},
		},
	} {
		got := c.stamped
		if got.fill(recorded); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	var devel ProgramInfo
	devel.fill(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}})
	if devel != (ProgramInfo{}) {
		t.Errorf("a build outside a checkout: got %+v, want nothing", devel)
	}
}

func TestHTTPClientNamesTheVersion(t *testing.T) {
	t.Parallel()
	agents := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		agents <- r.Header.Get("User-Agent")
	}))
	defer server.Close()
	client := HTTPClient(time.Minute)
	answer, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	client.CloseIdleConnections()
	if got := <-agents; got != UserAgent() {
		t.Errorf("User-Agent: got %q, want %q", got, UserAgent())
	}
}
