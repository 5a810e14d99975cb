package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// lock is a handler with one device, a lock, which answers commands only.
type lock struct {
	Handler
	unavailable bool
	commands    atomic.Int32
	// Before each command is accepted: a value is sent to begun and one is received from proceed.
	begun, proceed chan struct{}
}

func (l *lock) channel() Channel {
	return Channel{
		Key: "lock", Readable: true, Writable: true, Available: true,
		ChannelState: domain.NewChannelState(true, noon),
	}
}

func (l *lock) Command(_ context.Context, cmd *Command) error {
	if l.unavailable {
		return Errorf(ErrorHubUnavailable, "the radio is down")
	}
	var value bool
	if json.Unmarshal(cmd.Value, &value) != nil {
		return Errorf(ErrorInvalidRequest, "value must be true or false")
	}
	if l.begun != nil {
		l.begun <- struct{}{}
		<-l.proceed
	}
	c := l.channel()
	c.ChannelState = c.Commanded(value, noon)
	if err := cmd.Accept(c, Change{}); err != nil {
		return err
	}
	l.commands.Add(1)
	return nil
}

func (l *lock) Forget(context.Context, int64) error {
	return fmt.Errorf("read /var/lib/hub: a secret")
}

func newTestEngine(t testing.TB, dir string) *Engine {
	t.Helper()
	cfg := Config{Dir: dir, Logger: streamstest.Logger()}.WithDefaults()
	e, err := newEngine(cfg, "hub-7k2m-q4xd-93ta", func() {})
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = e.close() })
	return e
}

// ask returns the response to a request as JSON.
func (e *Engine) ask(h Handler, method, params string, now time.Time) string {
	return string(mustJSON(e.HandleRequest(context.Background(), h, protocol.Request{
		ID: "1", Token: "t", Method: method, Params: json.RawMessage(params),
	}, now)))
}

func (e *Engine) send(h Handler, id, value string, now time.Time) string {
	return e.ask(h, protocol.MethodChannelsCommand, fmt.Sprintf(
		`{"command_id":%q,"device_id":1,"key":"lock","endpoint":0,"value":%s}`, id, value,
	), now)
}

// TestErrors: errors that the check of hubs does not cause, whose tests try the responses to all
// methods (check.TestRightHub). The text of an error that is no *Error stays within the hub.
func TestErrors(t *testing.T) {
	t.Parallel()
	e, h := newTestEngine(t, ""), &lock{}
	for _, tc := range []struct{ method, params, want string }{
		{"devices.get", `{}`, `{"type":"invalid_request","message":"device_id is missing"}`},
		{"devices.forget", `{"device_id":1}`, `{"type":"hub_error","message":"the hub failed"}`},
		{
			"devices.paint", `{}`,
			`{"type":"unknown_method","message":"this hub has no method \"devices.paint\""}`,
		},
	} {
		want := `{"id":"1","error":` + tc.want + `}`
		if got := e.ask(h, tc.method, tc.params, noon); got != want {
			t.Errorf("%s %s = %s\nwant %s", tc.method, tc.params, got, want)
		}
	}
}

// TestCommandMemory: a command id is remembered for 24 hours, and its entry is deleted with a later
// command.
func TestCommandMemory(t *testing.T) {
	t.Parallel()
	e, h := newTestEngine(t, t.TempDir()), &lock{}
	first := e.send(h, "c1", "false", noon)
	if again := e.send(h, "c1", "false", noon.Add(commandMemory-time.Second)); again != first {
		t.Errorf("second answer %s, want the first, %s", again, first)
	}
	if n := h.commands.Load(); n != 1 {
		t.Errorf("run %d times, want once", n)
	}
	e.send(h, "c2", "false", noon.Add(commandMemory))
	if n := len(e.journal.entriesWith(entryCommand)); n != 1 || len(e.commands) != 1 {
		t.Errorf("%d entries, %d commands after 24 hours, want the new one", n, len(e.commands))
	}
	e.send(h, "c1", "false", noon.Add(commandMemory))
	if n := h.commands.Load(); n != 3 {
		t.Errorf("%d commands have run, want 3: an id is remembered for 24 hours", n)
	}
}

