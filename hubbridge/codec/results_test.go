package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// channelMembers are the names and values of a channel with all members.
var channelMembers = []string{
	"key", `"heating_setpoint"`, "endpoint", "0", "kind", `"heating_setpoint"`, "unit", `"°C"`,
	"available", "true",
	"readable", "true", "writable", "true", "capabilities", `{"min":5,"max":35}`,
	"value", "21.50", "observed_at", `"2026-01-02T04:04:05.1+01:00"`, "desired", "22",
	"desired_at", `"2026-01-02T03:04:06Z"`, "status", `"pending"`,
}

var deviceMembers = []string{
	"id", "3", "name", `"Hall"`, "manufacturer", `"Acme"`, "model", `"T1"`, "channels", "",
}

// with returns an object with some members replaced or added; "" removes the member.
func with(members []string, replace ...string) string {
	members = append([]string{}, members...)
	for i := 0; i < len(replace); i += 2 {
		found := false
		for j := 0; j < len(members); j += 2 {
			if members[j] == replace[i] {
				members[j+1], found = replace[i+1], true
			}
		}
		if !found {
			members = append(members, replace[i], replace[i+1])
		}
	}
	var out []string
	for j := 0; j < len(members); j += 2 {
		if members[j+1] != "" {
			out = append(out, fmt.Sprintf("%q : %s", members[j], members[j+1]))
		}
	}
	return "{ " + strings.Join(out, " ,\n") + " }"
}

func channelWith(replace ...string) string { return with(channelMembers, replace...) }

func deviceWith(channel string, replace ...string) string {
	return with(deviceMembers, append([]string{"channels", "[" + channel + "]"}, replace...)...)
}

func ptr[T any](v T) *T { return &v }

func TestResults(t *testing.T) {
	t.Parallel()
	everything := domain.Channel{
		Key: "heating_setpoint", Kind: "heating_setpoint", Unit: ptr("°C"), Readable: true,
		Writable: true, Capabilities: json.RawMessage(`{"min":5,"max":35}`),
		Available: true, Value: json.RawMessage(`21.50`), Desired: json.RawMessage(`22`),
		ObservedAt: ptr(
			"2026-01-02T03:04:05.100000Z",
		), DesiredAt: ptr("2026-01-02T03:04:06.000000Z"), Status: domain.ChannelPending,
	}
	device := domain.Device{
		ID:           3,
		Name:         "Hall",
		Manufacturer: "Acme",
		Model:        "T1",
		Channels:     []domain.Channel{everything},
	}

	got, err := ParseDevice([]byte(` {"device":` + deviceWith(channelWith()) + `} `))
	if err != nil || !reflect.DeepEqual(got, device) {
		t.Errorf("%+v, %v", got, err)
	}

	list, err := ParseDevices(
		[]byte(
			`{"devices":[` + deviceWith(channelWith()) + `,` + deviceWith("", "id", "-4") + `]}`,
		),
	)
	listed := everything
	listed.Value, listed.Desired, listed.ObservedAt, listed.DesiredAt, listed.Status = nil, nil, nil, nil, ""
	want := []domain.Device{device, device}
	want[0].Channels = []domain.Channel{listed}
	want[1].ID, want[1].Channels = -4, []domain.Channel{}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := ParseDevices([]byte(`{"devices":[]}`)); err != nil || list == nil || len(list) != 0 {
		t.Errorf("no devices: %+v, %v", list, err)
	}

	channel, err := ParseChannel([]byte(`{"channel":` + channelWith() + `,"took_ms":7}`))
	commanded := everything
	commanded.Readable, commanded.Writable, commanded.Capabilities = false, false, nil
	if err != nil || !reflect.DeepEqual(channel, commanded) {
		t.Errorf("%+v, %v", channel, err)
	}

	window, err := ParseWindow([]byte(`{"expires_in":120,"status":"open"}`))
	if err != nil || window != (domain.Window{Status: "open", ExpiresIn: 120}) {
		t.Errorf("%+v, %v", window, err)
	}
}

