package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// hub is a hub that runs a command ID once and answers a repeat with its first answer. It is a NATS
// client of its shard's account, which is what the broker makes of an MQTT client.
type hub struct {
	t  testing.TB
	id domain.HubID
	nc *nats.Conn

	mu      sync.Mutex
	offline bool
	// act runs a command ID for the first time and returns the answer after the request's ID, and
	// whether to remember it. nil accepts all commands.
	act func(command hubCommand) (answer string, remember bool)
	// before is called before each answer; nil for nothing.
	before  func(hubCommand)
	answers map[string]string
	asked   []string
	ran     []string
}

type hubCommand struct {
	CommandID string `json:"command_id"`
	DeviceID  int64  `json:"device_id"`
	Key       string
	Endpoint  int64
	Value     json.RawMessage
}

func newHub(t testing.TB, conns *streams.Conns, id domain.HubID) *hub {
	t.Helper()
	h := &hub{t: t, id: id, nc: conns.Shard(id), answers: map[string]string{}}
	sub, err := h.nc.Subscribe(streams.RequestSubject(h.id), h.receive)
	streamstest.Must(t, err)
	t.Cleanup(func() { streams.Unsubscribe(sub) })
	streamstest.Must(t, h.nc.Flush())
	return h
}

// receive answers a request.
func (h *hub) receive(msg *nats.Msg) {
	var request protocol.Request
	var command hubCommand
	if json.Unmarshal(msg.Data, &request) != nil || json.Unmarshal(request.Params, &command) != nil ||
		request.Method != protocol.MethodChannelsCommand {
		h.t.Errorf("request %q", msg.Data)
		return
	}
	answer := h.answer(command)
	h.mu.Lock()
	before := h.before
	h.mu.Unlock()
	go func() {
		if before != nil {
			before(command)
		}
		if answer != "" {
			_ = h.nc.Publish(
				streams.ResponseSubject(h.id, strings.ReplaceAll(request.Token, "/", ".")),
				fmt.Appendf(nil, `{"id":%q,%s}`, request.ID, answer),
			)
		}
	}()
}

// answer runs a command, unless the hub ran its ID before.
func (h *hub) answer(c hubCommand) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, c.CommandID)
	if answer, ok := h.answers[c.CommandID]; ok {
		return answer
	}
	answer, remember := accepts(c, len(h.ran)+1), true
	if h.act != nil {
		answer, remember = h.act(c)
	}
	if remember {
		h.ran = append(h.ran, c.CommandID)
		h.answers[c.CommandID] = answer
	}
	return answer
}

// accepts is the answer of a hub that accepts a command; run distinguishes the runs.
func accepts(c hubCommand, run int) string {
	return fmt.Sprintf(
		`"result":{"channel":{"key":%q,"endpoint":%d,"kind":%q,"unit":null,"available":true,"value":true,`+
			`"observed_at":"2026-01-02T03:04:05Z","desired":%s,"desired_at":"2026-01-02T03:04:06.%06dZ",`+
			`"status":"pending"}}`,
		c.Key,
		c.Endpoint,
		c.Key,
		c.Value,
		run,
	)
}

// rejects is the answer of a hub that rejects a command.
func rejects(code string) string {
	return fmt.Sprintf(`"error":{"type":%q,"message":"because"}`, code)
}

func (h *hub) set(change func(h *hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// answersAll makes the hub give one answer to every command, remembered if the command was run.
func (h *hub) answersAll(answer string, remember bool) {
	h.set(func(h *hub) { h.act = func(hubCommand) (string, bool) { return answer, remember } })
}

// wantRan checks how many requests the hub got, and how many commands it ran.
func (h *hub) wantRan(asked, ran int) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.asked) != asked || len(h.ran) != ran {
		h.t.Errorf(
			"the hub got %d requests and ran %d commands, want %d and %d",
			len(h.asked), len(h.ran), asked, ran,
		)
	}
}

// ids returns the command IDs that the hub got, each once.
func (h *hub) ids() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := slices.Clone(h.asked)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Online makes the hub an commands.Presence, with Fetch.
func (h *hub) Online(domain.HubID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.offline
}

func (h *hub) Fetch(context.Context, domain.HubID) (domain.Presence, bool, error) {
	return domain.Presence{Online: h.Online("")}, true, nil
}