// TestCommandMemoryOverRestart: answers, rejections included, are remembered over a restart with a
// directory; hub_unavailable is not.
func TestCommandMemoryOverRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, h := newTestEngine(t, dir), &lock{}
	accepted, rejected := e.send(h, "accepted", "false", noon), e.send(h, "rejected", "7", noon)
	h.unavailable = true
	unavailable := e.send(h, "unavailable", "false", noon)
	h.unavailable = false
	if !strings.Contains(accepted, "pending") || !strings.Contains(rejected, "invalid_request") ||
		!strings.Contains(unavailable, "hub_unavailable") {
		t.Fatalf("%s\n%s\n%s", accepted, rejected, unavailable)
	}
	streamstest.Must(t, e.close())
	e = newTestEngine(t, dir)
	last := noon.Add(commandMemory - time.Second)
	// Only the id counts: the values differ.
	if got := e.send(h, "accepted", "true", last); got != accepted {
		t.Errorf("after a restart: %s, want the first answer, %s", got, accepted)
	}
	if got := e.send(h, "rejected", "true", last); got != rejected {
		t.Errorf("after a restart: %s, want the first answer, %s", got, rejected)
	}
	if got := e.send(h, "unavailable", "false", last); !strings.Contains(got, "pending") {
		t.Errorf("command that was unavailable: %s, want it to run", got)
	}
}

// TestConcurrentCommands: of two requests with one command id, only the first runs, and commands
// with other ids do not wait for it.
func TestConcurrentCommands(t *testing.T) {
	t.Parallel()
	e, h := newTestEngine(t, ""), &lock{begun: make(chan struct{}), proceed: make(chan struct{})}
	answers := make(chan string, 3)
	go func() { answers <- e.send(h, "c1", "false", noon) }()
	<-h.begun
	go func() { answers <- e.send(h, "c1", "false", noon) }()
	go func() { answers <- e.send(h, "c2", "false", noon) }()
	<-h.begun // c2 runs although c1 has not ended
	close(h.proceed)
	for range 3 {
		if answer := <-answers; !strings.Contains(answer, "pending") {
			t.Errorf("answer %s, want a pending channel", answer)
		}
	}
	if n := h.commands.Load(); n != 2 {
		t.Errorf("%d commands have run, want 2", n)
	}
}

// TestReservedEntries: a hub's own entries cannot replace the memory of command ids.
func TestReservedEntries(t *testing.T) {
	t.Parallel()
	e := newTestEngine(t, t.TempDir())
	if _, err := e.Commit(noon, Change{
		Set: map[string]json.RawMessage{"command/c1": json.RawMessage("{}")},
	}); err == nil {
		t.Error("Commit() of a reserved entry returned no error")
	}
	e.send(&lock{}, "c1", "false", noon)
	if entries := e.Entries(""); len(entries) != 0 {
		t.Errorf("Entries() = %v, want none: they are the library's", entries)
	}
}

// FuzzAck: no ack brings the hub's numbers into an impossible state.
func FuzzAck(f *testing.F) {
	f.Add([]byte(`{"log":"x","through":1}`), uint8(3))
	f.Add([]byte(`{"log":"x","through":-1}`), uint8(3))
	f.Add([]byte(`{"log":"x","through":9007199254740992}`), uint8(3))
	f.Fuzz(func(t *testing.T, payload []byte, n uint8) {
		e := newTestEngine(t, "")
		e.journal.reset("x", nil)
		connection := e.connect()
		e.nextMessage(connection, noon)
		for range n {
			if _, err := e.Commit(noon, Change{Events: []Event{{Type: "t"}}}); err != nil {
				t.Fatal(err)
			}
		}
		e.handleAck(connection, payload, noon)
		for range 10 {
			e.nextMessage(connection, noon)
		}
		if s := e.status(); s.Oldest > s.Newest+1 || s.Newest > protocol.MaxNumber+256 {
			t.Fatalf("%+v", s)
		}
	})
}

// FuzzDecodeRequest: a request that is not rejected has an id and a token that can be part of a
// topic.
func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","token":"a/b","method":"devices.list","params":{},"timeout_ms":10000}`,
		`{"id":"1","token":"#","method":"devices.list"}`, `{"id":"1","token":"a//b"}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		req, err := decodeRequest(payload)
		if err != nil {
			if !errors.Is(err, errBadRequest) {
				t.Fatal(err)
			}
			return
		}
		if req.ID == "" || strings.ContainsAny(req.Token, "+#\x00") || strings.Contains("/"+req.Token+"/", "//") {
			t.Fatalf("id %q, token %q", req.ID, req.Token)
		}
	})
}
