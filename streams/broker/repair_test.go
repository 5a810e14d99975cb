package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
)

// A power cut or a kill between the server's writes of meta.inf and meta.sum left a stream without
// a checksum, or with that of an earlier configuration. The server skipped the stream and its
// messages at every later start.
func TestChecksumsAreRepaired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(path string) error
	}{
		{"missing", os.Remove},
		{"empty", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"of another configuration", func(path string) error {
			return os.WriteFile(path, []byte("0123456789abcdef"), 0o600)
		}},
		{"half", func(path string) error { return os.Truncate(path, 7) }},
		{"folder", func(path string) error {
			return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			cfg := config(t, t.TempDir())
			cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			first := start(t, cfg)
			fill(t, connect(t, first))
			want := contents(t, connect(t, first))
			stop(t, first)

			sums := metaFiles(t, cfg.DataDir, "meta.sum")
			for _, sum := range sums {
				if err := c.damage(sum); err != nil {
					t.Fatal(err)
				}
			}
			if damaged, err := broker.Damaged(cfg.DataDir); err != nil || len(damaged) > 0 {
				t.Errorf("Damaged with wrong checksums: got %v, error %v, want none", damaged, err)
			}
			second := start(t, cfg)
			if got := contents(t, connect(t, second)); !slices.Equal(got, want) {
				t.Errorf(
					"streams after the repair: got\n%s\nwant\n%s", strings.Join(got, "\n"),
					strings.Join(want, "\n"),
				)
			}
			if missing, err := second.NotRecovered(); err != nil || len(missing) > 0 {
				t.Errorf("NotRecovered: got %v, error %v, want none", missing, err)
			}
			repaired := strings.Count(lines.String(), "checksum was missing or wrong, repaired")
			if repaired != len(sums) {
				t.Errorf("log lines about repairs: got %d, want %d", repaired, len(sums))
			}
			stop(t, second)
		})
	}
}

// The server skipped a stream with an unreadable meta.inf, such as an empty file after a power cut
// with a sync interval, even after the stream was created again. Its messages must be recovered
// once the stream is created.
func TestUnreadableConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(path string) error
	}{
		{"missing", os.Remove},
		{"empty", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"half", func(path string) error { return os.Truncate(path, 100) }},
		{"zeroes", func(path string) error { return os.WriteFile(path, make([]byte, 400), 0o600) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, t.TempDir())
			first := start(t, cfg)
			fill(t, connect(t, first))
			want := contents(t, connect(t, first))
			stop(t, first)

			for _, meta := range metaFiles(t, cfg.DataDir, "meta.inf") {
				if filepath.Base(filepath.Dir(meta)) == "HUB_hub1" {
					if err := c.damage(meta); err != nil {
						t.Fatal(err)
					}
				}
			}
			damaged, err := broker.Damaged(cfg.DataDir)
			if err != nil || len(damaged) != 1 {
				t.Fatalf("Damaged: got %v, error %v, want one folder", damaged, err)
			}
			if hub, ok := damaged[0].Hub(); !ok || hub != "hub1" ||
				damaged[0].Account != "SHARD00" {
				t.Errorf("Damaged: got %+v, want the log of hub1 in SHARD00", damaged[0])
			}
			for range 2 { // every start reports the stream
				second := start(t, cfg)
				missing, err := second.NotRecovered()
				if err != nil || len(missing) != 1 || missing[0].Stream != "HUB_hub1" {
					t.Fatalf("NotRecovered: got %v, error %v, want HUB_hub1", missing, err)
				}
				stop(t, second)
			}
			third := start(t, cfg)
			createStreams(t, connect(t, third))
			if got := contents(t, connect(t, third)); !slices.Equal(got, want) {
				t.Errorf(
					"streams after HUB_hub1 was created: got\n%s\nwant\n%s",
					strings.Join(got, "\n"), strings.Join(want, "\n"),
				)
			}
			stop(t, third)
			fourth := start(t, cfg)
			if missing, err := fourth.NotRecovered(); err != nil || len(missing) > 0 {
				t.Errorf(
					"NotRecovered after the next start: got %v, error %v, want none", missing, err,
				)
			}
			stop(t, fourth)
		})
	}
}

