package httpapi

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

const commandPath = devicesPath + "/1/commands"

// The answer to an accepted command has exactly the contract's fields, and the hub gets the
// command.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, tt := range []struct {
		body    string
		key     string
		want    string // of the channel, up to the value
		value   string
		command domain.Command
	}{
		{
			body: `{"key":"lock","value":false}`, key: "k1",
			want: `{"key":"lock","endpoint":0,"kind":"lock","unit":null,"value":null,` +
				`"observed_at":null,"desired":`,
			command: domain.Command{Key: "lock", Value: []byte(`false`), IdempotencyKey: "k1"},
		},
		{
			body: `{"endpoint":2.0,"value":{"blue":3,"green":2,"red":1.0},"key":"color"}`,
			want: `{"key":"color","endpoint":2,"kind":"color","unit":null,"value":null,` +
				`"observed_at":null,"desired":`,
			command: domain.Command{
				Key: "color", Endpoint: 2, Value: []byte(`{"red":1,"green":2,"blue":3}`),
			},
		},
		{
			body: `{"key":"heating_setpoint","value":2.150e1,"endpoint":0}`,
			key:  strings.Repeat("é", 255),
			want: `{"key":"heating_setpoint","endpoint":0,"kind":"heating_setpoint","unit":null,` +
				`"value":null,"observed_at":null,"desired":`,
			command: domain.Command{
				Key: "heating_setpoint", Value: []byte(`21.5`),
				IdempotencyKey: strings.Repeat("é", 255),
			},
		},
	} {
		a := s.do("POST", commandPath, tt.body, "Idempotency-Key", tt.key)
		want := `{"hub_id":"hub-7k2m-q4xd-93ta","device_id":1,"channel":` + tt.want +
			string(tt.command.Value) + `,"desired_at":"2026-01-02T03:04:06.000000Z",` +
			`"status":"pending","available":true}}`
		if a.StatusCode != 202 || strings.TrimSpace(a.body) != want {
			t.Errorf("%s: got %d %s\nwant 202 %s", tt.body, a.StatusCode, a.body, want)
		}
		checkHeaders(t, a)
		sent := s.hub.sent[len(s.hub.sent)-1]
		tt.command.OrgID, tt.command.HubID, tt.command.DeviceID = orgOne, hubOne, 1
		value := string(tt.command.Value)
		if string(sent.Value) != value {
			t.Errorf("%s: the hub got the value %s, want %s", tt.body, sent.Value, value)
		}
		sent.Value, tt.command.Value = nil, nil
		if sent.Key != tt.command.Key || sent.Endpoint != tt.command.Endpoint ||
			sent.IdempotencyKey != tt.command.IdempotencyKey ||
			sent.OrgID != orgOne ||
			sent.HubID != hubOne ||
			sent.DeviceID != 1 {
			t.Errorf("%s: the hub got %+v, want %+v", tt.body, sent, tt.command)
		}
	}
}

