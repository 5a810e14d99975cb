package jsapi_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	msg := &nats.Msg{} // reused for all
	send := func(subject string, end, token uint64) {
		t.Helper()
		msg.Subject, msg.Data = subject, []byte("x")
		jsapi.ExpectEnd(msg, end)
		if err := a.Send(msg, token); err != nil {
			t.Fatal(err)
		}
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
