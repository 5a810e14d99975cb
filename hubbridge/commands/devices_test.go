package commands_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

// channelResult is a result of channels.command for the command of newMethods.
const channelResult = `{"channel":{"key":"lock","endpoint":0,"kind":"lock","available":false,` +
	`"status":"pending"}}`

// newMethods returns a call of each method by its name.
func newMethods(t *testing.T, d *commands.Devices) map[string]func() error {
	ctx := t.Context()
	command := domain.Command{HubID: hubID, DeviceID: 3, Key: "lock", Value: json.RawMessage("true")}
	return map[string]func() error{
		protocol.MethodDevicesList:   func() error { _, err := d.List(ctx, hubID); return err },
		protocol.MethodDevicesGet:    func() error { _, err := d.Get(ctx, hubID, 3); return err },
		protocol.MethodDevicesForget: func() error { return d.Forget(ctx, hubID, 3) },
		protocol.MethodPairingOpen: func() error {
			_, err := d.OpenPairing(ctx, hubID, nil)
			return err
		},
		protocol.MethodPairingClose: func() error { return d.ClosePairing(ctx, hubID) },
		protocol.MethodRemovalOpen:  func() error { _, err := d.OpenRemoval(ctx, hubID); return err },
		protocol.MethodRemovalClose: func() error { return d.CloseRemoval(ctx, hubID) },
		protocol.MethodChannelsCommand: func() error {
			_, err := d.Command(ctx, command, "c")
			return err
		},
	}
}

// TestInvalidResults: a result of another form than the method's, or about another device or
// channel, is a hub_error.
func TestInvalidResults(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 10*time.Second)
	results := make(chan string, 1)
	c.answers(func(r protocol.Request) string {
		return fmt.Sprintf(`{"id":%q,"result":%s}`, r.ID, <-results)
	})
	methods := newMethods(t, commands.NewDevices(c.Caller, nil, nil))
	invalid := func(method, result string) {
		t.Helper()
		results <- result
		if err := methods[method](); domain.CodeOf(err) != domain.CodeHubError {
			t.Errorf("%s with result %.40q: got %v, want hub_error", method, result, err)
		}
	}
	for method := range methods {
		invalid(method, "[]")
		invalid(method, strings.Repeat("[", 20_000))
	}
	const device = `{"device":{"id":%d,"name":"n","manufacturer":"m","model":"m","channels":[]}}`
	invalid(protocol.MethodDevicesGet, fmt.Sprintf(device, 4))
	for _, change := range [][2]string{
		{`"key":"lock"`, `"key":"switch"`},
		{`"endpoint":0`, `"endpoint":1`},
		{`"pending"`, `"synchronized"`},
	} {
		invalid(
			protocol.MethodChannelsCommand, strings.Replace(channelResult, change[0], change[1], 1),
		)
	}

	for method, result := range map[string]string{
		protocol.MethodDevicesGet:      fmt.Sprintf(device, 3),
		protocol.MethodChannelsCommand: channelResult,
		protocol.MethodDevicesForget:   `{}`,
	} {
		results <- result
		if err := methods[method](); err != nil {
			t.Errorf("%s with result %s: %v", method, result, err)
		}
	}
}

// TestCallsTakeSlots: each call but a command is counted until it ends.
func TestCallsTakeSlots(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 10*time.Second)
	c.answers(func(r protocol.Request) string {
		result := "{}"
		if r.Method == protocol.MethodChannelsCommand {
			result = channelResult
		}
		return fmt.Sprintf(`{"id":%q,"result":%s}`, r.ID, result)
	})
	calls := commands.NewCallPool(nil, shares.Limits{Total: 10, PerID: 1})
	orgOf := func(domain.HubID) string { return "a" }
	methods := newMethods(t, commands.NewDevices(c.Caller, calls, orgOf))
	for range 2 {
		if err := methods[protocol.MethodPairingClose](); err != nil {
			t.Errorf("with a free slot: %v", err)
		}
	}
	release, err := calls.Take(commands.CallTo("a", hubID), 1)
	streamstest.Must(t, err)
	defer release()
	for method, call := range methods {
		err := call()
		if method == protocol.MethodChannelsCommand {
			if err != nil {
				t.Errorf("%s without a free slot: %v", method, err)
			}
			continue
		}
		if domain.CodeOf(err) != domain.CodeRateLimited {
			t.Errorf("%s without a free slot: got %v, want rate_limited", method, err)
		}
	}
}