// Commands that no hub accepts are rejected without asking the hub, with an error that names the
// field.
func TestCommandErrors(t *testing.T) {
	t.Parallel()
	const inv, nf = domain.CodeInvalidRequest, domain.CodeNotFound
	s := start(t, nil)
	for _, tt := range []struct {
		body   string
		status int
		code   domain.Code
		names  string
	}{
		{``, 400, inv, "Content-Type"},
		{`{}`, 400, inv, "key: is required"},
		{`{"key":"lock"}`, 400, inv, "value: is required"},
		{`{"value":true}`, 400, inv, "key: is required"},
		{`{"key":null,"value":true}`, 400, inv, "key: must be a string"},
		{`{"key":"lock","value":null}`, 400, inv, "value"},
		{`{"key":"lock","value":1}`, 400, inv, "value"},
		{`{"key":"lock","value":"true"}`, 400, inv, "value"},
		{`{"key":"level","value":100}`, 400, inv, "value"},
		{`{"key":"level","value":1.5}`, 400, inv, "value"},
		{`{"key":"color","value":{"red":1,"green":2}}`, 400, inv, "value"},
		{`{"key":"color","value":{"red":1,"green":2,"blue":256}}`, 400, inv, "value"},
		{`{"key":"temperature","value":1}`, 400, inv, "read-only"},
		{
			`{"key":"lock","value":true,"endpoint":-1}`, 400, inv,
			"endpoint: must be a non-negative integer",
		},
		{`{"key":"lock","value":true,"endpoint":1.5}`, 400, inv, "endpoint"},
		{`{"key":"lock","value":true,"endpoint":"1"}`, 400, inv, "endpoint"},
		{`{"key":"lock","value":true,"endpoint":null}`, 400, inv, "endpoint"},
		{`{"key":"lock","value":true,"endpoint":true}`, 400, inv, "endpoint"},
		{`{"key":"lock","value":true,"endpoint":1e99}`, 400, inv, "endpoint"},
		{`{"key":"lock","value":true,"endpoint":1e999}`, 400, inv, "endpoint"},
		{
			`{"key":"lock","value":true,"device_id":1}`, 400, inv,
			`unknown field "device_id"; allowed fields are key, value, endpoint`,
		},
		{`{"key":"lock","value":true,"value":false}`, 400, inv, `"value" must be given once`},
		{
			`{"key":"lock","value":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`,
			400, inv, "nested at most 16 deep",
		},
	} {
		a := s.do("POST", commandPath, tt.body)
		if msg := wantError(t, a, tt.status, tt.code); !strings.Contains(msg, tt.names) {
			t.Errorf("%.80s: got message %q, want %q in it", tt.body, msg, tt.names)
		}
	}
	if s.hub.asked > 0 {
		t.Errorf("the hub got %d requests, want none", s.hub.asked)
	}

	// For an unknown channel key only the device shows whether there is such a channel.
	for _, tt := range []struct {
		path, body string
		fault      error
		status     int
		code       domain.Code
	}{
		{commandPath, `{"key":"pressure","value":1,"endpoint":2}`, nil, 400, inv},
		{commandPath, `{"key":"pressure","value":1}`, nil, 404, nf},
		{commandPath, `{"key":"` + strings.Repeat("x", 5000) + `","value":1}`, nil, 404, nf},
		{
			commandPath, `{"key":"pressure","value":1,"endpoint":2}`,
			domain.Errorf(domain.CodeHubOffline, "away"), 404, nf,
		},
		{
			commandPath, `{"key":"pressure","value":1,"endpoint":2}`,
			domain.Errorf(domain.CodeHubTimeout, "slow"), 404, nf,
		},
		{devicesPath + "/3/commands", `{"key":"pressure","value":1}`, nil, 404, nf},
		{devicesPath + "/3/commands", `{"key":"lock","value":true}`, nil, 404, nf},
	} {
		s.hub.fault = tt.fault
		wantError(t, s.do("POST", tt.path, tt.body), tt.status, tt.code)
	}
	if len(s.hub.sent) > 0 {
		t.Errorf("the hub got %v, want no command", s.hub.sent)
	}
}

// TestCommandWithoutEndpoint: the error of a command without endpoint, for a device that has the
// key only at other endpoints, did not name them.
func TestCommandWithoutEndpoint(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.hub.devices[2] = domain.Device{ID: 2, Channels: []domain.Channel{
		{Key: "switch", Endpoint: 1, Writable: true}, {Key: "level", Endpoint: 3},
		{Key: "switch", Endpoint: 2, Writable: true},
	}}
	for body, want := range map[string]string{
		`{"key":"switch","value":true}`:              "endpoint: is required here: the device has switch at endpoint 1 and 2",
		`{"key":"switch","value":true,"endpoint":0}`: "no such channel: the device has switch at endpoint 1 and 2",
		`{"key":"switch","value":true,"endpoint":1}`: "no channel",
		`{"key":"smell","value":1}`:                  "no such channel",
	} {
		a := s.do("POST", devicesPath+"/2/commands", body)
		if got := wantError(t, a, 404, domain.CodeNotFound); got != want {
			t.Errorf("%s: got message %q, want %q", body, got, want)
		}
	}
}
