package jsapi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	nc, ctx := newStream(t), t.Context()
	steps := []struct {
		name string
		msgs []*nats.Msg
		last uint64
		err  error
	}{
		{"first message", []*nats.Msg{newMessage("test.a", 0, "1")}, 1, nil},
		{"first message again", []*nats.Msg{newMessage("test.a", 0, "2")}, 0, jsapi.ErrConflict},
		{"next message", []*nats.Msg{newMessage("test.a", 1, "2")}, 2, nil},
		{"first of another subject", []*nats.Msg{newMessage("test.b", 0, "1")}, 3, nil},
		{
			"batch",
			[]*nats.Msg{
				newMessage("test.a", 2, "3"), newMessage("test.a", -1, "4"),
				newMessage("test.a", -1, "5"),
			},
			6, nil,
		},
		{
			"batch with an old expectation",
			[]*nats.Msg{newMessage("test.a", 2, "x"), newMessage("test.a", -1, "y")},
			0, jsapi.ErrConflict,
		},
		{"no expectation", []*nats.Msg{newMessage("test.a", -1, "6")}, 7, nil},
		{
			"subject without a stream",
			[]*nats.Msg{newMessage("nowhere", -1, "1")},
			0,
			jsapi.ErrNoStream,
		},
	}
	for _, step := range steps {
		last, err := jsapi.Append(ctx, nc, step.msgs...)
		if last != step.last || !errors.Is(err, step.err) {
			t.Fatalf("%s: %d, %v; want %d, %v", step.name, last, err, step.last, step.err)
		}
	}
	// An expectation may be about more subjects than the message's own.
	wide := newMessage("test.b", -1, "2")
	jsapi.ExpectLast(wide, "test.>", 3)
	if _, err := jsapi.Append(ctx, nc, wide); !errors.Is(err, jsapi.ErrConflict) {
		t.Fatalf("with an old expectation about all subjects: %v; want ErrConflict", err)
	}
	jsapi.ExpectLast(wide, "test.>", 7)
	if last, err := jsapi.Append(ctx, nc, wide); last != 8 || err != nil {
		t.Fatalf("with an expectation about all subjects: %d, %v; want 8, nil", last, err)
	}
}

func TestAppendBounds(t *testing.T) {
	t.Parallel()
	// A busy disk may take longer than Append's own timeout.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nc := newStream(t)
	if _, err := jsapi.Append(ctx, nc); err == nil {
		t.Error("no messages: nil; want an error")
	}
	if _, err := jsapi.Append(ctx, nc, make([]*nats.Msg, jsapi.MaxBatch+1)...); err == nil {
		t.Error("a batch of MaxBatch+1: nil; want an error")
	}
	tooBig := &nats.Msg{Subject: "test.a", Data: make([]byte, nc.MaxPayload()+1)}
	if _, err := jsapi.Append(ctx, nc, tooBig); !errors.Is(err, nats.ErrMaxPayload) ||
		errors.Is(err, jsapi.ErrOutcomeUnknown) {
		t.Errorf("a message that is too big: %v; want only ErrMaxPayload", err)
	}
	msgs := make([]*nats.Msg, jsapi.MaxBatch)
	for i := range msgs {
		msgs[i] = newMessage("test.a", -1, fmt.Sprint(i))
	}
	jsapi.ExpectLast(msgs[0], "test.a", 0)
	if last, err := jsapi.Append(ctx, nc, msgs...); err != nil || last != jsapi.MaxBatch {
		t.Fatalf("a batch of MaxBatch: %d, %v; want %d, nil", last, err, jsapi.MaxBatch)
	}
}

