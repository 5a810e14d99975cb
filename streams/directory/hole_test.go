package directory

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestReadersReportGaps: the broker skips the gaps of a damaged log silently. Follow and Replay
// must report them, wherever in a batch they are.
func TestReadersReportGaps(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	js, err := jetstream.New(conns.Cloud)
	streamstest.Must(t, err)
	config := declaration(1)
	config.DenyDelete = false
	stream, err := js.CreateStream(t.Context(), config)
	streamstest.Must(t, err)
	// A busy disk may take longer than Store's own timeout.
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
		if _, err := jsapi.Append(ctx, conns.Cloud, msgs...); err != nil {
			t.Fatal(err)
		}
	}
	missing := []uint64{1, 2, 3, 500, 1000, 1001, 1777}
	for _, seq := range missing {
		streamstest.Must(t, stream.DeleteMsg(t.Context(), seq))
	}
	log := newLog(conns.Cloud, js)
	enough := errors.New("enough")
	for _, after := range []uint64{0, 2, 999} {
		want := []uint64{after + 1, 500, 1000, 1777}
		if after == 999 {
			want = want[2:]
		}
		for name, read := range map[string]func(fn func([]Recorded) error) error{
			"follow": func(fn func([]Recorded) error) error {
				return log.Follow(t.Context(), after, fn)
			},
			"replay": func(fn func([]Recorded) error) error {
				return log.Replay(t.Context(), after, last, fn)
			},
		} {
			next, reported := after+1, []uint64(nil)
			err := read(func(batch []Recorded) error {
				for _, r := range batch {
					if skipped := r.Seq - next; r.Seq < next ||
						skipped > 0 && (len(reported) == 0 || next != reported[len(reported)-1]+1) {
						t.Errorf("got %s: got sequence %d, want %d", name, r.Seq, next)
					}
					if errors.Is(r.Err, ErrMissing) {
						reported = append(reported, r.Seq)
					}
					next = r.Seq + 1
				}
				if next > last {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) {
				t.Fatal(name, err)
			}
			if !slices.Equal(reported, want) {
				t.Errorf("got %s after %d: got gaps %v, want %v", name, after, reported, want)
			}
		}
	}
}
