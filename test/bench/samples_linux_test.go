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

// sample is what the limit takes from the service: how it keeps a hub's log.
type sample struct {
	// Hub is the hub that Stream and Message are of; its id stands in both.
	Hub string
	// Stream is the configuration of its stream, as the broker's API has it.
	Stream json.RawMessage
	// Header and Data are those of a stored event.
	Header nats.Header
	Data   []byte
}

// sampleOf reads the configuration of a hub's stream and the last event in it from the service's
// broker.
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
	answer, err := conns.Shard(id).
		RequestWithContext(ctx, "$JS.API.STREAM.INFO."+streams.HubStream(id), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var info struct{ Config json.RawMessage }
	if err := json.Unmarshal(answer.Data, &info); err != nil || len(info.Config) == 0 {
		s.t.Fatalf("stream of %s: %s %v", h.ID, answer.Data, err)
	}
	last, err := conns.Shard(id).RequestWithContext(ctx,
		"$JS.API.DIRECT.GET."+streams.HubStream(id),
		fmt.Appendf(nil, `{"last_by_subj":%q}`, streams.HubEventSubject(id)))
	if err != nil || len(last.Data) == 0 {
		s.t.Fatalf("last event of %s: %v %v", h.ID, last, err)
	}
	header := nats.Header{}
	for name, values := range last.Header {
		if !strings.HasPrefix(name, "Nats-") { // what the broker adds, or takes as an instruction
			header[name] = values
		}
	}
	return sample{Hub: h.ID, Stream: info.Config, Header: header, Data: last.Data}
}

// streamFor returns the stream's configuration for another hub.
func (s sample) streamFor(hub string) []byte {
	return []byte(strings.ReplaceAll(string(s.Stream), s.Hub, hub))
}

// message makes an event for a hub as the service would store it.
func (s sample) message(hub string) *nats.Msg {
	msg := nats.NewMsg(streams.HubEventSubject(domain.HubID(hub)))
	for name, values := range s.Header {
		msg.Header[name] = append([]string(nil), values...)
	}
	msg.Data = []byte(strings.ReplaceAll(string(s.Data), s.Hub, hub))
	return msg
}
