package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

const hub domain.HubID = "hub-aaaa-bbbb-cccc"

// event returns a well-formed event with some members replaced; "" removes the member.
func event(seq int, replace ...string) string {
	return with([]string{
		"seq", fmt.Sprint(seq), "type", `"channel.observed"`, "device_id", "3", "time", `"2026-01-02T03:04:05.123456Z"`,
		"clock_trusted", "true", "data", `{"key":"lock","endpoint":0,"value":true}`,
	}, replace...)
}

func message(events ...string) []byte {
	return []byte(`{"log": "b2f0c1", "events": [` + strings.Join(events, ", ") + `]}`)
}

func read(t *testing.T, raw []byte) (Batch, error) {
	t.Helper()
	var d EventsDecoder
	return d.Decode(hub, raw)
}

func TestStoredForm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ event, want string }{
		"all members": {
			event(41),
			`{"type":"channel.observed","hub_id":"hub-aaaa-bbbb-cccc","device_id":3,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":true,"data":{"key":"lock","endpoint":0,"value":true}}`,
		},
		"other members, nulls, any order": {
			`{"data":{}, "x":[1,{"y":null}], "clock_trusted":null, "time":"2026-01-02T04:04:05+01:00", "device_id":null, "type":"x", "seq":41}`,
			`{"type":"x","hub_id":"hub-aaaa-bbbb-cccc","device_id":null,"time":"2026-01-02T03:04:05.000000Z","clock_trusted":null,"data":{}}`,
		},
		"without device_id and clock_trusted": {
			event(41, "device_id", "", "clock_trusted", "", "data", "{}"),
			`{"type":"channel.observed","hub_id":"hub-aaaa-bbbb-cccc","device_id":null,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":null,"data":{}}`,
		},
		"numbers and strings of data as they stand, space between them gone": {
			event(41, "data", "{ \"a b\" : [ 1.50 , 1e300, 1e-400, -0 ],\n\t\"\\u0000\\\" {\" : \"ü  \\\\\" }"),
			`{"type":"channel.observed","hub_id":"hub-aaaa-bbbb-cccc","device_id":3,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":true,"data":{"a b":[1.50,1e300,1e-400,-0],"\ufffd\" {":"ü  \\"}}`,
		},
		"escapes in names and in the type": {
			strings.Replace(event(41, "type", `"a\"\\\u00fc\ud83d\ude00"`, "data", "{}"), `"type"`, `"\u0074ype"`, 1),
			`{"type":"a\"\\ü😀","hub_id":"hub-aaaa-bbbb-cccc","device_id":3,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":true,"data":{}}`,
		},
		// Half of a surrogate pair was stored as it was, and made jq, Ruby and PHP reject the page;
		// U+0000 made PostgreSQL reject a whole file of events.
		"half surrogate pairs": {
			event(41, "type", `"\ud83d\u0000"`, "data", `{"\uD83D":"a\udc00\ud83db\u0000\\u0000","x":["\ud83d\ud83d\ude00",{"y":"\\ud83d\ude00"}]}`),
			`{"type":"�\ufffd","hub_id":"hub-aaaa-bbbb-cccc","device_id":3,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":true,"data":{"\ufffd":"a\ufffd\ufffdb\ufffd\\u0000","x":["\ufffd\ud83d\ude00",{"y":"\\ud83d\ufffd"}]}}`,
		},
		// An event whose type had control characters was taken for malformed and lost.
		"a type of two lines": {
			event(41, "type", `"a\n\u0001b"`, "data", "{}"),
			`{"type":"a\u000a\u0001b","hub_id":"hub-aaaa-bbbb-cccc","device_id":3,"time":"2026-01-02T03:04:05.123456Z","clock_trusted":true,"data":{}}`,
		},
		"names are exact and the last of the same name counts": {
			`{"Seq":7,"seq":40,"seq":41,"TYPE":"no","type":"a","type":"b","time":"2026-01-02T03:04:05Z","data":{"x":1},"data":{}}`,
			`{"type":"b","hub_id":"hub-aaaa-bbbb-cccc","device_id":null,"time":"2026-01-02T03:04:05.000000Z","clock_trusted":null,"data":{}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch, err := read(t, message(tc.event))
			if err != nil || batch.Log != "b2f0c1" || batch.First != 41 || batch.Last() != 41 ||
				len(batch.Events) != 1 {
				t.Fatalf("%+v, %v", batch, err)
			}
			if got := batch.Events[0]; string(got.Payload) != tc.want || got.Flaw != "" {
				t.Errorf("stored\n%s (%s)\nwant\n%s", got.Payload, got.Flaw, tc.want)
			}
		})
	}
}

func TestFlaws(t *testing.T) {
	t.Parallel()
	pad := func(size int) string {
		e := event(2, "data", `{"x":""}`)
		return strings.Replace(e, `{"x":""}`, `{"x":"`+strings.Repeat("a", size-len(e))+`"}`, 1)
	}
	for name, tc := range map[string]struct {
		event string
		want  Flaw
	}{
		"not an object":                {`[2]`, FlawNotObject},
		"null":                         {`null`, FlawNotObject},
		"as big as allowed":            {pad(protocol.MaxEventBytes), ""},
		"one byte too big":             {pad(protocol.MaxEventBytes + 1), FlawSize},
		"not UTF-8":                    {event(2, "data", "{\"x\":\"\xff\"}"), FlawEncoding},
		"no type":                      {event(2, "type", ""), FlawType},
		"empty type":                   {event(2, "type", `""`), FlawType},
		"type not a string":            {event(2, "type", `1`), FlawType},
		"type of the cloud":            {event(2, "type", `"hub.connected"`), FlawReserved},
		"an escaped type of the cloud": {event(2, "type", `"\u0068ub.x"`), FlawReserved},
		"hubcap.lost is allowed":       {event(2, "type", `"hubcap.lost"`), ""},
		"no time":                      {event(2, "time", ""), FlawTime},
		"time a number":                {event(2, "time", "1767323045"), FlawTime},
		"no timestamp":                 {event(2, "time", `"yesterday"`), FlawTime},
		"device a string":              {event(2, "device_id", `"3"`), FlawDevice},
		"device a fraction":            {event(2, "device_id", "3.0"), FlawDevice},
		"device too big":               {event(2, "device_id", "9223372036854775808"), FlawDevice},
		"clock_trusted a string":       {event(2, "clock_trusted", `"true"`), FlawClockTrusted},
		"clock_trusted 1":              {event(2, "clock_trusted", "1"), FlawClockTrusted},
		"no data":                      {event(2, "data", ""), FlawData},
		// Readers of JSON stop at 101 levels (Ruby), 128 (serde_json) or 257 (jq), and do not read
		// numbers beyond a double.
		"32 levels": {event(2, "data", nested(31)), ""},
		"33 levels": {event(2, "data", nested(32)), FlawDepth},
		"more levels than encoding/json reads": {
			strings.ReplaceAll(event(2, "data", nested(7_900)), " ", ""), FlawDepth,
		},
		// A message with an element of more than 10,000 levels was dropped whole, so that the hub sent
		// it again for ever.
		"an element of 100,000 levels": {
			strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), FlawNotObject,
		},
		"data of 100,000 levels":         {event(2, "data", nested(100_000)), FlawSize},
		"a number below any double":      {event(2, "data", `{"x":[-1e400]}`), FlawNumber},
		"a number of 400 digits":         {event(2, "data", `{"x":1`+strings.Repeat("0", 400)+`}`), FlawNumber},
		"a fraction of 400 digits":       {event(2, "data", `{"x":0.`+strings.Repeat("3", 400)+`}`), ""},
		"the highest number of a double": {event(2, "data", `{"x":1.7976931348623157e308}`), ""},

		"data null":     {event(2, "data", "null"), FlawData},
		"data an array": {event(2, "data", "[]"), FlawData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch, err := read(t, message(event(1), tc.event, event(3)))
			if err != nil || batch.First != 1 || len(batch.Events) != 3 {
				t.Fatalf("%+v, %v", batch, err)
			}
			if got := batch.Events[1]; got.Flaw != tc.want || (got.Payload == nil) != (tc.want != "") {
				t.Errorf("got flaw %q, payload %s, want flaw %q", got.Flaw, got.Payload, tc.want)
			}
			for _, i := range []int{0, 2} {
				if batch.Events[i].Flaw != "" || !json.Valid(batch.Events[i].Payload) {
					t.Errorf("event %d beside it: %+v", i, batch.Events[i])
				}
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	many := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = event(i + 1)
		}
		return all
	}
	for name, tc := range map[string]struct {
		message []byte
		want    error
	}{
		"empty":              {nil, errNoJSON},
		"not JSON":           {[]byte("hello"), errNoJSON},
		"cut off":            {message(event(1))[:40], errNoJSON},
		"something after it": {append(message(event(1)), '{'), errNoJSON},
		"an array":           {[]byte("[]"), errNoJSON},
		"no log":             {[]byte(`{"events":[` + event(1) + `]}`), errLog},
		"a log with a dot":   {[]byte(`{"log":"a.b","events":[` + event(1) + `]}`), errLog},
		"no events":          {[]byte(`{"log":"b2f0c1"}`), errNoJSON},
		"no event":           {message(), errNoJSON},
		"events an object":   {[]byte(`{"log":"b2f0c1","events":{}}`), errNoJSON},
		"501 events":         {message(many(501)...), errNoJSON},
		"no number":          {message(event(1), event(2, "seq", "")), errNumbers},
		"number a string":    {message(event(1, "seq", `"1"`)), errNumbers},
		"number 0":           {message(event(0)), errNumbers},
		"number negative":    {message(event(-1)), errNumbers},
		"number a fraction":  {message(event(1, "seq", "1.0")), errNumbers},
		"number in powers":   {message(event(1, "seq", "1e0")), errNumbers},
		"number beyond":      {message(event(1, "seq", "9007199254740992")), errNumbers},
		"last number beyond": {
			message(event(1, "seq", "9007199254740991"), "null"), errNumbers,
		},
		"a hole":                     {message(event(1), event(3)), errNumbers},
		"a repeat":                   {message(event(1), event(1)), errNumbers},
		"falling":                    {message(event(2), event(1)), errNumbers},
		"only elements without":      {message("1", "2"), errNumbers},
		"no number before the first": {message("null", event(1)), errNumbers},
		"too big": {
			[]byte(string(message(event(1))) + strings.Repeat(" ", protocol.MaxMessageBytes)),
			errTooBig,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch, err := read(t, tc.message)
			if !errors.Is(err, tc.want) || !errors.Is(err, ErrUnreadable) {
				t.Errorf("Decode: got %+v, %v; want %v", batch, err, tc.want)
			}
		})
	}
	if batch, err := read(t, message(many(500)...)); err != nil || len(batch.Events) != 500 || batch.Last() != 500 {
		t.Errorf("500 events: %d, %v", len(batch.Events), err)
	}
	if batch, err := read(t, message("7", event(5))); err != nil || batch.First != 4 {
		t.Errorf("an element without a number before one with: %+v, %v", batch, err)
	}
}

// nested returns an object that is nested that many levels.
func nested(levels int) string {
	return `{"x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

// TestByteOrderMark: a message with a byte order mark, as .NET writes it, was unreadable.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	marked := func(message string) []byte { return []byte("\ufeff" + message) }
	if batch, err := read(t, marked(string(message(event(1))))); err != nil || batch.Events[0].Flaw != "" {
		t.Errorf("events: got %v", err)
	}
	if _, err := ParseHello(
		marked(`{"protocol":1,"log":"a","oldest":1,"newest":0}`),
	); err != nil {
		t.Errorf("hello: got %v", err)
	}
	if _, err := ParseResponse(marked(`{"id":"1","result":{}}`)); err != nil {
		t.Errorf("response: got %v", err)
	}
	if _, err := read(t, marked("\ufeff"+string(message(event(1))))); err == nil {
		t.Error("two marks: no error")
	}
}

// FuzzEvents compares the reader with encoding/json: an accepted message is JSON, and a stored
// event is one line with the same data.
func FuzzEvents(f *testing.F) {
	f.Add(message(event(1), "null", event(3)))
	f.Add(message(event(1, "data", "{ \"a\" : [ 1.5e+3 , \"\\ud800\\u0041\" ] }")))
	f.Add(
		[]byte(
			`{"log":"a","events":[{"seq":1,"time":"2016-12-31T23:59:60.5+00:00","type":"x","data":{"":[]}}]}`,
		),
	)
	f.Add([]byte("{\"log\":\"a\",\"events\":[{\"seq\":1,\"data\":{\"\xff\":1}},2]} "))
	f.Add([]byte("\ufeff" + string(message(event(1, "data", `{"\ud83d":[1e400]}`)))))
	f.Add(message(event(1, "data", `{"\ud83d":"\ud83d\ud83d\ude00"}`), event(2, "data", nested(33))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d EventsDecoder
		batch, err := d.Decode(hub, raw)
		var members map[string]json.RawMessage
		raw = WithoutBOM(raw)
		valid := json.Unmarshal(raw, &members) == nil || tooDeep(raw)
		if err != nil {
			return
		}
		if !valid {
			t.Fatalf("accepted %q", raw)
		}
		var elements []json.RawMessage
		if tooDeep(raw) {
			return
		}
		if json.Unmarshal(members["events"], &elements) != nil || len(elements) != len(batch.Events) {
			t.Fatalf("%d events read of %q", len(batch.Events), raw)
		}
		for i, e := range batch.Events {
			if e.Flaw != "" {
				continue
			}
			if !strictlyValid(e.Payload) {
				t.Fatalf("stored %q, which strict readers reject", e.Payload)
			}
			var got, want map[string]json.RawMessage
			if json.Unmarshal(e.Payload, &got) != nil || json.Unmarshal(elements[i], &want) != nil ||
				strings.ContainsAny(string(e.Payload), "\n\r") {
				t.Fatalf("stored %q of %q", e.Payload, elements[i])
			}
			checkCompact(t, got["data"], want["data"])
			var stored domain.HubEvent
			if json.Unmarshal(e.Payload, &stored) != nil || stored.HubID != hub || stored.Type == "" {
				t.Fatalf("stored %q", e.Payload)
			}
		}
	})
}
