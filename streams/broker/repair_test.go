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
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
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
		{"empty", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"half", func(path string) error { return os.Truncate(path, 7) }},
		{"folder", func(path string) error {
			return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			cfg, want := filled(t)
			cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			sums := metaFiles(t, cfg.DataDir, "meta.sum")
			for _, sum := range sums {
				streamstest.Must(t, c.damage(sum))
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
		{"half", func(path string) error { return os.Truncate(path, 100) }},
		{"zeroes", func(path string) error { return os.WriteFile(path, make([]byte, 400), 0o600) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, want := filled(t)
			for _, meta := range metaFiles(t, cfg.DataDir, "meta.inf") {
				if filepath.Base(filepath.Dir(meta)) == "HUB_hub1" {
					streamstest.Must(t, c.damage(meta))
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
			second := start(t, cfg)
			missing, err := second.NotRecovered()
			if err != nil || len(missing) != 1 || missing[0].Stream != "HUB_hub1" {
				t.Fatalf("NotRecovered: got %v, error %v, want HUB_hub1", missing, err)
			}
			createStreams(t, connect(t, second))
			if got := contents(t, connect(t, second)); !slices.Equal(got, want) {
				t.Errorf(
					"streams after HUB_hub1 was created: got\n%s\nwant\n%s",
					strings.Join(got, "\n"), strings.Join(want, "\n"),
				)
			}
		})
	}
}

// One unreadable file of one hub log ended the start of the whole service. The other streams must
// be recovered, and the log must name the broken one.
func TestOneBrokenStreamDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"meta.inf", "obs", "msgs"} { // configuration, consumers, messages
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			cfg, _ := filled(t)
			found, err := filepath.Glob(
				filepath.Join(cfg.DataDir, "nats", "jetstream", "*", "streams", "HUB_hub1", name),
			)
			if err != nil || len(found) != 1 {
				t.Fatalf("files %s of HUB_hub1: got %v, error %v, want one", name, found, err)
			}
			streamstest.Must(t, os.Rename(found[0], filepath.Join(t.TempDir(), "original")))
			if err := os.Symlink(name, found[0]); err != nil { // a loop
				t.Fatal(err)
			}
			cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
			second := start(t, cfg)
			defer stop(t, second)
			conns := connect(t, second)
			for account, name := range map[*nats.Conn]string{
				conns.Cloud: "DIRECTORY", conns.Shards[0]: "HUB_hub2", conns.Shards[2]: "HUB_hub3",
			} {
				if _, err := jsapi.New(account).Info(t.Context(), name); err != nil {
					t.Errorf("stream %s: got %v, want it recovered", name, err)
				}
			}
			if !strings.Contains(lines.String(), "HUB_hub1") {
				t.Errorf("want HUB_hub1 in the log, got:\n%s", lines.String())
			}
		})
	}
}

// filled returns the configuration of a stopped broker with the streams of fill, and its contents.
func filled(t *testing.T) (broker.Config, []string) {
	t.Helper()
	cfg := config(t, t.TempDir())
	s := start(t, cfg)
	fill(t, connect(t, s))
	all := contents(t, connect(t, s))
	stop(t, s)
	return cfg, all
}

// createStreams creates streams in several accounts, each with a consumer.
func createStreams(t *testing.T, conns *streams.Conns) {
	t.Helper()
	for account, names := range map[*nats.Conn][]string{
		conns.Cloud: {"DIRECTORY", "KV_presence"}, conns.Shards[0]: {"HUB_hub1", "HUB_hub2"},
		conns.Shards[2]: {"HUB_hub3"},
	} {
		js, err := jetstream.New(account)
		streamstest.Must(t, err)
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
		streamstest.Must(t, err)
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
			streamstest.Must(t, err)
			batch, err := consumer.Fetch(7)
			streamstest.Must(t, err)
			for msg := range batch.Messages() {
				streamstest.Must(t, msg.DoubleAck(t.Context()))
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
		streamstest.Must(t, err)
		for info := range js.ListStreams(t.Context()).Info() {
			line := fmt.Sprintf(
				"account %d stream %s of %v: %d to %d", account, info.Config.Name,
				info.Config.Subjects, info.State.FirstSeq, info.State.LastSeq,
			)
			stream, err := js.Stream(t.Context(), info.Config.Name)
			streamstest.Must(t, err)
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
			streamstest.Must(t, err)
			found = append(found, some...)
		}
	}
	if len(found) < 10 {
		t.Fatalf("files %s in the store: got %d, want at least 10", name, len(found))
	}
	return found
}
