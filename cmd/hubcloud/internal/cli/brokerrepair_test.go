package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A nats-server skips a stream with a wrong checksum at every start, and no command could repair
// it. broker-repair repairs the store of a stopped server, which then has the messages again.
func TestBrokerRepair(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	// with runs a server on the store while do runs.
	with := func(do func(js jetstream.JetStream)) {
		t.Helper()
		s, err := server.NewServer(
			&server.Options{
				Host:      "127.0.0.1",
				Port:      server.RANDOM_PORT,
				JetStream: true,
				StoreDir:  store,
				NoLog:     true,
				NoSigs:    true,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		defer s.WaitForShutdown()
		defer s.Shutdown()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server does not listen")
		}
		conn, err := nats.Connect(s.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		do(js)
	}
	const lost = "HUB_hub1"
	streams := []string{lost, "HUB_hub2"}
	with(func(js jetstream.JetStream) {
		for _, name := range streams {
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
				Name: name, Subjects: []string{name + ".>"},
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), name+".x", []byte("kept")); err != nil {
				t.Fatal(err)
			}
		}
	})
	names := func() (found []string) {
		with(func(js jetstream.JetStream) {
			for _, name := range streams {
				if s, err := js.Stream(t.Context(), name); err == nil &&
					s.CachedInfo().State.Msgs == 1 {
					found = append(found, name)
				}
			}
		})
		return found
	}
	sums, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", lost, "meta.sum"))
	if err != nil || len(sums) != 1 {
		t.Fatalf("%v, %v", sums, err)
	}
	if err := os.WriteFile(sums[0], []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := names(); slices.Contains(got, lost) {
		t.Fatal("the server accepts a stream with a wrong checksum: this test shows nothing")
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{
		"broker-repair", store,
	}, Output{Out: &out, Err: &errs}); code != exitOK ||
		!strings.Contains(errs.String(), lost) {
		t.Errorf("exit code %d, printed %q; want the stream named", code, errs.String())
	}
	if got := names(); !slices.Equal(got, streams) {
		t.Errorf("after the repair: %v, want %v", got, streams)
	}
	if code := Run(t.Context(), []string{
		"broker-repair", t.TempDir(),
	}, Output{Out: &out, Err: &errs}); code != exitUsage {
		t.Errorf("a folder without a store: exit code %d, want %d", code, exitUsage)
	}
}
