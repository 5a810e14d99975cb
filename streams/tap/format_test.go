package tap_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"hubcloud/streams"
	"hubcloud/streams/tap"
)

// schema reads a JSON schema, with formats held to as well.
func schema(t testing.TB, path string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	s, err := compiler.Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t testing.TB, s *jsonschema.Schema, text []byte) map[string]any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(value)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.(map[string]any)
}

// everyKind gives records of every kind that there is.
func everyKind(t testing.TB) []tap.Record {
	t.Helper()
	r := newRig(t, time.Hour)
	path := t.TempDir() + "/checkpoint"
	out := newSink()
	r.store(hubID(1), 3)
	if _, err := r.logs.AppendCommand(t.Context(), hubID(1), []byte(`{"key":"lock"}`), nats.Header{}); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.tags[hubID(1)] = "0000000b"
	r.mu.Unlock()
	r.store(hubID(1), 1)
	if err := r.start(tap.Config{
		Output: out, Checkpoint: path, Commands: true,
	}).wait(); err != nil {
		t.Fatal(err)
	}
	if err := purge(t, r, 5); err != nil {
		t.Fatal(err)
	}
	r.store(hubID(1), 2)
	if err := purge(t, r, 7); err != nil {
		t.Fatal(err)
	}
	if err := r.start(tap.Config{
		Output: out, Checkpoint: path, Commands: true,
	}).wait(); err != nil {
		t.Fatal(err)
	}
	return out.all()
}

// purge takes away what hub 1 has before a sequence.
func purge(t testing.TB, r *rig, before uint64) error {
	t.Helper()
	request, err := json.Marshal(map[string]uint64{"seq": before})
	if err != nil {
		return err
	}
	_, err = r.conns.Shard(hubID(1)).
		RequestWithContext(t.Context(), "$JS.API.STREAM.PURGE."+streams.HubStream(hubID(1)), request)
	return err
}

// TestFormats holds every kind of line to its schema: the one that is in the documentation, and the
// one of the CloudEvents specification.
func TestFormats(t *testing.T) {
	t.Parallel()
	lines, events := schema(t, "../../deploy/docs/tap-line.schema.json"), schema(t, "testdata/cloudevents.schema.json")
	payloads := schema(t, "../../deploy/docs/tap-payload.schema.json")
	attribute := regexp.MustCompile(`^[a-z0-9]{1,20}$`)
	seen, ids := map[string]bool{}, map[string]bool{}
	for _, record := range everyKind(t) {
		seen[record.Type] = true
		line, err := tap.NDJSON.Append([]byte("x"), record)
		if err != nil || line[0] != 'x' || bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("%q, %v", line, err)
		}
		got := valid(t, lines, line[1:])
		if record.Type == "channel.observed" {
			delete(got, "cursor")
			for _, own := range []string{"organization_id", "sequence", "stored_at"} {
				delete(got, own)
			}
			payload, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			valid(t, payloads, payload)
		}

		text, err := tap.CloudEvents.Append(nil, record)
		if err != nil || bytes.ContainsAny(text, "\r\n") {
			t.Fatalf("%q, %v", text, err)
		}
		event := valid(t, events, text)
		for name, value := range event {
			if _, isText := value.(string); name != "data" &&
				(!attribute.MatchString(name) || !isText) {
				t.Errorf("attribute %q is %v", name, value)
			}
		}
		id := event["source"].(string) + " " + event["id"].(string)
		if event["specversion"] != "1.0" || event["type"] != record.Type ||
			event["hubid"] != string(record.Hub) ||
			ids[id] {
			t.Errorf("%s", text)
		}
		ids[id] = true
		if data, ok := event["data"].(map[string]any); !ok || data["type"] != record.Type {
			t.Errorf("data of %s", text)
		}
		if seq, ok := event["sequence"].(string); (record.Seq > 0) != ok || ok && len(seq) != 20 {
			t.Errorf("sequence of %s", text)
		}
	}
	for _, typ := range []string{
		"channel.observed", tap.TypeGap, tap.TypeLogBegun, tap.TypeCommand,
	} {
		if !seen[typ] {
			t.Errorf("no %s was tried", typ)
		}
	}
}

// TestCloudEventSubject: an event about a device names it.
func TestCloudEventSubject(t *testing.T) {
	t.Parallel()
	for envelope, want := range map[string]string{
		`{"cursor":"c","type":"t","hub_id":"h","device_id":7,"time":"2026-01-02T03:04:05Z","data":{}}`:    `"subject":"devices/7"`,
		`{"cursor":"c","type":"t","hub_id":"h","device_id":null,"time":"2026-01-02T03:04:05Z","data":{}}`: ``,
	} {
		text, err := tap.CloudEvents.Append(
			nil, tap.Record{Hub: hubID(1), Type: "t", ID: "c", Seq: 1, Envelope: []byte(envelope)},
		)
		if err != nil || (want == "") != !strings.Contains(string(text), `"subject"`) ||
			!strings.Contains(string(text), want) {
			t.Errorf("%s, %v", text, err)
		}
	}
	if _, err := tap.CloudEvents.Append(nil, tap.Record{Envelope: []byte("no JSON")}); err == nil {
		t.Error("an envelope that is none is taken")
	}
}