// TestOptionalMembers: an absent nullable member is null, and members of the other forms of a
// channel are neither required nor validated.
func TestOptionalMembers(t *testing.T) {
	t.Parallel()
	bare := []string{
		"unit", "", "value", "", "observed_at", "", "desired", "", "desired_at", "",
		"capabilities", "", "status", `"unknown"`, "firmware", `{"x":[1]}`,
	}
	want := domain.Channel{
		Key: "heating_setpoint", Kind: "heating_setpoint", Readable: true, Writable: true,
		Capabilities: json.RawMessage(`{}`),
		Available:    true, Status: domain.ChannelUnknown,
	}
	for i, value := range []string{"", "null"} {
		for j := 0; j < 12 && i == 1; j += 2 {
			bare[j+1] = value
		}
		got, err := ParseDevice([]byte(`{"device":` + deviceWith(channelWith(bare...)) + `}`))
		if err != nil || len(got.Channels) != 1 || !reflect.DeepEqual(got.Channels[0], want) {
			t.Errorf("%q: %+v, %v", value, got, err)
		}
	}
	if _, err := ParseDevices([]byte(`{"devices":[` + deviceWith(channelWith("value", "7", "status", "7", "observed_at", "7")) + `]}`)); err != nil {
		t.Errorf("a list with invalid states: %v", err)
	}
	if _, err := ParseChannel([]byte(`{"channel":` + channelWith("readable", "", "writable", "7", "capabilities", "7") + `}`)); err != nil {
		t.Errorf("a command's channel with invalid abilities: %v", err)
	}
	got, err := ParseDevice(
		[]byte(
			`{"device":` + deviceWith(
				channelWith("value", "{ \"type\" : \"a  b\" , \"n\":1.0 }"),
			) + `,"device":` +
				deviceWith(channelWith("value", "[ ]"), "name", `"Last"`) + `}`,
		),
	)
	if err != nil || got.Name != "Last" || len(got.Channels) != 1 || string(got.Channels[0].Value) != "[]" {
		t.Errorf("got %+v, %v, want the last member of a name", got, err)
	}
}

func TestInvalidResults(t *testing.T) {
	t.Parallel()
	parse := map[string]func([]byte) error{
		"devices": func(raw []byte) error { _, err := ParseDevices(raw); return err },
		"device":  func(raw []byte) error { _, err := ParseDevice(raw); return err },
		"channel": func(raw []byte) error { _, err := ParseChannel(raw); return err },
		"window":  func(raw []byte) error { _, err := ParseWindow(raw); return err },
	}
	rejected := func(form, result, words string) {
		t.Helper()
		err := parse[form]([]byte(result))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s %s: got %v, want %q", form, result, err, words)
		}
	}
	for _, form := range []string{"devices", "device", "channel"} {
		for _, result := range []string{`{}`, `{"Device":{},"Devices":[],"Channel":{}}`} {
			rejected(form, result, "has no "+form)
		}
		rejected(form, `{"`+form+`":null}`, "no")
		rejected(form, `{"`+form+`":7}`, "no")
		rejected(form, `[]`, "not an object")
		rejected(form, ``, "not an object")
		rejected(form, `{`, "JSON")
	}
	rejected("devices", `{"devices":{}}`, "array")
	rejected("devices", `{"devices":[7]}`, "object")
	rejected("device", `{"device":[]}`, "object")
	for member, values := range map[string][]string{
		"id": {"", "null", `"3"`, "3.0", "9223372036854775808"}, "name": {"", "null", "3"},
		"manufacturer": {"", "null", "{}"}, "model": {"", "null", "true"},
	} {
		for _, value := range values {
			rejected("device", `{"device":`+deviceWith(channelWith(), member, value)+`}`, member)
			rejected(
				"devices", `{"devices":[`+deviceWith(channelWith(), member, value)+`]}`, member,
			)
		}
	}
	for _, value := range []string{"", "null", "{}", `"x"`} {
		rejected("device", `{"device":`+deviceWith("", "channels", value)+`}`, "channels")
	}
	for member, values := range map[string][]string{
		"key": {"", "null", "7", `""`}, "endpoint": {"", "null", `"0"`, "-1", "0.0", "1e2"},
		"kind": {"", "null", "7"}, "unit": {"7", "{}"},
		"available": {"", "null", `"true"`, "1"},
	} {
		for _, value := range values {
			rejected("device", `{"device":`+deviceWith(channelWith(member, value))+`}`, member)
			rejected("devices", `{"devices":[`+deviceWith(channelWith(member, value))+`]}`, member)
			rejected("channel", `{"channel":`+channelWith(member, value)+`}`, member)
		}
	}
	for member, values := range map[string][]string{
		"readable": {"", "null", "1"}, "writable": {"", "null", `"yes"`},
		"capabilities": {"[]", "7", `"x"`, `{"max":1e400}`},
	} {
		for _, value := range values {
			rejected("device", `{"device":`+deviceWith(channelWith(member, value))+`}`, member)
			rejected("devices", `{"devices":[`+deviceWith(channelWith(member, value))+`]}`, member)
		}
	}
	deep := strings.Repeat("[", protocol.MaxDepth+1) + strings.Repeat("]", protocol.MaxDepth+1)
	long := `"` + strings.Repeat("x", maxValueBytes-1) + `"`
	for member, values := range map[string][]string{
		"value": {deep, long, "[1e400]"}, "desired": {deep, long, "-1e400"}, "observed_at": {"7", `"yesterday"`, `""`},
		"desired_at": {"true", `"2026-01-02"`},
		"status":     {"", "null", "7", `"done"`, `"Pending"`, `""`},
	} {
		for _, value := range values {
			rejected("device", `{"device":`+deviceWith(channelWith(member, value))+`}`, member)
			rejected("channel", `{"channel":`+channelWith(member, value)+`}`, member)
		}
	}
	rejected("channel", `{"channel":`+channelWith("kind", "\"\xff\"")+`}`, "UTF-8")
	rejected("channel", `{"channel":`+channelWith()+`} {}`, "JSON")
	for result, words := range map[string]string{
		`{}`: "no status", `{"status":"open"}`: "no expires_in",
		`{"status":"closed","expires_in":120}`: "status",
		`{"status":1,"expires_in":120}`:        "status",
		`{"status":"open","expires_in":"120"}`: "expires_in",
		`{"status":"open","expires_in":0}`:     "expires_in",
		`{"status":"open","expires_in":86401}`: "expires_in",
		`{"status":"open","expires_in":120.0}`: "expires_in", `[]`: "object",
		`{"status":"open","expires_in":120}x`: "JSON",
	} {
		rejected("window", result, words)
	}
}

