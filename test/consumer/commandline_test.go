package consumer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// commandLine runs the consumer commands of the binary, with a data directory and with an
// address and key.
func commandLine(t *testing.T, target *harness.Target) {
	service := target.OwnService()
	tenant := target.Tenant("Shell")
	hub := newHub(t, target, tenant)
	run := func(args ...string) (out, errs string, code int) {
		// later flags of the caller take precedence
		line := []string{args[0], "--data-dir", service.Dir, "--key", tenant.Key}
		return harness.RunBinary(t, append(line, args[1:]...)...)
	}
	// objects runs a command with --json and returns the printed objects.
	objects := func(args ...string) (all []map[string]any) {
		t.Helper()
		out, errs, code := run(append(args, "--json")...)
		if code != 0 {
			t.Fatalf("%v: got exit code %d: %s", args, code, errs)
		}
		for line := range strings.Lines(out) {
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Fatalf("%v printed %q: %v", args, line, err)
			}
			all = append(all, object)
		}
		return all
	}

	if hubs := objects("hubs"); len(hubs) != 1 || hubs[0]["id"] != hub.ID() {
		t.Errorf("hubs: got %v, want only %s", hubs, hub.ID())
	}
	if devices := objects("devices", hub.ID()); len(devices) != 4 ||
		devices[0]["name"] != "Front door" {
		t.Errorf("devices: got %v, want 4 that begin with Front door", devices)
	}
	if device := objects("devices", hub.ID(), "1"); len(device) != 1 ||
		device[0]["channels"].([]any)[0].(map[string]any)["status"] != "synchronized" {
		t.Errorf("device 1: got %v, want its lock synchronized", device)
	}
	sent := objects("send", hub.ID(), "1", "lock", "false", "--wait")
	if outcome := sent[0]["outcome"].(map[string]any); outcome["status"] != "synchronized" ||
		outcome["value"] != false {
		t.Errorf("send --wait: got %v, want synchronized with the value false", sent)
	}
	if sent := objects(
		"send", hub.ID(), "2", "mode", "heat",
	); sent[0]["channel"].(map[string]any)["desired"] != "heat" {
		t.Errorf("send mode heat: got %v, want the desired value heat", sent)
	}
	events := objects("events", hub.ID())
	log := tenant.AllEvents(hub.ID(), "")
	for i, event := range events {
		if event["cursor"] != log[i].Cursor || event["time"] != log[i].Time {
			t.Errorf("event %d: got %v, want %+v as in the log", i, event, log[i])
		}
	}
	if rest := objects("events", hub.ID(), "--after", events[0]["cursor"].(string)); len(
		rest,
	) < len(events)-1 ||
		rest[0]["cursor"] != events[1]["cursor"] {
		t.Errorf("events after the first: got %v", rest)
	}

	all := objects("events", "--all", "--type", "channel.*", "--hub", hub.ID(), "--part", "1/1")
	var channels []string
	for _, event := range tenant.AllEvents(hub.ID(), "") {
		if strings.HasPrefix(event.Type, "channel.") {
			channels = append(channels, event.Cursor)
		}
	}
	for i, event := range all {
		if i >= len(channels) || event["cursor"] != channels[i] || event["hub_id"] != hub.ID() {
			t.Errorf("event %d of all: got %v, want those of channels, as in the log", i, event)
		}
	}
	// The events after the last position of a list are those of a later list that it lacks. Devices
	// may have reported in between.
	position, ok := all[len(all)-1]["position"].(string)
	filter := []string{"events", "--all", "--type", "channel.*", "--hub", hub.ID()}
	rest := objects(append(filter, "--after", position)...)
	if later := objects(filter...); !ok || len(later) < len(all)+len(rest) ||
		!reflect.DeepEqual(cursorsOf(rest), cursorsOf(later[len(all):][:len(rest)])) {
		t.Errorf("events after the position %q: got %v, want those after %v of %v",
			position, rest, all[len(all)-1], later)
	}

	objects("events", hub.ID(), "--reader", "lobby")
	if readers := objects("readers"); len(readers) != 1 || readers[0]["name"] != "lobby" ||
		readers[0]["hub_id"] != hub.ID() || readers[0]["state"] != "ok" {
		t.Errorf("readers: got %v, want lobby", readers)
	}

	for _, tt := range []struct {
		args []string
		want string // in the output
	}{
		{[]string{"hubs"}, hub.ID()}, {[]string{"devices", hub.ID()}, "Front door"},
		{[]string{"devices", hub.ID(), "4"}, "switch#2"},
		{[]string{"events", hub.ID()}, "channel.desired"},
		{[]string{"events", "--all", "--site", tenant.Site}, hub.ID() + "  channel.desired"},
		{
			[]string{"send", hub.ID(), "kitchen", "switch#2", "true", "--wait"},
			"switch#2: true requested, synchronized, value true",
		},
		{[]string{"send", hub.ID(), "1", "lock", "true"}, "lock: true requested, pending"},
		{[]string{"hubs", "--url", service.Public()}, hub.ID()},
		{[]string{"hubs", "--url", service.Base() + "/"}, hub.ID()},
	} {
		if out, errs, code := run(tt.args...); code != 0 || !strings.Contains(out, tt.want) {
			t.Errorf("%v: got exit code %d: %s%s\nwant %q", tt.args, code, out, errs, tt.want)
		}
	}

	hub.Jam(1)
	if out, errs, code := run("send", hub.ID(), "1", "lock", "false", "--wait"); code != 1 ||
		!strings.Contains(out, "diverged, value true") ||
		!strings.Contains(errs, "another value than the command asked for") {
		t.Errorf("jammed lock: got exit code %d: %s%s", code, out, errs)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string // in stderr
	}{
		{[]string{"devices", "hub-0000-0000-0000"}, 2, "not_found"},
		{[]string{"devices", hub.ID(), "99"}, 2, "not_found"},
		{[]string{"events", hub.ID(), "--after", "yesterday"}, 2, "invalid_request"},
		{[]string{"send", hub.ID(), "1", "lock", "7"}, 2, "value"},
		{[]string{"events", "--all", hub.ID()}, 2, "--all"},
		{[]string{"events"}, 2, "--all"},
		{[]string{"events", hub.ID(), "--type", "channel.*"}, 2, "need --all"},
		{[]string{"events", "--all", "--after", "yesterday"}, 2, "after"},
		{[]string{"events", "--all", "--hub", "x"}, 2, "none has this id or name"},
		{[]string{"events", "--all", "--part", "0/2"}, 2, "--part"},
		{[]string{"hubs", "--key", "hc_dev_unknown"}, 1, "unauthenticated"},
	} {
		if out, errs, code := run(tt.args...); code != tt.code ||
			out != "" && strings.Count(out, "\n") > 1 ||
			!strings.Contains(errs, tt.want) {
			t.Errorf("%v: got exit code %d: %s%s\nwant %q", tt.args, code, out, errs, tt.want)
		}
	}
	hub.Offline(true)
	streamstest.Eventually(t, "the hub is offline", func() bool {
		_, errs, code := run("devices", hub.ID())
		return code == 1 && strings.Contains(errs, "hub_offline") && strings.Count(errs, "\n") == 1
	})
}

// cursorsOf returns the cursors of events.
func cursorsOf(events []map[string]any) []any {
	cursors := []any{}
	for _, e := range events {
		cursors = append(cursors, e["cursor"])
	}
	return cursors
}
