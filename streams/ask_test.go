package streams_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// A question that went to a leader that was gone waited for its context's end: a service that
// started while a cluster elected a leader hung for minutes, and failed then.
func TestAskFindsTheNextLeader(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	questions := 0
	_, err := nc.Subscribe("test.leader", func(msg *nats.Msg) {
		questions++
		switch questions {
		case 1: // the leader that goes without an answer
		case 2:
			_ = msg.Respond(
				[]byte(
					`{"type":"x","error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`,
				),
			)
		default:
			_ = msg.Respond([]byte(`{"type":"x"}`))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := streams.Ask(t.Context(), nc, "test.leader", nil)
	if err != nil || string(answer) != `{"type":"x"}` || questions != 3 {
		t.Errorf("after %d questions: %s, %v", questions, answer, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := streams.Ask(ctx, nc, "test.nobody", nil); !errors.Is(err, nats.ErrNoResponders) &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody there: %v", err)
	}
}

// TestSetUpRepeats what is not answered, and nothing else.
func TestSetUpRepeats(t *testing.T) {
	t.Parallel()
	tries := 0
	err := streams.SetUp(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return nats.ErrNoResponders
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	tries = 0
	err = streams.SetUp(t.Context(), func(context.Context) error {
		tries++
		return streams.ErrIncompatible
	})
	if !errors.Is(err, streams.ErrIncompatible) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
