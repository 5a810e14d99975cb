package protocol_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	check "hubcloud/test/protocol"
)

func load(t *testing.T) check.Schemas {
	t.Helper()
	schemas, err := check.Load()
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}

// document is a schema as the file has it.
type document struct {
	Ref         string              `json:"$ref"`
	Defs        map[string]document `json:"$defs"`
	Title       string              `json:"title"`
	Description string              `json:"description"`
	Properties  map[string]document `json:"properties"`
	Required    []string            `json:"required"`
	AllOf       []document          `json:"allOf"`
	Examples    []json.RawMessage   `json:"examples"`
}

func read(t *testing.T, name string) (d document) {
	t.Helper()
	text, err := fs.ReadFile(protocol.Files(), "schemas/"+name+".json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSchemasOfAllMessages requires one schema for each message, and no others.
func TestSchemasOfAllMessages(t *testing.T) {
	t.Parallel()
	want := []string{
		"ack", "channel", "common", "device", "enrolment-answer", "enrolment-error",
		"enrolment-request", "event", "events", "hello", "request", "response",
	}
	for _, method := range protocol.Methods() {
		want = append(want, "request-"+method, "response-"+method)
	}
	for _, typ := range typesOfPage(t) {
		want = append(want, "event-"+typ)
	}
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(load(t)))
	if !slices.Equal(got, want) {
		t.Errorf("schemas: got\n%q, want\n%q", got, want)
	}
	for name := range load(t) {
		d := read(t, name)
		if d.Title == "" || d.Description == "" {
			t.Errorf("%s: lacks a title or a description", name)
		}
		if len(d.Examples) == 0 && !slices.Contains([]string{"common", "channel", "device"}, name) {
			t.Errorf("%s: has no example", name)
		}
		for _, example := range d.Examples {
			if err := load(t).Validate(name, example); err != nil {
				t.Errorf("%s: an example is invalid: %v", name, err)
			}
		}
	}
}

// typesOfPage returns the types of events in the page's table.
func typesOfPage(t *testing.T) (types []string) {
	t.Helper()
	_, section, ok := strings.Cut(page(t), "\n## 9. Types of events\n")
	if !ok {
		t.Fatal("README.md: has no section of the types of events")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), " | "); ok &&
			strings.HasPrefix(line, "| `") {
			for _, typ := range strings.Split(first, ", ") {
				if typ = strings.Trim(typ, "`"); typ != "type" {
					types = append(types, typ)
				}
			}
		}
	}
	for _, known := range []string{domain.EventDeviceForgotten, "channel.observed"} {
		if !slices.Contains(types, known) {
			t.Fatalf("README.md: the table of types has %q, want %s too", types, known)
		}
	}
	return types
}

