// Package tap_test validates the formats of the tap against their JSON schemas.
package tap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const hub = domain.HubID("hub-aaaa-aaaa-0001")

// sink is an Output that keeps the records in memory.
type sink struct {
	mu      sync.Mutex
	records []tap.Record
}

func (s *sink) Writers() int                { return 8 }
func (s *sink) Flush(context.Context) error { return nil }

func (s *sink) Write(_ context.Context, records []tap.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, records...)
	return nil
}

// everyKind returns records of every kind, as a tap reads them from the log of a hub.
func everyKind(t *testing.T) []tap.Record {
	t.Helper()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	journals, _ := viewstest.Open(t, conns, time.Hour)
	epoch := domain.NewEpochID(0xa)
	logs, err := feed.New(conns, feed.Config{
		Journal:   journals,
		Retention: time.Hour,
		Logger:    slog.New(slog.DiscardHandler),
		Epoch: func(domain.HubID) (domain.Epoch, bool) {
			return domain.Epoch{ID: epoch}, true
		},
	})
	streamstest.Must(t, err)
	t.Cleanup(logs.Close)

	var last, stored uint64
	appendEvents := func(count int) {
		t.Helper()
		var records []journal.Record
		for range count {
			stored++
			payload, err := json.Marshal(domain.HubEvent{
				Type: "channel.observed", HubID: hub,
				Time: domain.FormatTime(time.Unix(int64(stored), 0)),
				Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, stored)),
			})
			streamstest.Must(t, err)
			records = append(records, journal.Record{Kind: journal.KindHubEvent,
				Payload: payload, EpochID: epoch, OrgID: "01930000-0000-7000-8000-00000000000a",
				OwnLog: "log", Through: stored,
			})
		}
		if last, err = logs.Append(t.Context(), hub, last, records); err != nil {
			t.Fatal(err)
		}
	}
	// awaitStream waits until the hub's stream has the whole log.
	awaitStream := func() {
		t.Helper()
		tip, _ := journals.Tip(hub)
		viewstest.Await(t, conns, hub, tip.Seq)
	}
	// purge removes what the hub's stream has before a sequence.
	purge := func(before uint64) {
		t.Helper()
		awaitStream()
		subject := "$JS.API.STREAM.PURGE." + streams.HubStream(hub)
		request := fmt.Appendf(nil, `{"seq":%d}`, before)
		if _, err := conns.Shard(hub).RequestWithContext(
			t.Context(), subject, request,
		); err != nil {
			t.Fatal(err)
		}
	}
	user := broker.Credentials().Users[streams.AccountTap]
	nc, err := tap.Connect(
		t.Context(), tap.ForUser("nats://in-process", streamstest.Shards, user),
		slog.New(slog.DiscardHandler), nats.InProcessServer(broker),
	)
	streamstest.Must(t, err)
	t.Cleanup(nc.Close)
	out, checkpoint := &sink{}, t.TempDir()+"/checkpoint"
	run := func() {
		t.Helper()
		awaitStream()
		tapped, err := tap.New(tap.Config{
			Conn: nc, Shards: streamstest.Shards, Logger: slog.New(slog.DiscardHandler),
			Output: out, Checkpoint: checkpoint, Commands: true,
		})
		streamstest.Must(t, err)
		streamstest.Must(t, tapped.Run(t.Context()))
	}

	appendEvents(3)
	if _, err := logs.AppendCommand(
		t.Context(), hub, []byte(`{"key":"lock"}`),
	); err != nil {
		t.Fatal(err)
	}
	epoch = domain.NewEpochID(0xb)
	appendEvents(1)
	run()
	purge(5)
	appendEvents(2)
	purge(7)
	run()
	return out.records
}

// compile reads a JSON schema. Formats are asserted.
func compile(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(path)
	streamstest.Must(t, err)
	return schema
}

// validate fails the test unless text is a JSON object that the schema allows, and returns the
// object.
func validate(t *testing.T, schema *jsonschema.Schema, text []byte) map[string]any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.(map[string]any)
}

// attributeName is what the CloudEvents specification allows as the name of an attribute.
var attributeName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// TestFormats validates every kind of record: the line and the payload against the documented
// schemas, the CloudEvent against the schema of the CloudEvents specification.
func TestFormats(t *testing.T) {
	t.Parallel()
	lines := compile(t, "../../deploy/docs/tap-line.schema.json")
	payloads := compile(t, "../../deploy/docs/tap-payload.schema.json")
	cloudEvents := compile(t, "cloudevents.schema.json")
	kinds, ids := map[string]bool{}, map[string]bool{}
	for _, record := range everyKind(t) {
		kinds[record.Type] = true
		line, err := tap.NDJSON.Append([]byte("x"), record)
		if err != nil || line[0] != 'x' || bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("got the line %q, %v; want x and one JSON object", line, err)
		}
		payload := validate(t, lines, line[1:])
		if record.Type == "channel.observed" {
			for _, member := range []string{"cursor", "organization_id", "sequence", "stored_at"} {
				delete(payload, member)
			}
			text, err := json.Marshal(payload)
			streamstest.Must(t, err)
			validate(t, payloads, text)
		}

		text, err := tap.CloudEvents.Append(nil, record)
		if err != nil || bytes.ContainsAny(text, "\r\n") {
			t.Fatalf("got the CloudEvent %q, %v; want one line", text, err)
		}
		event := validate(t, cloudEvents, text)
		for name, value := range event {
			if name == "data" {
				continue
			}
			if _, ok := value.(string); !ok || !attributeName.MatchString(name) {
				t.Errorf(
					"got the attribute %q: %v, want a string named %s", name, value, attributeName,
				)
			}
		}
		for attribute, want := range map[string]string{
			"specversion": "1.0", "type": record.Type, "hubid": string(record.Hub),
		} {
			if event[attribute] != want {
				t.Errorf("attribute %s: got %v, want %s", attribute, event[attribute], want)
			}
		}
		id := fmt.Sprint(event["source"], " ", event["id"])
		if ids[id] {
			t.Errorf("source and id %s: want every event to have its own", id)
		}
		ids[id] = true
		if data, ok := event["data"].(map[string]any); !ok || data["type"] != record.Type {
			t.Errorf("got the data %v, want the type %s", event["data"], record.Type)
		}
		sequence, ok := event["sequence"].(string)
		if ok != (record.Seq > 0) || ok && len(sequence) != 20 {
			t.Errorf("sequence of record %d: got %v, want 20 digits", record.Seq, event["sequence"])
		}
	}
	for _, kind := range []string{
		"channel.observed", tap.TypeGap, tap.TypeLogBegun, tap.TypeCommand,
	} {
		if !kinds[kind] {
			t.Errorf("no record of the kind %s", kind)
		}
	}
}
