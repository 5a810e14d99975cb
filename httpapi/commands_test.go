package httpapi

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

const commandPath = devicesPath + "/1/commands"

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
		{`{"key":"lock"}`, 400, inv, "value: is required"},
		{`{"value":true}`, 400, inv, "key: is required"},
		{
			`{"key":"lock","value":true,"endpoint":-1}`, 400, inv,
			"endpoint: must be a non-negative integer",
		},
		{`{"key":"lock","value":true,"endpoint":1e999}`, 400, inv, "endpoint"},
		{
			`{"key":"lock","value":true,"device_id":1}`, 400, inv,
			`unknown field "device_id"; allowed fields are key, value, endpoint`,
		},
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