// Without a readable answer the outcome is unknown, which must not look like a rejection.
func TestAppendWithoutAnswer(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	respond(t, nc, "mute", "")
	respond(t, nc, "babble", "what?")
	respond(t, nc, "empty", "{}")
	respond(
		t, nc, "full", `{"error":{"code":503,"err_code":10077,"description":"maximum messages"}}`,
	)
	respond(t, nc, "leaderless", noLeaderAnswer)
	respond(t, nc, "cutoff", `{"stream":"S","seq":17`)
	respond(t, nc, "unnumbered", `{"stream":"S","seq":0}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := jsapi.Append(ctx, nc, newMessage("mute", -1, "")); !errors.Is(
		err, jsapi.ErrOutcomeUnknown,
	) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v; want ErrOutcomeUnknown and DeadlineExceeded", err)
	}
	for subject, want := range map[string]error{
		"babble": jsapi.ErrOutcomeUnknown, "empty": jsapi.ErrOutcomeUnknown,
		"cutoff": jsapi.ErrOutcomeUnknown, "unnumbered": jsapi.ErrOutcomeUnknown,
		"leaderless": jsapi.ErrNoLeader,
	} {
		_, err := jsapi.Append(t.Context(), nc, newMessage(subject, -1, ""))
		if !errors.Is(err, want) {
			t.Errorf("answer of %s: %v; want %v", subject, err, want)
		}
	}
	_, err := jsapi.Append(t.Context(), nc, newMessage("full", -1, ""))
	if !jsapi.IsStreamFull(err) || errors.Is(err, jsapi.ErrNoLeader) ||
		errors.Is(err, jsapi.ErrOutcomeUnknown) {
		t.Errorf("a full stream: %v; want only IsStreamFull", err)
	}
}

// TestPipeline sends more messages than may be on their way, and reports what is rejected.
func TestPipeline(t *testing.T) {
	t.Parallel()
	nc, ctx := newStream(t), t.Context()
	p, err := jsapi.NewPipeline(nc, 4)
	streamstest.Must(t, err)
	defer p.Close()
	for i := range 20 {
		streamstest.Must(t, p.Send(ctx, newMessage("test.a", int64(i), fmt.Sprint(i))))
	}
	streamstest.Must(t, p.Wait(ctx))
	info, err := jsapi.New(nc).Info(ctx, testStream)
	if err != nil || info.State.LastSeq != 20 {
		t.Errorf("after 20 messages: %+v, %v; want 20 messages", info, err)
	}
	streamstest.Must(t, p.Send(ctx, newMessage("test.a", 3, "old")))
	if err := p.Wait(ctx); !errors.Is(err, jsapi.ErrConflict) {
		t.Errorf("after a conflict: %v; want ErrConflict", err)
	}
}

// receive returns the next answer.
func receive(t *testing.T, a *jsapi.Appender) jsapi.Answer {
	t.Helper()
	select {
	case msg := <-a.Answers():
		return a.ReadAnswer(msg)
	case <-time.After(time.Minute):
		t.Fatal("no answer within a minute")
		return jsapi.Answer{}
	}
}

func TestAppender(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	makeStream(t, nc)
	a, err := jsapi.NewAppender(nc, 8)
	streamstest.Must(t, err)
	t.Cleanup(a.Close)
	msg := &nats.Msg{} // reused for all
	send := func(subject string, end, token uint64) {
		t.Helper()
		msg.Subject, msg.Data = subject, []byte("x")
		jsapi.ExpectEnd(msg, end)
		streamstest.Must(t, a.Send(msg, token))
	}

	send("test.a", 0, 7)
	send("test.b", 1, 0)
	send("test.a", 2, 9)
	for _, want := range []jsapi.Answer{{Token: 7, Sequence: 1}, {Token: 9, Sequence: 3}} {
		if got := receive(t, a); got != want {
			t.Errorf("answer: got %+v, want %+v", got, want)
		}
	}

	send("test.a", 7, 10)
	if got := receive(t, a); got.Token != 10 || !errors.Is(got.Err, jsapi.ErrConflict) {
		t.Errorf("answer to a wrong expectation: got %+v, want ErrConflict", got)
	}
	send("no-stream", 0, 11)
	if got := receive(t, a); got.Token != 11 || !errors.Is(got.Err, jsapi.ErrNoStream) {
		t.Errorf("answer without a stream: got %+v, want ErrNoStream", got)
	}
}
