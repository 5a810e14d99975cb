package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hubcloud/httpapi/client"
)

// maxBody is the most bytes of a request over HTTP.
const maxBody = 256 << 10

// instructions tell a model how the tools belong together.
const instructions = "Read and operate hubs in buildings. A site has hubs, a hub has devices, a device has channels " +
	"such as lock, temperature or switch. Begin with list_hubs or needs_attention. list_states answers from what was " +
	"last reported, also for hubs that are offline; list_devices and get_device ask the hub now. A lock's value true " +
	"means locked. All times are UTC."

// Config configures a server.
type Config struct {
	// Version is the program's.
	Version string
	// Client returns a client of the API with a key, which is "" except over HTTP.
	Client func(key string) (*client.Client, error)
	// Commands adds the tool that sends commands to devices.
	Commands bool
}

// New returns a server with the tools.
func New(cfg Config) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "hubcloud", Title: "Device hubs", Version: cfg.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}},
	)
	addReaders(server, cfg)
	if cfg.Commands {
		addCommands(server, cfg)
	}
	return server
}

// add adds a tool. The names of its arguments and their descriptions are the tags of In.
func add[In any](
	server *mcp.Server, cfg Config, name, description string,
	call func(ctx context.Context, api *client.Client, in In) (any, error),
) {
	local := false
	tool := &mcp.Tool{
		Name: name, Description: description,
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: name != sendCommand, OpenWorldHint: &local,
		},
	}
	mcp.AddTool(server, tool, func(
		ctx context.Context, req *mcp.CallToolRequest, in In,
	) (*mcp.CallToolResult, any, error) {
		key := ""
		if extra := req.GetExtra(); extra != nil {
			key = bearer(extra.Header)
		}
		api, err := cfg.Client(key)
		if err != nil {
			return nil, nil, err
		}
		answer, err := call(ctx, api, in)
		return nil, answer, err
	})
}

// Handler serves a server as streamable HTTP.
func Handler(server *mcp.Server) http.Handler {
	handler := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{
			Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
			PropagateRequestCancellation: true,
		},
	)
	withKey := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer(r.Header) == "" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="API key"`)
			http.Error(
				w, "send your API key as a bearer token: Authorization: Bearer hc_…",
				http.StatusUnauthorized,
			)
			return
		}
		handler.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(withKey)
}

// bearer returns the bearer token of a request; "" if there is none.
func bearer(header http.Header) string {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// listArguments select a page of a list.
type listArguments struct {
	Limit         *int   `json:"limit,omitempty" jsonschema:"most items of the answer, 1 to 50; 20 by default"`
	StartingAfter string `json:"starting_after,omitempty" jsonschema:"next_starting_after of the answer before"`
}

const defaultLimit, maxLimit = 20, 50

// page returns the page to ask for.
func (a listArguments) page() (client.PageQuery, error) {
	limit, err := itemCount("limit", a.Limit, defaultLimit)
	return client.PageQuery{Limit: limit, StartingAfter: a.StartingAfter}, err
}

// itemCount returns the number of an argument, which must be 1 to maxLimit, or byDefault if it is
// absent.
func itemCount(name string, n *int, byDefault int) (int, error) {
	if n == nil {
		return byDefault, nil
	}
	if *n < 1 || *n > maxLimit {
		return 0, fmt.Errorf("%s %d: must be 1 to %d", name, *n, maxLimit)
	}
	return *n, nil
}

// listAnswer is a page of a list.
type listAnswer[T any] struct {
	Data []T `json:"data"`
	// Next is what to pass as starting_after for the items that follow; "" for none.
	Next string `json:"next_starting_after,omitempty"`
}

// answerOf returns a page of the API as an answer.
func answerOf[T any](p client.Page[T], err error, id func(T) string) (any, error) {
	if err != nil {
		return nil, err
	}
	answer := listAnswer[T]{Data: p.Data, Next: p.NextStartingAfter}
	if n := len(p.Data); p.HasMore && answer.Next == "" {
		if n == 0 {
			return nil, errors.New("the list does not advance")
		}
		answer.Next = id(p.Data[n-1])
	}
	return answer, nil
}
