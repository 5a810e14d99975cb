package tap_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

// newTarget returns another broker with a stream that a tap publishes to.
func newTarget(t testing.TB) (*streamstest.Broker, jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	broker := streamstest.New(t)
	js := streamstest.JetStream(t, broker.Connect(t).Cloud)
	stream, err := js.CreateStream(
		t.Context(),
		jetstream.StreamConfig{
			Name: "EVENTS", Subjects: []string{"analytics.>"}, Storage: jetstream.FileStorage,
		},
	)
	streamstest.Must(t, err)
	return broker, js, stream
}

func publisher(js jetstream.JetStream, subject tap.Subject, format tap.Format) *tap.Publisher {
	return tap.NewPublisher(js, subject, format, slog.New(slog.DiscardHandler))
}

// published returns the numbers of each hub's events in the stream, in the stream's order.
func published(t testing.TB, stream jetstream.Stream) map[domain.HubID][]int {
	t.Helper()
	info, err := stream.Info(t.Context())
	streamstest.Must(t, err)
	all := map[domain.HubID][]int{}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		streamstest.Must(t, err)
		var line struct {
			Hub  domain.HubID `json:"hub_id"`
			Data struct{ N int }
		}
		streamstest.Must(t, json.Unmarshal(msg.Data, &line))
		if want := "analytics." + string(line.Hub) + "."; len(msg.Subject) < len(want) ||
			msg.Subject[:len(want)] != want {
			t.Fatalf("subject of an event of %s: got %s", line.Hub, msg.Subject)
		}
		all[line.Hub] = append(all[line.Hub], line.Data.N)
	}
	return all
}

// TestPublish checks that every event is in the stream once and in order, although the stream's
// broker restarts and a second tap without a checkpoint publishes all events again.
func TestPublish(t *testing.T) {
	t.Parallel()
	const hubs, each = 5, 120
	r := newTestHubs(t, time.Hour)
	broker, js, stream := newTarget(t)
	to := publisher(js, "analytics.{hub_id}.{type}", tap.NDJSON)
	streamstest.Must(t, to.Check(t.Context()))
	u := r.start(tap.Config{Follow: true, Output: to})
	for i := range 4 {
		for n := range hubs {
			r.store(hubID(n), each/4)
		}
		if i == 1 {
			broker.Stop()
		}
		if i == 2 {
			broker.Start(t)
		}
	}
	streamstest.Eventually(t, "the stream has every event", func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == hubs*each
	})
	streamstest.Must(t, u.end())
	streamstest.Must(t, r.start(tap.Config{Output: to}).wait())
	got := published(t, stream)
	for n := range hubs {
		consecutive(t, hubID(n), got[hubID(n)], each)
	}
}

// TestPublishWithoutStream checks that a subject without a stream is ErrNoStream.
func TestPublishWithoutStream(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	r.store(hubID(1), 1)
	_, js, _ := newTarget(t)
	to := publisher(js, "elsewhere", tap.CloudEvents)
	if err := to.Check(t.Context()); !errors.Is(err, tap.ErrNoStream) {
		t.Errorf("Check: got %v, want ErrNoStream", err)
	}
	if err := r.start(tap.Config{Follow: true, Output: to}).wait(); !errors.Is(
		err, tap.ErrNoStream,
	) {
		t.Errorf("Run: got %v, want ErrNoStream", err)
	}
}

// TestSubject checks that invalid subjects are rejected, and that values of records cannot add
// tokens or wildcards to a subject.
func TestSubject(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "a..b", ".a", "a.", "a b", "a.*", "a.>", "a.{hub}", "{", "a\nb",
	} {
		if s, err := tap.ParseSubject(bad); err == nil {
			t.Errorf("ParseSubject(%q): got %q, want an error", bad, s)
		}
	}
	_, js, stream := newTarget(t)
	subject, err := tap.ParseSubject("analytics.{hub_id}.{type}.{organization_id}")
	streamstest.Must(t, err)
	to := publisher(js, subject, tap.CloudEvents)
	for typ, want := range map[string]string{
		"channel.observed": "channel.observed", "a b": "a_b", "*": "_", "x.>": "x._",
		"..": "_._._", "": "_",
	} {
		r := tap.Record{
			Hub: hubID(1), OrgID: org, Type: typ, ID: "id" + typ,
			Envelope: []byte(`{"time":"2026-01-02T03:04:05Z"}`),
		}
		streamstest.Must(t, to.Write(t.Context(), []tap.Record{r}))
		msg, err := stream.GetLastMsgForSubject(t.Context(), "analytics.>")
		if err != nil || msg.Subject != "analytics."+string(hubID(1))+"."+want+"."+org ||
			msg.Header.Get("Content-Type") != "application/cloudevents+json" {
			t.Errorf("message of type %q: got %v, error %v, want %s", typ, msg, err, want)
		}
	}
}
