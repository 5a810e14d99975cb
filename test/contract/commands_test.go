package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

func commandPath(hub string, device int64) string { return devicePath(hub, device) + "/commands" }

// accepted is the answer to an accepted command.
type accepted struct {
	HubID    string `json:"hub_id"`
	DeviceID int64  `json:"device_id"`
	Channel  channel
}

// want checks the status of a channel, what it last reported, and what was asked for last.
func (c channel) want(t *testing.T, status, value, desired string) {
	t.Helper()
	if c.Status != status || string(c.Value) != value || string(c.Desired) != desired {
		t.Errorf("got the channel %+v, want %s, %s, desired %s", c, status, value, desired)
	}
}

// desiredCount returns how many channel.desired events a channel has.
func desiredCount(client *harness.Tenant, hub *virtualhub.Hub, device int64, key string) int {
	client.T.Helper()
	harness.Stored(client.T, hub)
	n := 0
	for _, e := range client.AllEvents(hub.ID(), "") {
		if e.About("channel.desired", device) && e.Observed().Key == key {
			n++
		}
	}
	return n
}

// commandOutcomes tests "Commands" and "Channel status".
func commandOutcomes(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Commands")
	slow := virtualhub.DeviceSpec{
		Kind:    "lock",
		Name:    "Slow",
		Latency: virtualhub.Duration(700 * time.Millisecond),
	}
	house := virtualhub.Config{
		Devices: []virtualhub.DeviceSpec{
			slow,
			{Kind: "thermostat"},
			{Kind: "lock", Insecure: true},
			{Kind: "switch", Gangs: 2},
		},
	}

	status := func(t *testing.T, hub *virtualhub.Hub, device int64, key, want string) channel {
		t.Helper()
		var got channel
		streamstest.Eventually(t, key+" "+want, func() bool {
			got = getChannel(tenant.For(t), hub.ID(), device, key, 0)
			return got.Status == want
		})
		return got
	}

	t.Run("accepted, then done", func(t *testing.T) {
		// "202 {hub_id, device_id, channel: {key, endpoint, kind, unit, value, observed_at,
		// desired, desired_at, status ('pending'), available}}. value is still the last reported
		// value." Then: "pending, device report, reported value equals the asked value:
		// synchronized; value and observed_at updated; channel.observed event".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		before := getChannel(client, hub.ID(), 1, "lock", 0)
		head := client.Head(hub.ID())
		answer := client.Command(
			commandPath(hub.ID(), 1), `{"key":"lock","value":false}`, "Idempotency-Key", "first",
		)
		var got accepted
		answer.JSON(t, &got)
		ch := got.Channel
		if got.HubID != hub.ID() || got.DeviceID != 1 || ch.Key != "lock" || ch.Endpoint != 0 ||
			string(ch.Value) != "true" ||
			string(ch.Desired) != "false" ||
			ch.Status != "pending" ||
			!ch.Available ||
			*ch.ObservedAt != *before.ObservedAt {
			t.Errorf(
				"accepted command: got %s, want it pending with the last reported value",
				answer.Body,
			)
		}
		desired := client.AwaitType(hub.ID(), head, "channel.desired", 1)
		observed := client.AwaitType(hub.ID(), desired.Cursor, "channel.observed", 1)
		for _, e := range []harness.Event{desired, observed} {
			if !sameJSON(e.Data, []byte(`{"key":"lock","endpoint":0,"value":false}`)) {
				t.Errorf("%s: got data %s, want the value false", e.Type, e.Data)
			}
		}
		done := getChannel(client, hub.ID(), 1, "lock", 0)
		done.want(t, "synchronized", "false", "false")
		if *done.ObservedAt <= *before.ObservedAt || *done.DesiredAt != *ch.DesiredAt {
			t.Errorf("after the report: got %+v, want another observed_at only", done)
		}
		// "synchronized, device reports something other than desired: diverged, channel.observed
		// event".
		harness.Must(t, hub.Report(1, virtualhub.ChannelRef{Key: "lock"}, true))
		client.Await(hub.ID(), observed.Cursor, "channel.observed", func(e harness.Event) bool {
			return e.About("channel.observed", 1) && string(e.Observed().Value) == "true"
		})
		getChannel(client, hub.ID(), 1, "lock", 0).want(t, "diverged", "true", "false")
	})

	t.Run("pending until reported", func(t *testing.T) {
		// "any, command accepted (202): pending; desired and desired_at set; value unchanged;
		// channel.desired event".
		client := tenant.For(t)
		hub := c.For(t).
			VirtualHub(tenant, virtualhub.Config{
				Devices: []virtualhub.DeviceSpec{
					{Kind: "lock", Latency: virtualhub.Duration(time.Hour)},
				},
			})
		client.Command(commandPath(hub.ID(), 1), `{"key":"lock","value":false}`)
		getChannel(client, hub.ID(), 1, "lock", 0).want(t, "pending", "true", "false")
	})

	t.Run("jammed", func(t *testing.T) {
		// "reported value differs from the asked value (for example a jammed lock): diverged,
		// channel.observed event". "Acceptance followed by failure is not an HTTP error."
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		hub.Jam(1)
		head := client.Head(hub.ID())
		client.Command(commandPath(hub.ID(), 1), `{"key":"lock","value":false}`)
		client.Await(hub.ID(), head, "the other value", func(e harness.Event) bool {
			return e.About("channel.observed", 1) && e.Observed().Key == "lock" &&
				string(e.Observed().Value) == "true"
		})
		status(t, hub, 1, "lock", "diverged").want(t, "diverged", "true", "false")
		// "sent on every change, and for alarm and scene channels on every report".
		client.Await(
			hub.ID(), head, "an alarm",
			func(e harness.Event) bool {
				return e.About("channel.observed", 1) && e.Observed().Key == "alarm"
			},
		)
		hub.Unjam(1)
		client.Command(commandPath(hub.ID(), 1), `{"key":"lock","value":false}`)
		status(t, hub, 1, "lock", "synchronized")
	})

	t.Run("given up", func(t *testing.T) {
		// "pending, hub or radio gives up: failed".
		client := tenant.For(t)
		config := house
		config.GiveUp = 300 * time.Millisecond
		hub := c.For(t).VirtualHub(tenant, config)
		harness.Must(t, hub.Unreachable(1))
		client.Command(commandPath(hub.ID(), 1), `{"key":"lock","value":false}`)
		ch := status(t, hub, 1, "lock", "failed")
		ch.want(t, "failed", "true", "false")
		if ch.Available {
			t.Errorf("given up: got %+v, want it not available", ch)
		}
	})

	t.Run("rejected", func(t *testing.T) {
		// "404 not_found: no such device or channel", "422 command_refused: the hub will not drive
		// the device, for example a lock that did not join securely enough". "A command rejected
		// with an HTTP error is not an accepted command."
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		path := commandPath(hub.ID(), 1)
		client.Rejected(
			http.MethodPost, commandPath(hub.ID(), 3), `{"key":"lock","value":false}`,
			"command_refused",
		)
		client.Rejected(
			http.MethodPost, commandPath(hub.ID(), 99), `{"key":"lock","value":false}`, "not_found",
		)
		for _, body := range []string{
			`{"key":"level","value":1}`, `{"key":"lock","value":true,"endpoint":7}`,
			`{"key":"teleport","value":true}`, `{"key":"","value":true}`,
			`{"key":"Lock","value":true}`,
		} {
			client.Rejected(http.MethodPost, path, body, "not_found")
		}
		// the device has endpoints 1 and 2
		client.Rejected(
			http.MethodPost, commandPath(hub.ID(), 4), `{"key":"switch","value":true}`, "not_found",
		)
		for _, body := range []string{
			``, `{`, `[]`, `null`, `{}`, `{"key":"lock"}`, `{"value":true}`,
			`{"key":7,"value":true}`, `{"key":null,"value":true}`,
			`{"key":"lock","value":true,"endpoint":-1}`,
			`{"key":"lock","value":true,"endpoint":1.5}`,
			`{"key":"lock","value":true,"endpoint":"0"}`, `{"key":"lock","value":true,"speed":1}`,
			`{"key":"lock","value":true} x`, `{"key":"lock","value":true,"value":false}`,
			`{"key":"lock","value":true,"endpoint":1e300}`,
		} {
			client.Rejected(http.MethodPost, path, body, "invalid_request")
		}
		hub.RejectCommands(true)
		client.Rejected(http.MethodPost, path, `{"key":"lock","value":false}`, "command_refused")
		if n := desiredCount(client, hub, 1, "lock"); n != 0 {
			t.Errorf("rejected commands: got %d channel.desired events, want none", n)
		}
		getChannel(client, hub.ID(), 1, "lock", 0).want(t, "synchronized", "true", "null")
		hub.RejectCommands(false)
		client.Command(commandPath(hub.ID(), 4), `{"key":"switch","value":true,"endpoint":2}`)
		streamstest.Eventually(
			t, "endpoint 2 is on",
			func() bool {
				return string(getChannel(client, hub.ID(), 4, "switch", 2).Value) == "true"
			},
		)
		getChannel(client, hub.ID(), 4, "switch", 1).want(t, "synchronized", "false", "null")
	})

	t.Run("errors of the hub", func(t *testing.T) {
		// The hub's answers in terms of the contract: "502 hub_error: the hub failed".
		client := tenant.For(t)
		hub := c.For(t).RawHub()
		hub.BreaksProtocol()
		answers, sent := make(chan harness.Response, 1), make(chan harness.Request, 1)
		hub.OnRequest(func(request harness.Request) harness.Response {
			sent <- request
			return <-answers
		})
		hub.Enroll()
		hub.GoOnline()
		client.Add(hub.Serial)
		post := func(answer harness.Response, kind string) {
			t.Helper()
			answers <- answer
			client.Rejected(
				http.MethodPost, commandPath(hub.ID, 5), `{"key":"lock","value":true}`, kind,
			)
			request := <-sent
			var params map[string]any
			request.DecodeParams(&params)
			if request.Method != "channels.command" || params["device_id"] != 5.0 ||
				params["key"] != "lock" ||
				params["endpoint"] != 0.0 ||
				params["value"] != true ||
				params["command_id"] == "" {
				t.Errorf(
					"request to the hub: got %s %s, want the command", request.Method,
					request.Params,
				)
			}
		}
		fails := func(kind string) harness.Response {
			return harness.Response{Error: &harness.LinkError{Type: kind, Message: "as asked"}}
		}
		post(fails("command_refused"), "command_refused")
		post(fails("storage"), "hub_error")
		post(harness.Response{Result: map[string]any{}}, "hub_error")
	})
}