func page(t *testing.T) string {
	t.Helper()
	text, err := fs.ReadFile(protocol.Files(), "README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageNamesEveryMethodAndError compares the page with the constants of the code.
func TestPageNamesEveryMethodAndError(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, method := range protocol.Methods() {
		if !strings.Contains(text, "\n### "+method+"\n") ||
			!strings.Contains(text, "| [`"+method+"`](#"+strings.ReplaceAll(method, ".", "")+")") {
			t.Errorf("README.md: lacks a section or a row of %s", method)
		}
	}
	for _, typ := range []string{
		protocol.ErrorNotFound, protocol.ErrorInvalidRequest, protocol.ErrorCommandRefused,
		protocol.ErrorHubUnavailable,
	} {
		if !strings.Contains(text, "`"+typ+"`") {
			t.Errorf("README.md: lacks the error type %s", typ)
		}
	}
}

// TestLinksOfPage checks that relative links of the page lead to its files and headings.
func TestLinksOfPage(t *testing.T) {
	t.Parallel()
	text := page(t)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		id := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		anchors[regexp.MustCompile(`[^a-z0-9-]`).ReplaceAllString(id, "")] = true
	}
	for _, rule := range protocol.Rules() {
		anchors[rule.ID] = true
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		target := link[1]
		if strings.HasPrefix(target, "#") {
			if !anchors[target[1:]] {
				t.Errorf("README.md: no heading for the link %s", target)
			}
			continue
		}
		if _, err := fs.Stat(protocol.Files(), path.Clean(target)); err != nil {
			t.Errorf("README.md: link %s: %v", target, err)
		}
	}
}

// TestFieldsOfTypes compares the members of the Go types with the properties of the schemas: the
// same names, and what the code always marshals must be a property.
func TestFieldsOfTypes(t *testing.T) {
	t.Parallel()
	hello := read(t, "hello")
	common := read(t, "common")
	for name, c := range map[string]struct {
		value  any
		schema document
	}{
		"hello":             {protocol.Hello{}, hello},
		"network":           {protocol.Network{}, hello.Defs["network"]},
		"ack":               {protocol.Ack{}, read(t, "ack")},
		"events":            {protocol.Events{}, read(t, "events")},
		"event":             {protocol.Event{}, read(t, "event")},
		"request":           {protocol.Request{}, read(t, "request")},
		"response":          {protocol.Response{}, read(t, "response")},
		"error":             {protocol.Error{}, common.Defs["error"]},
		"enrolment-request": {protocol.CertificateRequest{}, read(t, "enrolment-request")},
		"enrolment-answer":  {protocol.Certificate{}, read(t, "enrolment-answer")},
	} {
		var fields []string
		for field := range reflect.TypeOf(c.value).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields = append(fields, name)
		}
		slices.Sort(fields)
		if got := slices.Sorted(maps.Keys(c.schema.Properties)); !slices.Equal(got, fields) {
			t.Errorf("%s: the schema has the properties %q, the type the members %q", name, got, fields)
		}
	}
	device, channel := read(t, "device"), read(t, "channel")
	listed := channel.Defs["listed"].Properties
	full := channel.Defs["full"].Properties
	want := []string{"channels", "id", "manufacturer", "model", "name", "wakes_at"}
	for form, schema := range device.Defs {
		if got := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, want) {
			t.Errorf("Device, %s: got the properties %q, want %q", form, got, want)
		}
	}
	for key := range listed {
		if _, ok := full[key]; !ok {
			t.Errorf("Channel: %s is in the listed form only", key)
		}
	}
}

// TestTypesMarshalValidMessages validates what the Go types marshal.
func TestTypesMarshalValidMessages(t *testing.T) {
	t.Parallel()
	yes, device, dbm, text := true, int64(3), -61, "x"
	event := protocol.Event{
		Seq: 1, Type: "channel.observed", DeviceID: &device, Time: "2026-01-02T03:04:05.123456Z",
		ClockTrusted: &yes, Data: json.RawMessage(`{"key":"lock","endpoint":0,"value":true}`),
	}
	for name, values := range map[string][]any{
		"hello": {
			protocol.Hello{Protocol: protocol.Version, Log: "a", Oldest: 1},
			protocol.Hello{
				Protocol: protocol.Version, Log: strings.Repeat("a", 64), Oldest: 2,
				Newest: protocol.MaxNumber, ClockTrusted: &yes,
				Firmware: &protocol.Firmware{Version: "2.4.1"},
				Network: &protocol.Network{
					Type: "wifi", Interface: "wlan0", IPAddress: &text, IPv6Address: &text,
					MACAddress: &text, SSID: &text, SignalDBM: &dbm, Carrier: &text, Radio: &text,
				},
			},
		},
		"ack":    {protocol.Ack{Log: "a"}, protocol.Ack{Log: "a", Through: protocol.MaxNumber}},
		"event":  {event},
		"events": {protocol.Events{Log: "a", Events: []protocol.Event{event}}},
		"request": {protocol.Request{
			ID: "1", Token: "k3/17", Method: "devices.list", Params: json.RawMessage(`{}`),
			TimeoutMS: 10_000,
		}},
		"response": {
			protocol.Response{ID: "1", Result: json.RawMessage(`{}`)},
			protocol.Response{ID: "1", Error: &protocol.Error{Type: protocol.ErrorNotFound}},
		},
		"enrolment-request": {protocol.CertificateRequest{
			Serial: "HUB-7K2M-Q4XD-93TA", Secret: "s", CSR: "c",
		}},
		"enrolment-answer": {protocol.Certificate{
			HubID: "hub-7k2m-q4xd-93ta", Certificate: "-----BEGIN CERTIFICATE-----",
			CA: "-----BEGIN CERTIFICATE-----", Broker: "mqtts://127.0.0.1:8883",
			ExpiresAt: "2026-01-02T03:04:05.123456Z",
		}},
	} {
		for _, value := range values {
			message, err := json.Marshal(value)
			if err == nil {
				err = load(t).Validate(name, message)
			}
			if err != nil {
				t.Errorf("%s: %v", message, err)
			}
		}
	}
}
