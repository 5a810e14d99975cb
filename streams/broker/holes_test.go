package broker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestUnusableFiles makes a file of a stream unreadable. The server took the stream for a new one
// and removed its messages: files of another user, or a broken disk, cost the whole directory or
// journal. No server must start on that, and the files must stay as they are.
func TestUnusableFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"meta.inf", "msgs/1.blk"} {
		b := streamstest.New(t)
		js, err := jetstream.New(b.Connect(t).Cloud)
		streamstest.Must(t, err)
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: streams.DirectoryStream, Subjects: []string{"directory.>"},
		}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := js.Publish(t.Context(), "directory.x", []byte("an event")); err != nil {
				t.Fatal(err)
			}
		}
		b.Stop()
		path := filepath.Join(
			b.Dir(), "jetstream", "CLOUD", "streams", streams.DirectoryStream, name,
		)
		kept := filepath.Join(t.TempDir(), "kept")
		streamstest.Must(t, os.Rename(path, kept))
		if err := os.Symlink(filepath.Base(path), path); err != nil { // a loop
			t.Fatal(err)
		}
		logger := streamstest.Logger()
		err = broker.Repair(b.Dir(), logger)
		if !errors.Is(err, broker.ErrUnusable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: Repair: got %v, want ErrUnusable with the path", name, err)
		}
		streamstest.Must(t, os.Rename(kept, path))
		if err := broker.Repair(b.Dir(), logger); err != nil {
			t.Errorf("%s: Repair of the readable files: got %v, want no error", name, err)
		}
	}
}

// TestDamagedMessages damages the file of a stream in every place. At a damaged message the server
// cut everything behind it off, and used the sequences again. A damaged message must cost at most
// itself.
func TestDamagedMessages(t *testing.T) {
	t.Parallel()
	const messages = 20
	b := streamstest.New(t)
	js, err := jetstream.New(b.Connect(t).Cloud)
	streamstest.Must(t, err)
	subject := streams.JournalSubject(0)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: streams.JournalStream(0), Subjects: []string{subject}, AllowDirect: true,
	}); err != nil {
		t.Fatal(err)
	}
	for n := range messages {
		body := fmt.Sprintf("message %02d %s", n+1, strings.Repeat("x", 40))
		if _, err := js.Publish(t.Context(), subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	b.Stop()
	folder := filepath.Join(b.Dir(), "jetstream", "CLOUD", "streams", streams.JournalStream(0))
	path := filepath.Join(folder, "msgs", "1.blk")
	intact := t.TempDir()
	streamstest.Must(t, os.CopyFS(intact, os.DirFS(folder)))
	whole, err := os.ReadFile(path)
	streamstest.Must(t, err)
	size := len(whole) / messages
	flip := func(at, n int) func([]byte) []byte {
		return func(data []byte) []byte {
			for i := at; i < at+n; i++ {
				data[i] ^= 0xff
			}
			return data
		}
	}
	cases := map[string]struct {
		damage func([]byte) []byte
		want   []uint64 // the lost sequences
		crash  bool     // the server did not store its state
	}{
		"the start":                  {flip(0, 8), []uint64{1}, false},
		"the middle":                 {flip(9*size+30, 8), []uint64{10}, false},
		"a length":                   {flip(9*size, 4), []uint64{10}, false},
		"two in a row":               {flip(10*size-4, 8), []uint64{10, 11}, false},
		"the last":                   {flip(19*size+30, 8), []uint64{20}, false},
		"the last bytes":             {flip(20*size-8, 8), []uint64{20}, false},
		"truncated":                  {func(d []byte) []byte { return d[:17*size+5] }, []uint64{18, 19, 20}, false},
		"truncated between messages": {func(d []byte) []byte { return d[:17*size] }, []uint64{18, 19, 20}, false},
		"everything":                 {flip(0, 20*size), nil, false},
		"the middle, after a crash":  {flip(9*size, 8), []uint64{10}, true},
		"the last, after a crash":    {flip(19*size, 8), []uint64{20}, true},
	}
	for name, c := range cases {
		streamstest.Must(t, os.RemoveAll(folder))
		streamstest.Must(t, os.CopyFS(folder, os.DirFS(intact)))
		streamstest.Must(t, os.WriteFile(path, c.damage(slices.Clone(whole)), 0o600))
		if c.crash {
			streamstest.Must(t, os.Remove(filepath.Join(folder, "msgs", "index.db")))
		}
		for range 2 { // the second repair finds nothing to do
			streamstest.Must(t, broker.Repair(b.Dir(), streamstest.Logger()))
		}
		b.Start(t)
		api := jsapi.New(b.Connect(t).Cloud)
		info, err := api.Info(t.Context(), streams.JournalStream(0))
		if err != nil || info.State.LastSeq != messages {
			t.Errorf("%s: ends at %d, %v; want %d", name, info.State.LastSeq, err, messages)
		}
		for seq := uint64(1); seq <= messages; seq++ {
			lost := c.want == nil || slices.Contains(c.want, seq)
			msg, err := api.Get(t.Context(), streams.JournalStream(0), seq)
			if lost != (err != nil) || err == nil &&
				!strings.HasPrefix(string(msg.Data), fmt.Sprintf("message %02d", seq)) {
				t.Errorf("%s: message %d: %v; want it lost: %v", name, seq, err, lost)
			}
		}
		b.Stop()
		holes, err := broker.HolesIn(folder)
		streamstest.Must(t, err)
		var found []uint64
		for _, h := range holes {
			for seq := h.From; seq <= h.To; seq++ {
				found = append(found, seq)
			}
		}
		if c.want != nil && c.want[0] > 1 && !slices.Equal(found, c.want) {
			t.Errorf("%s: found the holes %v, want %v", name, found, c.want)
		}
	}
	copies, err := os.ReadDir(filepath.Join(b.Dir(), "damaged"))
	if err != nil || len(copies) != len(cases) {
		t.Errorf("copies of damaged files: %d, %v; want %d", len(copies), err, len(cases))
	}
}
