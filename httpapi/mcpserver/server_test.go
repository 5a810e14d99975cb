package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"hubcloud/httpapi/client"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session connects a client to a server whose API answers the paths, and the keys it got.
func session(
	t *testing.T, commands bool, answers func(path string) string,
) (s *mcp.ClientSession, server *mcp.Server) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answers(r.URL.RequestURI()))
	}))
	t.Cleanup(api.Close)
	c, err := client.New(client.Config{BaseURL: api.URL, APIKey: "hc_dev_x"})
	streamstest.Must(t, err)
	t.Cleanup(c.Close)
	server = New(Config{
		Commands: commands, Client: func(string) (*client.Client, error) { return c, nil },
	})
	near, far := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), far, nil)
	streamstest.Must(t, err)
	s, err = mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), near, nil)
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = s.Close(); _ = serving.Wait() })
	return s, server
}

// call calls a tool and returns its answer, or its error as text.
func call(t *testing.T, s *mcp.ClientSession, name, arguments string, into any) (failed string) {
	t.Helper()
	result, err := s.CallTool(
		t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)},
	)
	if err != nil {
		return err.Error()
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		return text
	}
	streamstest.Must(t, json.Unmarshal([]byte(text), into))
	return ""
}

// There is a tool that commands devices only if it is allowed. Mistakes are explained.
func TestArguments(t *testing.T) {
	t.Parallel()
	reading, _ := session(t, false, func(string) string { return `{}` })
	commanding, _ := session(t, true, func(string) string { return `{}` })
	for _, c := range []struct {
		session               *mcp.ClientSession
		tool, arguments, says string
	}{
		{reading, sendCommand, `{}`, "unknown tool"},
		{commanding, sendCommand, `{}`, "hub_id"},
		{
			commanding, sendCommand,
			`{"hub_id":"h","device_id":1,"key":"lock","value":true,"wait_seconds":61}`,
			"wait_seconds 61: must be 0 to 60",
		},
		{reading, "list_hubs", `{"limit":51}`, "limit 51: must be 1 to 50"},
		{reading, "list_hubs", `{"limit":0}`, "limit 0: must be 1 to 50"},
		{reading, "list_events", `{"last":0}`, "last 0: must be 1 to 50"},
		{reading, "needs_attention", `{"limit":51}`, "limit 51: must be 1 to 50"},
		{reading, "list_events", `{"last":-1}`, "last -1"},
		{reading, "list_events", `{"since":"now"}`, `since "now": must be a time`},
		{reading, "list_devices", `{"hub_id":"h","starting_after":"x"}`, "starting_after"},
		{reading, "get_device", `{"hub_id":"h","device_id":"1"}`, "device_id"},
		{reading, "get_hub", `{"hub_id":".."}`, "not an id"},
	} {
		var answer any
		if got := call(t, c.session, c.tool, c.arguments, &answer); !strings.Contains(got, c.says) {
			t.Errorf("%s %s: got %q and %v, want the error %q", c.tool, c.arguments, got, answer, c.says)
		}
	}
}

// Over HTTP the caller's key is used. Requests without a key, of another origin or for another host
// are rejected.
func TestHTTP(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 10)
	server := httptest.NewServer(Handler(New(Config{Client: func(
		key string,
	) (*client.Client, error) {
		keys <- key
		return nil, context.Canceled
	}})))
	t.Cleanup(server.Close)
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sites","arguments":{}}}`
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Authorization", "", 401}, {"Authorization", "Basic eDp5", 401},
		{"Origin", "https://example.org", 403}, {"Host", "example.org", 403}, {"X", "", 200},
	} {
		request := httptest.NewRequest("POST", server.URL, strings.NewReader(body))
		request.RequestURI = ""
		request.Header.Set("Authorization", "Bearer hc_dev_mine")
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if request.Header.Set(c.header, c.value); c.header == "Host" {
			request.Host = c.value
		}
		response, err := server.Client().Do(request)
		streamstest.Must(t, err)
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s %q: got %d, want %d", c.header, c.value, response.StatusCode, c.status)
		}
	}
	if got := <-keys; len(keys) != 0 || got != "hc_dev_mine" {
		t.Errorf("got the key %q and %d more, want the caller's once", got, len(keys))
	}
}
