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
	"hubcloud/streams/streamstest"
	check "hubcloud/test/protocol"
)

func load(t *testing.T) check.Schemas {
	t.Helper()
	schemas, err := check.Load()
	streamstest.Must(t, err)
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
	streamstest.Must(t, err)
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
	streamstest.Must(t, err)
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
