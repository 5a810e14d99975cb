package once_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/once"
	"hubcloud/streams/streamstest"
)

// begun records the calls of a Request's Begin.
type begun struct {
	ids       []string
	withdrawn []error
}

// request returns a request under the key "k" whose Begin is recorded.
func (b *begun) request(text string) once.Request {
	return once.Request{
		OrgID: orgA, Name: once.Name(orgA, "k"),
		Fingerprint: once.Fingerprint([]byte(text)), Hold: time.Minute,
		Begin: func(id string) func(error) {
			b.ids = append(b.ids, id)
			return func(err error) { b.withdrawn = append(b.withdrawn, err) }
		},
	}
}

// TestBegin: work that begins with a reservation has the reservation's ID. It is withdrawn if the
// key was taken, and does not begin where the key is known to be taken.
func TestBegin(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	one := newKeys(t, broker.Connect(t), once.Config{})
	two := newKeys(t, broker.Connect(t), once.Config{})
	var first begun
	r, err := one.Reserve(t.Context(), first.request("request"))
	if err != nil || len(first.ids) != 1 || first.ids[0] != r.ID || len(first.withdrawn) != 0 {
		t.Fatalf("a new key: %+v, %v, began %+v, want its ID and nothing withdrawn", r, err, first)
	}
	if _, err := one.Finish(t.Context(), r, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text string
		keys       *once.Keys
		begins     int
		conflict   bool
	}{
		{"the same process", "request", one, 0, false},
		{"another process", "request", two, 1, false},
		{"another process again", "request", two, 0, false},
		{"another request", "another", two, 0, true},
	} {
		var b begun
		again, err := tc.keys.Reserve(t.Context(), b.request(tc.text))
		switch {
		case tc.conflict:
			wantCode(t, err, domain.CodeIdempotencyConflict)
		case err != nil || again.ID != r.ID:
			t.Errorf("%s: got %+v, %v, want the ID %s", tc.name, again, err, r.ID)
		}
		if len(b.ids) != tc.begins || len(b.withdrawn) != tc.begins {
			t.Errorf("%s: began %+v, want %d, withdrawn", tc.name, b, tc.begins)
		}
		for _, err := range b.withdrawn {
			if err != nil {
				t.Errorf("%s: withdrawn with %v, want nil", tc.name, err)
			}
		}
	}
}

// TestBeginFails: work that has begun is withdrawn with the error of a reservation that fails.
func TestBeginFails(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	keys := newKeys(t, broker.Connect(t), once.Config{})
	broker.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // more than it takes to begin
	defer cancel()
	var b begun
	_, err := keys.Reserve(ctx, b.request("request"))
	if err == nil || len(b.ids) != 1 || len(b.withdrawn) != 1 || !errors.Is(b.withdrawn[0], err) {
		t.Errorf("Reserve: %v, began %+v, want one, withdrawn with this error", err, b)
	}
	broker.Start(t)
}

// TestBeginUnsure: a reservation whose acknowledgement is lost keeps its ID, and what has begun
// with it, whether the broker stored the reservation or not.
func TestBeginUnsure(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	proxy := streamstest.NewRewriter(broker)
	keys := newKeys(t, broker.Connect(t, nats.InProcessServer(proxy)), once.Config{})
	var lost atomic.Int32
	proxy.Change(func(payload []byte) []byte {
		if bytes.Contains(payload, []byte(`"stream":"KV_idempotency"`)) && lost.Add(1) == 1 {
			return nil
		}
		return payload
	})
	var b begun
	r, err := keys.Reserve(t.Context(), b.request("request"))
	if err != nil || lost.Load() != 1 || len(b.ids) != 1 || b.ids[0] != r.ID ||
		len(b.withdrawn) != 0 {
		t.Errorf("Reserve: %+v, %v after %d lost acknowledgements, began %+v; want the ID begun",
			r, err, lost.Load(), b)
	}
}

// TestFinishAtADeposedLeader: a request whose reservation a deposed leader did not have counted as
// one whose window was over. Its answer was not stored, and a repetition ran the request again.
func TestFinishAtADeposedLeader(t *testing.T) {
	t.Parallel()
	broker := newBroker(t)
	proxy := streamstest.NewRewriter(broker)
	keys := newKeys(t, broker.Connect(t, nats.InProcessServer(proxy)), once.Config{})
	var b begun
	r, err := keys.Reserve(t.Context(), b.request("request"))
	streamstest.Must(t, err)
	// Another revision makes Finish read the reservation.
	buckets, err := streams.OpenBuckets(t.Context(), broker.Connect(t), 1)
	streamstest.Must(t, err)
	name := once.Name(orgA, "k")
	stored, err := buckets.Idempotency.Get(t.Context(), name)
	if err == nil {
		_, err = buckets.Idempotency.Put(t.Context(), name, stored.Value())
	}
	streamstest.Must(t, err)
	var old atomic.Int32
	proxy.Change(func(payload []byte) []byte {
		if bytes.Contains(payload, []byte("stream_msg_get_response")) && old.Add(1) == 1 {
			return []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
		}
		return payload
	})
	if first, err := keys.Finish(t.Context(), r, []byte(`{"done":true}`)); err != nil || first != nil {
		t.Fatalf("Finish: %s, %v, want nil, nil", first, err)
	}
	again, err := keys.Reserve(t.Context(), b.request("request"))
	if err != nil || string(again.Answer) != `{"done":true}` || old.Load() < 2 {
		t.Errorf("the request again: %+v, %v after %d reads; want its answer", again, err, old.Load())
	}
}
