package jsapi_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// testStream is the name of the stream of newStream, which has the subjects test.>.
const testStream = "TEST"

// newStream starts a broker with an empty stream, and returns a connection to its account.
func newStream(t *testing.T) *nats.Conn {
	t.Helper()
	nc := streamstest.Start(t).Cloud
	makeStream(t, nc)
	return nc
}

func makeStream(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	streamstest.Must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: testStream, Subjects: []string{"test.>"}, Storage: jetstream.FileStorage,
		AllowDirect: true, AllowAtomicPublish: true,
	})
	streamstest.Must(t, err)
}

// newMessage returns a message that expects the last sequence of its subject, unless that is
// negative.
func newMessage(subject string, expected int64, data string) *nats.Msg {
	msg := &nats.Msg{Subject: subject, Data: []byte(data)}
	if expected >= 0 {
		jsapi.ExpectLast(msg, subject, uint64(expected))
	}
	return msg
}

// store appends messages one by one.
func store(t *testing.T, nc *nats.Conn, subject string, data ...string) {
	t.Helper()
	for _, text := range data {
		if _, err := jsapi.Append(t.Context(), nc, newMessage(subject, -1, text)); err != nil {
			t.Fatal(err)
		}
	}
}

// respond makes a responder answer requests to a subject, one answer after the other; the last one
// is repeated, and "" leaves the request without an answer. It returns how often it was asked.
func respond(t *testing.T, nc *nats.Conn, subject string, answers ...string) (asked func() int) {
	t.Helper()
	requests := make(chan struct{}, 1000)
	_, err := nc.Subscribe(subject, func(msg *nats.Msg) {
		answer := answers[min(len(requests), len(answers)-1)]
		requests <- struct{}{}
		if answer != "" {
			_ = msg.Respond([]byte(answer))
		}
	})
	streamstest.Must(t, err)
	streamstest.Must(t, nc.Flush())
	return func() int { return len(requests) }
}

// noLeaderAnswer is how a server of a cluster answers for a stream without a leader.
const noLeaderAnswer = `{"type":"x","error":{"code":503,"err_code":10008,` +
	`"description":"JetStream system temporarily unavailable"}}`

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	streamstest.Must(t, err)
	return string(text)
}