// FuzzResponses compares the parsers with encoding/json: an accepted message is JSON, and its
// channels are valid and can be encoded.
func FuzzResponses(f *testing.F) {
	f.Add([]byte(`{"device":` + deviceWith(channelWith()) + `}`))
	f.Add([]byte(`{"devices":[` + deviceWith(channelWith()) + `]}`))
	f.Add([]byte(`{"channel":` + channelWith("value", `{"a":[1,{"b":"\ud800"}]}`) + `}`))
	f.Add([]byte(`{"status":"open","expires_in":120}`))
	f.Add([]byte(`{"id":"x","error":{"type":"not_found","message":"m"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		check := func(err error, channels ...domain.Channel) {
			if err != nil {
				if err.Error() == "" || !utf8.ValidString(err.Error()) {
					t.Fatalf("%q of %q", err, raw)
				}
				return
			}
			if !json.Valid(WithoutBOM(raw)) {
				t.Fatalf("accepted %q", raw)
			}
			for _, c := range channels {
				if c.Key == "" || c.Endpoint < 0 {
					t.Fatalf("%+v of %q", c, raw)
				}
				for _, text := range []json.RawMessage{c.Value, c.Desired, c.Capabilities} {
					if text != nil && !strictlyValid(text) {
						t.Fatalf("%q of %q, which strict readers reject", text, raw)
					}
				}
				if _, err := json.Marshal(c); err != nil {
					t.Fatalf("%v of %q", err, raw)
				}
			}
		}
		devices, err := ParseDevices(raw)
		check(err)
		for _, d := range devices {
			check(err, d.Channels...)
		}
		device, err := ParseDevice(raw)
		check(err, device.Channels...)
		if err == nil {
			for _, c := range device.Channels {
				if _, ok := domain.ParseChannelStatus(string(c.Status)); !ok || c.Capabilities == nil {
					t.Fatalf("%+v of %q", c, raw)
				}
			}
		}
		channel, err := ParseChannel(raw)
		check(err, channel)
		_, err = ParseWindow(raw)
		check(err)
		response, err := ParseResponse(raw)
		check(err)
		if err == nil && (response.Result == nil) == (response.Error.Type == "") {
			t.Fatalf("%+v of %q", response, raw)
		}
	})
}

func TestLastEvent(t *testing.T) {
	t.Parallel()
	device := deviceWith(channelWith())
	for text, want := range map[string]string{
		``: "none", `,"last_event":null`: "none", `,"last_event":0`: "0",
		`,"last_event":9007199254740991`: "9007199254740991",
		`,"last_event":9007199254740992`: "error", `,"last_event":-1`: "error",
		`,"last_event":1.0`: "error", `,"last_event":"7"`: "error",
	} {
		show := func(last *uint64, err error) string {
			switch {
			case err != nil:
				return "error"
			case last == nil:
				return "none"
			}
			return fmt.Sprint(*last)
		}
		got, err := ParseDevice([]byte(`{"device":` + device + text + `}`))
		if found := show(got.LastEvent, err); found != want {
			t.Errorf("a device with %q: %s, %v; want %s", text, found, err, want)
		}
		list, err := ParseDevices([]byte(`{"devices":[` + device + `]` + text + `}`))
		if err != nil {
			list = []domain.Device{{}}
		}
		if found := show(list[0].LastEvent, err); found != want {
			t.Errorf("devices with %q: %s, %v; want %s", text, found, err, want)
		}
	}
}
