package directory

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// A log that was damaged has gaps. The broker steps over them without a word; Follow must not, wherever in a batch they are.
func TestFollowTellsOfGaps(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	config := declaration(1)
	config.DenyDelete = false
	stream, err := js.CreateStream(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	// A busy disk may take longer than Store's own patience.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const last = 2500
	var msgs []*nats.Msg
	for range last / 5 {
		msgs = append(msgs, &nats.Msg{Subject: "directory.site.o.s", Data: []byte("x")})
	}
	for range 5 {
		for _, msg := range msgs {
			msg.Header = nil
		}
		if _, err := streams.Store(ctx, conns.Cloud, msgs...); err != nil {
			t.Fatal(err)
		}
	}
	missing := []uint64{1, 2, 3, 500, 1000, 1001, 1777}
	for _, seq := range missing {
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	log := &Log{nc: conns.Cloud, js: js}
	enough := errors.New("enough")
	for _, after := range []uint64{0, 2, 999} {
		next, told := after+1, []uint64(nil)
		err := log.Follow(t.Context(), after, func(batch []Recorded) error {
			for _, r := range batch {
				if skipped := r.Seq - next; r.Seq < next || skipped > 0 && (len(told) == 0 || next != told[len(told)-1]+1) {
					t.Errorf("%d came instead of %d", r.Seq, next)
				}
				if errors.Is(r.Err, ErrMissing) {
					told = append(told, r.Seq)
				}
				next = r.Seq + 1
			}
			if next > last {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		want := []uint64{after + 1, 500, 1000, 1777}
		if after == 999 {
			want = want[2:]
		}
		if !slices.Equal(told, want) {
			t.Errorf("after %d told of %v, want %v", after, told, want)
		}
	}
}
