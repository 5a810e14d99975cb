package protocol_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// decoder is the code that decodes the messages of a schema.
type decoder struct {
	// accepts reports whether the code accepts a message.
	accepts func(message []byte) bool
	// tolerated are the differences: where the code accepts what the schema does not allow, by the
	// beginning of the place of the mutation. The value is the reason.
	tolerated map[string]string
	// stricter are the places where the code rejects what the schema allows.
	stricter map[string]string
}

const (
	shownWithout = "the cloud goes on without an invalid part, so that it cannot stop the hub"
	absentIsNull = "an absent member counts as null"
	notRead      = "the cloud does not read it"
	plainDigits  = "integers are plain digits (R-json-3); a schema compares values"
)

// decoders returns the code for each schema of a message that the cloud decodes.
func decoders() map[string]decoder {
	response := decoder{
		accepts: func(message []byte) bool {
			_, err := codec.ParseResponse(message)
			return err == nil
		},
		tolerated: map[string]string{
			"/error/message": "the error counts without its message",
		},
	}
	// channels returns the differences of a channel in a form, at the places of two channels.
	channels := func(form string, prefixes ...string) map[string]string {
		places := map[string]string{}
		for _, prefix := range prefixes {
			places[prefix+"/unit-"] = absentIsNull
			if form != "commanded" {
				places[prefix+"/capabilities-"] = absentIsNull
				places[prefix+"/capabilities=null"] = "null counts as no capabilities"
				places[prefix+"/capabilities/"] = notRead
			}
			if form == "listed" {
				places[prefix+"/value+"] = notRead
				continue
			}
			for _, name := range []string{"value", "observed_at", "desired", "desired_at"} {
				places[prefix+"/"+name+"-"] = absentIsNull
			}
		}
		return places
	}
	return map[string]decoder{
		"hello": {
			accepts: func(message []byte) bool {
				_, err := codec.ParseHello(message)
				return err == nil
			},
			tolerated: map[string]string{
				"/firmware": shownWithout, "/network": shownWithout, "/clock_trusted": notRead,
				"/credentials": "any other value is no support",
			},
			stricter: map[string]string{
				"=1.0": plainDigits, "=1e2": plainDigits,
				"/oldest=": "a schema cannot compare oldest with newest",
				"/newest=": "a schema cannot compare oldest with newest",
			},
		},
		"events": {
			accepts: func(message []byte) bool {
				batch, err := new(codec.EventsDecoder).Decode("hub-7k2m-q4xd-93ta", message)
				return err == nil && !slices.ContainsFunc(
					batch.Events, func(e codec.Event) bool { return e.Flaw != "" },
				)
			},
			stricter: map[string]string{"=1.0": plainDigits, "=1e2": plainDigits},
		},
		"response": response,
		"response-devices.list": result(
			func(text []byte) error { _, err := codec.ParseDevices(text); return err },
			channels("listed", "/result/devices/0/channels/0", "/result/devices/0/channels/1"),
		),
		"response-devices.get": result(
			func(text []byte) error { _, err := codec.ParseDevice(text); return err },
			channels("full", "/result/device/channels/0", "/result/device/channels/1"),
		),
		"response-channels.command": result(
			func(text []byte) error {
				c, err := codec.ParseChannel(text)
				if err == nil && c.Status != domain.ChannelPending {
					err = fmt.Errorf("status %s", c.Status) // commands.Devices checks it
				}
				return err
			},
			channels("commanded", "/result/channel"),
		),
		"response-pairing.open": result(
			func(text []byte) error { _, err := codec.ParseWindow(text); return err }, nil,
		),
		"response-removal.open": result(
			func(text []byte) error { _, err := codec.ParseWindow(text); return err }, nil,
		),
		"enrolment-request": {
			accepts: func(message []byte) bool {
				var r protocol.CertificateRequest
				if json.Unmarshal(message, &r) != nil {
					return false
				}
				_, ok := domain.ParseSerial(r.Serial)
				return ok && r.Secret != "" && r.CSR != ""
			},
			tolerated: map[string]string{},
		},
	}
}

// result returns the decoder of a method's response: of the response, and of its result.
func result(parse func([]byte) error, tolerated map[string]string) decoder {
	places := map[string]string{"/error/message": "the error counts without its message"}
	maps.Copy(places, tolerated)
	return decoder{
		accepts: func(message []byte) bool {
			response, err := codec.ParseResponse(message)
			return err == nil && (response.Result == nil || parse(response.Result) == nil)
		},
		tolerated: places,
		stricter:  map[string]string{"=1.0": plainDigits, "=1e2": plainDigits},
	}
}

// replacements are put in the place of each value, as they are written.
var replacements = []string{
	`null`, `true`, `0`, `1`, `-1`, `1.0`, `1.5`, `1e2`, `9007199254740991`, `9007199254740992`,
	`9223372036854775808`, `""`, `"x"`, `"hub.x"`, `"open"`, `"pending"`, `"wifi"`,
	`"2026-01-02T03:04:05Z"`, `"2026-02-30T03:04:05Z"`, `"2026-01-02 03:04:05"`,
	`"2026-01-02T03:04:05"`, `"` + strings.Repeat("x", 201) + `"`, `"\u0007"`, `[]`, `{}`, `[1]`,
	`{"x":1}`, `[{}]`,
}