// One unreadable file of one hub log ended the start of the whole service. The other streams must
// be recovered, and the log, Damaged and NotRecovered must name the broken one.
func TestOneBrokenStreamDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
	}{
		{"configuration is a folder", "meta.inf"},
		{"configuration loops", "meta.inf"},
		{"consumers are a file", "obs"},
		{"messages are a file", "msgs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			cfg := config(t, t.TempDir())
			first := start(t, cfg)
			fill(t, connect(t, first))
			stop(t, first)
			found, err := filepath.Glob(
				filepath.Join(cfg.DataDir, "nats", "jetstream", "*", "streams", "HUB_hub1", c.file),
			)
			if err != nil || len(found) != 1 {
				t.Fatalf("files %s of HUB_hub1: got %v, error %v, want one", c.file, found, err)
			}
			if err := os.Rename(found[0], filepath.Join(t.TempDir(), "original")); err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasSuffix(c.name, "folder"):
				err = os.MkdirAll(filepath.Join(found[0], "x"), 0o700)
			case strings.HasSuffix(c.name, "loops"):
				err = os.Symlink(c.file, found[0])
			default:
				err = os.WriteFile(found[0], []byte("x"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			damaged, err := broker.Damaged(cfg.DataDir)
			if err != nil ||
				c.file == "meta.inf" && (len(damaged) != 1 || damaged[0].Stream != "HUB_hub1") {
				t.Errorf("Damaged: got %v, error %v, want HUB_hub1", damaged, err)
			}
			cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			second := start(t, cfg)
			defer stop(t, second)
			conns := connect(t, second)
			for account, name := range map[*nats.Conn]string{
				conns.Cloud: "DIRECTORY", conns.Shards[0]: "HUB_hub2", conns.Shards[2]: "HUB_hub3",
			} {
				js, err := jetstream.New(account)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := js.Stream(t.Context(), name); err != nil {
					t.Errorf("stream %s: got %v, want it recovered", name, err)
				}
			}
			missing, err := second.NotRecovered()
			if err != nil ||
				c.file == "meta.inf" && (len(missing) != 1 || missing[0].Stream != "HUB_hub1") {
				t.Errorf("NotRecovered: got %v, error %v, want HUB_hub1", missing, err)
			}
			if !strings.Contains(lines.String(), "HUB_hub1") {
				t.Errorf("want HUB_hub1 in the log, got:\n%s", lines.String())
			}
		})
	}
}

// createStreams creates streams in several accounts, each with a consumer.
func createStreams(t *testing.T, conns *streams.Conns) {
	t.Helper()
	for account, names := range map[*nats.Conn][]string{
		conns.Cloud: {"DIRECTORY", "KV_presence"}, conns.Shards[0]: {"HUB_hub1", "HUB_hub2"},
		conns.Shards[2]: {"HUB_hub3"},
	} {
		js, err := jetstream.New(account)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
				Name: name, Subjects: []string{name + ".>"}, AllowDirect: true,
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateOrUpdateConsumer(t.Context(), name, jetstream.ConsumerConfig{
				Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy,
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fill creates streams with messages in several accounts. Each stream's consumer acknowledges some.
func fill(t *testing.T, conns *streams.Conns) {
	t.Helper()
	createStreams(t, conns)
	for _, nc := range append([]*nats.Conn{conns.Cloud}, conns.Shards...) {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		for name := range js.StreamNames(t.Context()).Name() {
			if strings.HasPrefix(name, "$MQTT") {
				continue
			}
			for i := range 50 {
				if _, err := js.Publish(
					t.Context(), fmt.Sprintf("%s.%d", name, i%3), fmt.Appendf(nil, "message %d", i),
				); err != nil {
					t.Fatal(err)
				}
			}
			consumer, err := js.Consumer(t.Context(), name, "reader")
			if err != nil {
				t.Fatal(err)
			}
			batch, err := consumer.Fetch(7)
			if err != nil {
				t.Fatal(err)
			}
			for msg := range batch.Messages() {
				if err := msg.DoubleAck(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// contents returns a line for every stream of every account, with its messages and consumers.
func contents(t *testing.T, conns *streams.Conns) []string {
	t.Helper()
	var all []string
	for account, nc := range append([]*nats.Conn{conns.Cloud}, conns.Shards...) {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		for info := range js.ListStreams(t.Context()).Info() {
			line := fmt.Sprintf(
				"account %d stream %s of %v: %d to %d", account, info.Config.Name,
				info.Config.Subjects, info.State.FirstSeq, info.State.LastSeq,
			)
			stream, err := js.Stream(t.Context(), info.Config.Name)
			if err != nil {
				t.Fatal(err)
			}
			state := info.State
			for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
				msg, err := stream.GetMsg(t.Context(), seq)
				if err != nil {
					t.Fatalf("%s: message %d: %v", line, seq, err)
				}
				line += fmt.Sprintf(" %s=%s", msg.Subject, msg.Data)
			}
			for consumer := range stream.ListConsumers(t.Context()).Info() {
				line += fmt.Sprintf(
					" consumer %s acknowledged %d", consumer.Name, consumer.AckFloor.Stream,
				)
			}
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// metaFiles returns the files of that name in a store, one for each stream and each consumer.
func metaFiles(t *testing.T, dataDir, name string) []string {
	t.Helper()
	var found []string
	for _, store := range []string{"nats", "nats/durable"} {
		for _, pattern := range []string{"*", "*/obs/*"} {
			some, err := filepath.Glob(
				filepath.Join(
					dataDir, store, "jetstream", "*", "streams", filepath.FromSlash(pattern), name,
				),
			)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, some...)
		}
	}
	if len(found) < 10 {
		t.Fatalf("files %s in the store: got %d, want at least 10", name, len(found))
	}
	return found
}
