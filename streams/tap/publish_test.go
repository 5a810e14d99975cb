package tap_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

// target is a broker of somebody else's with a stream of their own.
func target(t testing.TB) (*streamstest.Broker, jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	broker := streamstest.New(t)
	js, err := jetstream.New(broker.Connect(t).Cloud)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(
		t.Context(),
		jetstream.StreamConfig{
			Name:     "EVENTS",
			Subjects: []string{"analytics.>"},
			Storage:  jetstream.FileStorage,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return broker, js, stream
}

func publisher(js jetstream.JetStream, subject tap.Subject, format tap.Format) *tap.Publisher {
	return tap.NewPublisher(js, subject, format, slog.New(slog.DiscardHandler))
}

// published gives the numbers in the stream, by hub, in its order.
func published(t testing.TB, stream jetstream.Stream) map[domain.HubID][]int {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[domain.HubID][]int{}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		var line struct {
			Hub  domain.HubID `json:"hub_id"`
			Data struct{ N int }
		}
		if err := json.Unmarshal(msg.Data, &line); err != nil {
			t.Fatal(err)
		}
		if want := "analytics." + string(line.Hub) + "."; len(msg.Subject) < len(want) ||
			msg.Subject[:len(want)] != want {
			t.Fatalf("%s is published on %s", line.Hub, msg.Subject)
		}
		all[line.Hub] = append(all[line.Hub], line.Data.N)
	}
	return all
}

// TestPublish: everything is in the stream once and in order, although the broker with the stream
// is away meanwhile and a second tap without a checkpoint publishes it all again.
func TestPublish(t *testing.T) {
	t.Parallel()
	const hubs, each = 5, 120
	r := newRig(t, time.Hour)
	theirs, js, stream := target(t)
	to := publisher(js, "analytics.{hub_id}.{type}", tap.NDJSON)
	if err := to.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	u := r.start(tap.Config{Follow: true, Output: to})
	for i := range 4 {
		for n := range hubs {
			r.store(hubID(n), each/4)
		}
		if i == 1 {
			theirs.Stop()
		}
		if i == 2 {
			theirs.Start(t)
		}
	}
	streamstest.Eventually(t, "the stream has every event", func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == hubs*each
	})
	if err := u.end(); err != nil {
		t.Fatal(err)
	}
	if err := r.start(tap.Config{Output: to}).wait(); err != nil {
		t.Fatal(err)
	}
	got := published(t, stream)
	for n := range hubs {
		consecutive(t, hubID(n), got[hubID(n)], each)
	}
}

// TestPublishNowhere: a subject that no stream takes is told before the first record, or with it.
func TestPublishNowhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	r.store(hubID(1), 1)
	_, js, _ := target(t)
	to := publisher(js, "elsewhere", tap.CloudEvents)
	if err := to.Check(t.Context()); !errors.Is(err, tap.ErrNoStream) {
		t.Errorf("check: %v", err)
	}
	if err := r.start(tap.Config{Follow: true, Output: to}).wait(); !errors.Is(
		err, tap.ErrNoStream,
	) {
		t.Errorf("run: %v", err)
	}
}

// TestPublishedMessage: a message says what it is, and what makes it the same as another.
func TestPublishedMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	r.store(hubID(1), 1)
	_, js, stream := target(t)
	if err := r.start(tap.Config{
		Output: publisher(js, "analytics.{organization_id}", tap.CloudEvents),
	}).wait(); err != nil {
		t.Fatal(err)
	}
	msg, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	page, err := r.logs.Page(t.Context(), hubID(1), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := nats.Header{
		"Nats-Msg-Id":  {string(hubID(1)) + "/" + page.Events[0].Cursor},
		"Content-Type": {"application/cloudevents+json"},
	}
	for name := range want {
		if msg.Header.Get(name) != want.Get(name) {
			t.Errorf("%s is %q, want %q", name, msg.Header.Get(name), want.Get(name))
		}
	}
	if msg.Subject != "analytics."+org {
		t.Errorf("subject %s", msg.Subject)
	}
}

// TestSubject: what stands in records cannot make another subject than was meant.
func TestSubject(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "a..b", ".a", "a.", "a b", "a.*", "a.>", "a.{hub}", "{", "a\nb",
	} {
		if s, err := tap.ParseSubject(bad); err == nil {
			t.Errorf("%q is taken as %q", bad, s)
		}
	}
	_, js, stream := target(t)
	subject, err := tap.ParseSubject("analytics.{hub_id}.{type}.{organization_id}")
	if err != nil {
		t.Fatal(err)
	}
	to := publisher(js, subject, tap.NDJSON)
	for typ, want := range map[string]string{
		"channel.observed": "channel.observed", "a b": "a_b", "*": "_", "x.>": "x._",
		"..": "_._._", "": "_",
	} {
		r := tap.Record{Hub: hubID(1), Type: typ, ID: "id" + typ, Envelope: []byte(`{}`)}
		if err := to.Write(t.Context(), []tap.Record{r}); err != nil {
			t.Fatal(err)
		}
		msg, err := stream.GetLastMsgForSubject(t.Context(), "analytics.>")
		if err != nil || msg.Subject != "analytics."+string(hubID(1))+"."+want+"._" {
			t.Errorf("%q: %v, %v", typ, msg, err)
		}
	}
}
