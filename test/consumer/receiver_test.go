package consumer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hubcloud/httpapi/client"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// The secrets of the receiver: it accepts signatures of the second.
const (
	otherSecret    = "whsec_b3RoZXIgc2VjcmV0IG9mIDMyIGJ5dGVzLCBub3QgaXQ="
	receiverSecret = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdGVzdCdzIHJlY2VpdmVy"
)

// taken is an event that a receiver has taken, with the path and id of its request.
type taken struct {
	Path, ID, Hub, Cursor string
	Scene                 int
}

// receiver takes what `hubcloud forward` posts and has signed. While it is down it ends connections
// instead of answers, before or after it has taken what came.
type receiver struct {
	*httptest.Server
	t        *testing.T
	down     atomic.Bool
	mu       sync.Mutex
	all      []taken
	verifier *standardwebhooks.Webhook
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t}
	var err error
	r.verifier, err = standardwebhooks.NewWebhook(receiverSecret)
	harness.Must(t, err)
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	if err := r.verifier.Verify(body, req.Header); err != nil {
		r.t.Errorf("%s: %v", req.URL, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	down := r.down.Load()
	if down && len(r.all)%2 == 0 {
		panic(http.ErrAbortHandler)
	}
	for _, event := range posted(body) {
		id := req.Header.Get("Webhook-Id")
		r.all = append(r.all, taken{req.URL.Path, id, event.HubID, event.Cursor, sceneOf(event)})
	}
	if down {
		panic(http.ErrAbortHandler)
	}
}

// posted returns the events of a request's body.
func posted(body []byte) []client.Event {
	var batch struct{ Data []client.Event }
	if err := json.Unmarshal(body, &batch); err == nil && len(batch.Data) > 0 {
		return batch.Data
	}
	var one client.Event
	if json.Unmarshal(body, &one) != nil {
		return nil // the event lacks a hub then
	}
	return []client.Event{one}
}

// sceneOf returns the number of a scene event, and 0 for other events.
func sceneOf(event client.Event) int {
	var data struct{ Value client.Scene }
	if event.Type != client.EventChannelObserved || event.Decode(&data) != nil {
		return 0
	}
	return data.Value.Scene
}

// taken returns what has been posted to a path, in order.
func (r *receiver) taken(path string) []taken {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(one taken) bool { return one.Path != path })
}

// await waits until the scene with a number of each hub has been posted to a path.
func (r *receiver) await(path string, scene int, hubs ...string) {
	r.t.Helper()
	streamstest.EventuallyWithin(r.t, 2*time.Minute, fmt.Sprintf("scene %d at %s", scene, path),
		func() bool {
			all := r.taken(path)
			return !slices.ContainsFunc(hubs, func(hub string) bool {
				return !slices.ContainsFunc(all, func(one taken) bool {
					return one.Scene == scene && one.Hub == hub
				})
			})
		})
}

// process is a program that is started again and again.
type process struct {
	t    *testing.T
	make func() *exec.Cmd
	cmd  *exec.Cmd
	log  strings.Builder
}

// begin starts the program.
func (p *process) begin() {
	p.t.Helper()
	p.cmd = p.make()
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	harness.Must(p.t, p.cmd.Start())
}

// kill ends the program with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	_ = p.cmd.Wait()         // killed
}

// processOf starts a program that the end of the test kills.
func processOf(t *testing.T, makeCommand func() *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, make: makeCommand}
	p.begin()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%v printed\n%s", p.cmd.Args, p.log.String())
		}
	})
	return p
}
