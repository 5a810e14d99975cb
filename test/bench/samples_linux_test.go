package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// sample is the stream configuration and a message of a hub's log, taken from the service.
type sample struct {
	// Hub is the id of the hub, which Stream and Header contain.
	Hub string
	// Stream is the stream's configuration in the broker's API.
	Stream json.RawMessage
	// Header and Data are from a stored event.
	Header nats.Header
	Data   []byte
}

// sampleOf reads a sample from the service's broker.
func (s *service) sampleOf(h *hub) sample {
	s.t.Helper()
	credentials, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	conns, err := streams.Connect(ctx, credentials)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conns.Close()
	id := domain.HubID(h.ID)
	ask := func(subject, body string) *nats.Msg {
		answer, err := conns.Shard(id).RequestWithContext(
			ctx, subject+streams.HubStream(id), []byte(body),
		)
		if err != nil {
			s.t.Fatal(err)
		}
		return answer
	}
	// The stream gets what the journal has some milliseconds later.
	var info struct{ Config map[string]any }
	var last *nats.Msg
	for len(info.Config) == 0 || len(last.Data) == 0 {
		if !streams.Sleep(ctx, time.Millisecond) {
			s.t.Fatalf("stream of %s: %v", h.ID, ctx.Err())
		}
		answer := ask("$JS.API.STREAM.INFO.", "")
		if err := json.Unmarshal(answer.Data, &info); err != nil {
			s.t.Fatalf("stream of %s: %s %v", h.ID, answer.Data, err)
		}
		if len(info.Config) > 0 {
			last = ask(
				"$JS.API.DIRECT.GET.",
				fmt.Sprintf(`{"last_by_subj":%q}`, streams.HubEventSubject(id)),
			)
		}
	}
	info.Config["allow_atomic"] = true // a message of several events is stored whole or not at all
	config, err := json.Marshal(info.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	header := nats.Header{}
	for name, values := range last.Header {
		if !strings.HasPrefix(name, "Nats-") { // added by the broker, or an instruction to it
			header[name] = values
		}
	}
	return sample{Hub: h.ID, Stream: config, Header: header, Data: last.Data}
}

// streamFor returns the stream's configuration for another hub.
func (s sample) streamFor(hub string) []byte {
	return []byte(strings.ReplaceAll(string(s.Stream), s.Hub, hub))
}

// message returns an event of a hub as the service would store it.
func (s sample) message(hub string) *nats.Msg {
	msg := nats.NewMsg(streams.HubEventSubject(domain.HubID(hub)))
	for name, values := range s.Header {
		msg.Header[name] = append([]string(nil), values...)
	}
	msg.Data = []byte(strings.ReplaceAll(string(s.Data), s.Hub, hub))
	return msg
}