// commandValues tests "Values by channel", "Level and position values 0-99", "Color components
// 0-255", and "invalid_request (read-only channel or a value the channel does not take)".
func commandValues(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Values")
	hub := c.VirtualHub(tenant, virtualhub.Config{}) // the demo devices have every channel key
	notBool := []string{`1`, `0`, `"true"`, `null`, `{}`, `[]`, `"on"`}
	notPercent := []string{`-1`, `100`, `1.5`, `"50"`, `true`, `null`, `[50]`, `1e9`}
	notNumber := []string{`"21"`, `null`, `true`, `{}`, `4.9`, `35.1`, `-300`}
	notName := []string{`7`, `null`, `true`, `""`, `["off"]`, `"no such mode"`}
	for _, ch := range []struct {
		device       int64
		key          string
		valid        []string
		invalid      []string
		slowToReport bool
	}{
		{1, "lock", []string{`true`, `false`}, notBool, false},
		{6, "barrier", []string{`true`, `false`}, notBool, true},
		{3, "switch", []string{`true`, `false`}, notBool, false},
		{14, "local_protection", []string{`false`, `true`}, notBool, false},
		{3, "level", []string{`0`, `50`, `99`}, notPercent, false},
		{5, "position", []string{`0`, `99`, `98`}, notPercent, true},
		{2, "heating_setpoint", []string{`5`, `35`, `21.5`}, notNumber, false},
		{2, "cooling_setpoint", []string{`5`, `35`, `25.5`}, notNumber, false},
		{2, "mode", []string{`"heat"`, `"cool"`, `"auto"`, `"eco"`, `"off"`}, notName, false},
		{2, "fan_mode", []string{`"low"`, `"high"`, `"auto_low"`}, notName, false},
		{
			10, "color",
			[]string{
				`{"red":0,"green":0,"blue":0}`, `{"red":255,"green":255,"blue":255}`,
				`{"red":1,"green":2,"blue":3,"warm_white":4}`,
			},
			[]string{
				`null`, `"red"`, `{}`, `[1,2,3]`, `{"red":1,"green":2}`,
				`{"red":256,"green":0,"blue":0}`, `{"red":-1,"green":0,"blue":0}`,
				`{"red":1.5,"green":0,"blue":0}`,
				`{"red":"1","green":0,"blue":0}`, `{"red":1,"green":2,"blue":3,"pink":4}`,
				`{"red":1,"green":2,"blue":3,"warm_white":256}`, `{"red":null,"green":0,"blue":0}`,
			}, false},
	} {
		t.Run(ch.key, func(t *testing.T) {
			client := tenant.For(t)
			for _, value := range ch.invalid {
				apiError := client.Rejected(
					http.MethodPost, commandPath(hub.ID(), ch.device),
					`{"key":"`+ch.key+`","value":`+value+`}`, "invalid_request",
				)
				if !strings.Contains(apiError.Message, "value") &&
					!strings.Contains(apiError.Message, "color") {
					t.Errorf("%s: want the reason in the message, got %s", value, apiError.Message)
				}
			}
			if n := desiredCount(client, hub, ch.device, ch.key); n != 0 {
				t.Errorf("rejected values: got %d channel.desired events, want none", n)
			}
			for _, value := range ch.valid {
				var got accepted
				client.Command(
					commandPath(hub.ID(), ch.device),
					`{"key":"`+ch.key+`","value":`+value+`,"endpoint":0}`,
				).JSON(t, &got)
				if !sameJSON(got.Channel.Desired, json.RawMessage(value)) ||
					got.Channel.Status != "pending" {
					t.Errorf("command %s: got %+v", value, got)
				}
			}
			if ch.slowToReport {
				return // doors and shades move for seconds
			}
			last := ch.valid[len(ch.valid)-1]
			streamstest.Eventually(t, ch.key+" reports "+last, func() bool {
				now := getChannel(client, hub.ID(), ch.device, ch.key, 0)
				return now.Status == "synchronized" && sameJSON(now.Value, json.RawMessage(last))
			})
		})
	}

	t.Run("read-only", func(t *testing.T) {
		// "commands are only valid on writable channels".
		client := tenant.For(t)
		for _, id := range hub.DeviceIDs() {
			view, _ := hub.Device(id)
			for _, ch := range view.Channels {
				if ch.Writable {
					continue
				}
				value, err := json.Marshal(ch.Value)
				harness.Must(t, err)
				body := fmt.Sprintf(
					`{"key":%q,"value":%s,"endpoint":%d}`, ch.Key, value, ch.Endpoint,
				)
				client.Rejected(http.MethodPost, commandPath(hub.ID(), id), body, "invalid_request")
			}
		}
	})
}
