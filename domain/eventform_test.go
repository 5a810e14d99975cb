package domain_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

const eventID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"

// Events are stored forever, so every form in which an event was ever written has a golden file,
// which must decode to a fact that is written again as it was. To add a form, add its file beside
// the others. Never change an existing file.
func TestEveryEventEverWrittenIsRead(t *testing.T) {
	t.Parallel()
	for _, form := range domain.EventForms() {
		file := fmt.Sprintf("%s.v%d", form.Type, form.V)
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			golden, err := os.ReadFile(filepath.Join("testdata", "events", file+".json"))
			if err != nil {
				t.Fatalf("the form has no golden file: %v", err)
			}
			event, fact, err := domain.DecodeEvent(golden)
			if err != nil {
				t.Fatal(err)
			}
			again, err := domain.EncodeEvent(event)
			if err != nil {
				t.Fatal(err)
			}
			if string(again)+"\n" != string(golden) {
				t.Errorf("EncodeEvent of the decoded event: got\n%s\nwant\n%s", again, golden)
			}
			checkMemberNames(t, reflect.TypeOf(fact))
		})
	}
}

// checkMemberNames fails unless each field is stored under its own name, so that no two of one type
// can be swapped.
func checkMemberNames(t *testing.T, of reflect.Type) {
	t.Helper()
	others := map[string]string{"EpochID": "epoch", "OwnLog": "log"}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want := cmp.Or(others[field.Name], snakeCase(field.Name))
		if !field.Anonymous && name != want {
			t.Errorf("field %s is stored as %q, want %q", field.Name, name, want)
		}
	}
}

// snakeCase returns a Go name as JSON has it: HubID is hub_id.
func snakeCase(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2"))
}

// A newer program may add fields to an event. An older program must still read the others.
func TestDecodeEventIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	raw := `{"id":"` + eventID + `","type":"site.renamed","v":1,"at":"2026-01-02T03:04:05Z",` +
		`"actor":{"kind":"robot","id":"x","mood":1},` +
		`"trace":"abc","data":{"org_id":"o","site_id":"s","name":"n","color":"red"}}`
	event, fact, err := domain.DecodeEvent([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if want := (domain.SiteRenamed{OrgID: "o", SiteID: "s", Name: "n"}); fact != want || event.Actor.Kind != "robot" {
		t.Errorf("DecodeEvent: got %#v by %#v, want %#v by a robot", fact, event.Actor, want)
	}
}

func TestDecodeEventRejects(t *testing.T) {
	t.Parallel()
	head := `{"id":"` + eventID + `","at":"2026-01-02T03:04:05Z","actor":{"kind":"service"},`
	for name, raw := range map[string]string{
		"a newer version": head + `"type":"site.renamed","v":2,"data":{}}`,
		"a newer type":    head + `"type":"site.painted","v":1,"data":{}}`,
	} {
		event, _, err := domain.DecodeEvent([]byte(raw))
		if !errors.Is(err, domain.ErrUnknownEvent) || event.ID != eventID {
			t.Errorf(
				"%s: got %v with event %q, want ErrUnknownEvent with %q",
				name, err, event.ID, eventID,
			)
		}
	}
	for name, raw := range map[string]string{
		"nothing":         "",
		"no object":       "[]",
		"no type":         head + `"v":1,"data":{}}`,
		"no version":      head + `"type":"site.renamed","data":{}}`,
		"no id":           `{"type":"site.renamed","v":1,"at":"2026-01-02T03:04:05Z","data":{}}`,
		"no time":         `{"id":"x","type":"site.renamed","v":1,"data":{}}`,
		"no data":         head + `"type":"site.renamed","v":1}`,
		"data of no form": head + `"type":"site.renamed","v":1,"data":[]}`,
	} {
		if _, _, err := domain.DecodeEvent([]byte(raw)); err == nil || errors.Is(err, domain.ErrUnknownEvent) {
			t.Errorf("%s: got %v, want an error other than ErrUnknownEvent", name, err)
		}
	}
}

func TestEncodeEventIsStrict(t *testing.T) {
	t.Parallel()
	good := func() domain.Event {
		e := domain.Record(origin, domain.SiteRenamed{OrgID: orgA, SiteID: site1, Name: "n"})
		e.ID = eventID
		return e
	}
	if _, err := domain.EncodeEvent(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*domain.Event){
		"no id":        func(e *domain.Event) { e.ID = "" },
		"no ULID":      func(e *domain.Event) { e.ID = strings.ToLower(site1) },
		"no time":      func(e *domain.Event) { e.At = time.Time{} },
		"no actor":     func(e *domain.Event) { e.Actor = domain.Actor{} },
		"unknown type": func(e *domain.Event) { e.Type = "site.painted" },
		"unknown field": func(e *domain.Event) {
			e.Data = json.RawMessage(`{"org_id":"o","site_id":"s","name":"n","color":"red"}`)
		},
		"missing field": func(e *domain.Event) {
			e.Data = json.RawMessage(`{"org_id":"o","site_id":"s"}`)
		},
	} {
		e := good()
		spoil(&e)
		if raw, err := domain.EncodeEvent(e); err == nil {
			t.Errorf("%s: got %s, want an error", name, raw)
		}
	}
}

// A state folded from decided events must equal the state folded from the stored events.
func TestRecordTruncatesTimes(t *testing.T) {
	t.Parallel()
	o := origin
	o.At = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("", 3600))
	e := domain.Record(o, domain.SiteRenamed{})
	e.ID = eventID
	raw, err := domain.EncodeEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	stored, _, err := domain.DecodeEvent(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(stored, e) {
		t.Errorf("decoded: got %#v, want %#v as decided", stored, e)
	}
}

func FuzzDecodeEvent(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "events", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		event, fact, err := domain.DecodeEvent(raw)
		if err != nil {
			return
		}
		if fact == nil || fact.EventType() != event.Type {
			t.Errorf("event of type %s: got the fact %#v of another type", event.Type, fact)
		}
	})
}