// mutation is a changed message.
type mutation struct {
	// place is the path of the changed value, followed by = and its new text, by - if it was
	// removed, or by + if it was added.
	place string
	text  []byte
}

// mutations returns copies of a message in which one value is replaced or removed.
func mutations(message []byte) (all []mutation) {
	var visit func(place string, text json.RawMessage, rebuild func(json.RawMessage) []byte)
	visit = func(place string, text json.RawMessage, rebuild func(json.RawMessage) []byte) {
		for _, with := range replacements {
			all = append(all, mutation{place + "=" + with, rebuild(json.RawMessage(with))})
		}
		var members map[string]json.RawMessage
		var elements []json.RawMessage
		switch {
		case json.Unmarshal(text, &members) == nil && members != nil:
			if _, ok := members["value"]; !ok {
				with := maps.Clone(members)
				with["value"] = json.RawMessage(`1`)
				all = append(all, mutation{place + "/value+", rebuild(encode(with))})
			}
			for name, value := range members {
				without := maps.Clone(members)
				delete(without, name)
				all = append(all, mutation{place + "/" + name + "-", rebuild(encode(without))})
				visit(place+"/"+name, value, func(with json.RawMessage) []byte {
					changed := maps.Clone(members)
					changed[name] = with
					return rebuild(encode(changed))
				})
			}
		case json.Unmarshal(text, &elements) == nil:
			for i, value := range elements {
				visit(place+"/"+strconv.Itoa(i), value, func(with json.RawMessage) []byte {
					changed := slices.Clone(elements)
					changed[i] = with
					return rebuild(encode(changed))
				})
			}
		}
	}
	visit("", message, func(with json.RawMessage) []byte { return with })
	return all
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are decoded JSON
	}
	return text
}

// listed returns the reason of a difference at a place.
func listed(places map[string]string, place string) (reason string, ok bool) {
	for part, reason := range places {
		if strings.HasPrefix(place, part) || strings.HasPrefix(part, "=") &&
			strings.HasSuffix(place, part) {
			return reason, true
		}
	}
	return "", false
}

// TestSchemasAgreeWithCode changes each value of each example of a schema, and compares what the
// schema allows with what the code accepts.
func TestSchemasAgreeWithCode(t *testing.T) {
	t.Parallel()
	schemas := load(t)
	for name, d := range decoders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allowed, forbidden := 0, 0
			used := map[string]bool{}
			for _, example := range read(t, name).Examples {
				if !d.accepts(example) {
					t.Errorf("the code rejects the example %s", example)
				}
				for _, m := range mutations(example) {
					valid, accepted := schemas.Validate(name, m.text) == nil, d.accepts(m.text)
					if valid {
						allowed++
					} else {
						forbidden++
					}
					switch {
					case valid && !accepted:
						if _, ok := listed(d.stricter, m.place); !ok {
							t.Errorf("%s: the schema allows it, the code rejects it", m.place)
						}
					case !valid && accepted:
						reason, ok := listed(d.tolerated, m.place)
						if !ok {
							t.Errorf("%s: the schema forbids it, the code accepts it", m.place)
						}
						used[reason] = true
					}
				}
			}
			if allowed == 0 || forbidden == 0 {
				t.Errorf("%d changes allowed, %d forbidden: want some of each", allowed, forbidden)
			}
			for place, reason := range d.tolerated {
				if !used[reason] {
					t.Errorf("%s: there is no difference, although it is listed (%s)", place, reason)
				}
			}
		})
	}
}

// FuzzSchemaImpliesCode searches for messages that a schema allows and the code rejects.
func FuzzSchemaImpliesCode(f *testing.F) {
	for name := range decoders() {
		f.Add(name, []byte(`{"protocol":1,"log":"a","oldest":1,"newest":0,"id":"1","result":{}}`))
		f.Add(name, []byte(
			`{"log":"a","events":[{"seq":1,"type":"x","time":"2026-01-02T03:04:05+01:00","data":{}}]}`,
		))
	}
	decoders := decoders()
	f.Fuzz(func(t *testing.T, name string, message []byte) {
		d, ok := decoders[name]
		if !ok || strings.ContainsAny(string(message), ".eE\\") || len(message) > 1<<10 {
			return // numbers with fractions and exponents, and escapes of member names
		}
		schemas := load(t)
		if schemas.Validate(name, message) != nil || d.accepts(message) {
			return
		}
		if name == "hello" || name == "events" && strings.Count(string(message), `"seq"`) != 1 {
			return // comparisons of two numbers, which a schema cannot express
		}
		t.Errorf("%s: the schema allows %q, the code rejects it", name, message)
	})
}
