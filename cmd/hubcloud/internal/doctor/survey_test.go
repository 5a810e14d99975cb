package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// Streams are listed to the last one, also when they are more than one answer of the broker holds,
// with their own limits.
func TestStreamsAreListedToTheLast(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	js, err := jetstream.New(conns.Shards[1])
	streamstest.Must(t, err)
	const count = 300 // the broker answers 256 at a time
	for i := range count {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: fmt.Sprintf("S%03d", i), Subjects: []string{fmt.Sprintf("s.%d", i)}, MaxMsgs: 10,
			Storage: jetstream.MemoryStorage,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), "s.299", []byte("one")); err != nil {
		t.Fatal(err)
	}
	all, err := readStreams(t.Context(), conns.Shards[1])
	streamstest.Must(t, err)
	slices.SortFunc(all, func(a, b jetstream.StreamInfo) int {
		return strings.Compare(a.Config.Name, b.Config.Name)
	})
	if len(all) != count {
		t.Fatalf("got %d streams, want %d", len(all), count)
	}
	if last := all[count-1]; last.Config.Name != "S299" || last.State.Msgs != 1 ||
		last.Config.MaxMsgs != 10 ||
		last.State.Bytes == 0 ||
		last.State.LastTime.IsZero() ||
		last.Config.Replicas != 1 {
		t.Errorf("%+v", last)
	}
	accounts, err := readAccounts(t.Context(), conns)
	if err != nil || len(accounts) != 1+streamstest.Shards ||
		accounts[0].Name != streams.AccountCloud {
		t.Fatalf("%+v, %v", accounts, err)
	}
	if a := accounts[2]; a.Name != streams.ShardAccount(1) || a.Streams != count ||
		accounts[1].Streams != 0 {
		t.Errorf("%+v", accounts)
	}
}
