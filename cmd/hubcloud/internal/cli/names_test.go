package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// building is an API with two hubs of the same name, a third one with two locks, and a site.
func building(t *testing.T) (flags []string) {
	t.Helper()
	const hub = `{"id":"hub-demo-0000-000%d","name":%q,"site_id":"s","connection":{}}`
	answers := map[string]string{
		"GET /v1/sites": `{"data":[{"id":"s","name":"Town hall"}]}`,
		"GET /v1/hubs":  fmt.Sprintf(`{"data":[`+hub+","+hub+","+hub+`]}`, 1, "Lobby", 2, "lobby", 3, "Second floor"),
		"GET /v1/hubs/hub-demo-0000-0003/devices": `{"data":[{"id":7,"name":"Front door"},` +
			`{"id":8,"name":"Gate"}]}`,
		"GET /v1/hubs/hub-demo-0000-0003/devices/7": `{"id":7,"name":"Front door","channels":[` +
			`{"key":"switch","endpoint":2,"writable":true,"value":true},{"key":"battery"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if body, _ := io.ReadAll(r.Body); r.Method == http.MethodPost { // repeats the command
			answer, ok = fmt.Sprintf(`{"channel":%s}`, body), true
			w.WriteHeader(http.StatusAccepted)
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"type":"not_found","message":"nothing at ` + r.URL.Path + `"}}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return []string{"--url", server.URL, "--key", "hc_dev_x", "--retry", "0s"}
}

// Hubs and devices have ids and names, and channels are understood as they are printed.
func TestNames(t *testing.T) {
	t.Parallel()
	flags := building(t)
	for _, c := range []struct {
		line string // with commas between the words
		code int
		says string
	}{
		{"devices,second FLOOR", exitOK, "Front door"},
		{"hubs", exitOK, "Town hall"},
		{"devices,Second floor,front door", exitOK, "switch#2"},
		{"devices,hub-demo-0000-0003,7", exitOK, "switch#2"},
		{"send,second floor,front door,switch#2,true", exitOK, `switch#2`},
		{"send,second floor,7,switch,true", exitOK, `switch: `},
		{"devices,lobby", exitUsage, "give an id: hub-demo-0000-0001, hub-demo-0000-0002"},
		{"devices,lobyb", exitUsage, `the nearest name is "Lobby"`},
		{"devices,second floor,back door", exitUsage, `device "back door": none has`},
		{"events,--all,--hub,cellar", exitUsage, `hub "cellar": none has`},
		{"devices,..", exitUsage, `hub "..": none has`},
		{"devices,", exitUsage, `"" is not an id`},
		{"send,second floor,7,switch#,true", exitUsage, "such as switch#1"},
		{"send,second floor,7,switch#-1,true", exitUsage, "such as switch#1"},
		{"state,#1", exitUsage, "such as switch#1"},
	} {
		out, errs, code := run(t, append(strings.Split(c.line, ","), flags...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) ||
			strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: got exit code %d, %s%s; want %d and %q", c.line, code, out, errs, c.code, c.says)
		}
	}
}

// The shells get what the service has, with descriptions.
func TestCompletionAsksTheService(t *testing.T) {
	t.Parallel()
	flags := building(t)[:4]
	for line, want := range map[string]string{
		"devices,S":                             "Second floor\thub-demo-0000-0003",
		"send,Second floor,":                    "7\tFront door,Front door\t7,8\tGate,Gate\t8",
		"send,second floor,7,":                  "switch#2\ttrue",
		"send,second floor,7,switch,":           "",
		"send,lobby,":                           "",
		"events,--hub=hub-demo-0000-0003":       "--hub=hub-demo-0000-0003\tSecond floor",
		"events,--all,--hub,hub-demo-0000-0003": "hub-demo-0000-0003\tSecond floor",
	} {
		words := strings.Split(line, ",")
		args := append(append([]string{"complete", "--", words[0]}, flags...), words[1:]...)
		out, errs, code := run(t, args...)
		if got := strings.ReplaceAll(strings.TrimSpace(out), "\n", ","); code != exitOK || got != want {
			t.Errorf("%s: got exit code %d, %q, %s; want %q", line, code, got, errs, want)
		}
	}
}
