package operators

import (
	"encoding/json"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// contractTypes are the types of events of the API contract.
var contractTypes = []string{
	"hub.connected", "hub.disconnected", "hub.events_skipped", "channel.observed",
	"channel.desired", "device.added", "device.join_failed", "device.updated", "device.available", "device.unavailable",
	"device.forgotten", "credential.created", "credential.applied", "credential.revoked",
	"rule.created", "rule.updated", "rule.fired", "rule.deleted",
}

// TestSim: `hubcloud sim` makes every event of the contract happen at the hubs of `hubcloud dev`.
func TestSim(t *testing.T) {
	t.Parallel()
	environment := []string{"XDG_CACHE_HOME=" + t.TempDir()}
	if _, errs, code := harness.RunBinaryWith(t, environment, "sim", "list"); code != 1 ||
		!strings.Contains(errs, "no virtual hub runs") {
		t.Errorf("sim list without hubs: got exit code %d and %q, want a failure", code, errs)
	}
	service, client := harness.StartDev(t, environment)
	const hub = "hub-demo-0000-0001"
	sim := func(args ...string) string {
		t.Helper()
		out, errs, code := harness.RunBinaryWith(t, environment, append([]string{"sim"}, args...)...)
		if code != 0 {
			t.Fatalf("hubcloud sim %s: got exit code %d, want 0: %s", args, code, errs)
		}
		return out
	}

	// Each step is a command line and the event that follows: its type and data, of which a part is
	// given.
	seen := map[string]bool{}
	for _, step := range []struct{ line, eventType, data string }{
		{"smoke lobby", "channel.observed", `{"key":"smoke","endpoint":0,"value":true}`},
		{"smoke Lobby --off", "channel.observed", `{"key":"smoke","endpoint":0,"value":false}`},
		{"leak 0001", "channel.observed", `{"key":"leak","endpoint":0,"value":true}`},
		{"battery lobby 7", "channel.observed", `{"key":"battery","endpoint":0,"value":7}`},
		{"report lobby thermostat temperature 17.5 --json", "channel.observed", `"value":17.5`},
		{"report lobby 4 switch#2 true", "channel.observed", `"endpoint":2,"value":true`},
		{"set lobby 4 switch#2 false", "channel.desired", `"endpoint":2,"value":false`},
		{"offline lobby", "hub.disconnected", `{"reason":`},
		{"online lobby", "hub.connected", `{}`},
		{"cut lobby", "hub.disconnected", `{"reason":`},
		{"restart lobby", "hub.connected", `{}`},
		{"drop lobby --count 3", "hub.events_skipped", `{"from":`},
		{"malform lobby", "hub.events_skipped", `{"from":`},
		{"unreachable lobby 11", "device.unavailable", `{}`},
		{"reachable lobby 11", "device.available", `{}`},
		{"rename lobby 2 Thermo --remove mode", "device.updated", `"key":"mode"`},
		{"join lobby lock --name Cellar", "device.added", `{"name":"Cellar"`},
		{"emit lobby device.join_failed", "device.join_failed", `{"reason":"security"}`},
		{"leave lobby cellar", "device.forgotten", `{"name":"Cellar"}`},
		{"emit lobby credential.created", "credential.created", `"label":"Cleaner"`},
		{"emit lobby credential.applied", "credential.applied", `{"state":"active"}`},
		{"emit lobby credential.revoked", "credential.revoked", `{}`},
		{"emit lobby rule.created", "rule.created", `"enabled":true`},
		{"emit lobby rule.updated", "rule.updated", `"enabled":false`},
		{"emit lobby rule.fired", "rule.fired", `{}`},
		{"emit lobby rule.deleted", "rule.deleted", `{}`},
		{`emit lobby weather.changed --data {"wind":7}`, "weather.changed", `{"wind":7}`},
	} {
		after := client.Head(hub)
		sim(strings.Fields(step.line)...)
		client.Await(hub, after, step.eventType+" after sim "+step.line, func(e harness.Event) bool {
			return e.Type == step.eventType && strings.Contains(string(e.Data), step.data)
		})
		seen[step.eventType] = true
	}
	for _, eventType := range contractTypes {
		if !seen[eventType] {
			t.Errorf("no step causes %s; steps cause %v", eventType, slices.Sorted(maps.Keys(seen)))
		}
	}

	t.Run("jam", func(t *testing.T) {
		after := client.Head(hub)
		sim("jam", "lobby", "front")
		unlockDoor(client, hub, "")
		client.Await(hub, after, "the lock reports the opposite", func(e harness.Event) bool {
			return e.About("channel.observed", 1) && e.Observed().Key == "lock" &&
				string(e.Observed().Value) == "true"
		})
		sim("unjam", "lobby")
	})
	t.Run("answers", func(t *testing.T) {
		for _, c := range []struct{ verb, errorType string }{
			{"reject", "command_refused"}, {"radio", "hub_unavailable"}, {"clock", "hub_unavailable"},
		} {
			sim(c.verb, "lobby")
			unlockDoor(client, hub, c.errorType)
			sim(c.verb, "lobby", "--off")
		}
		unlockDoor(client, hub, "")
		sim("late", "lobby", "2s")
		begun := time.Now()
		client.Must(http.MethodGet, "/hubs/"+hub+"/devices", nil, http.StatusOK)
		if took := time.Since(begun); took < 2*time.Second {
			t.Errorf("late 2s: answered after %s, want at least 2s", took)
		}
		sim("late", "lobby", "0s")
	})
	t.Run("reset", func(t *testing.T) {
		before := client.Head(hub)
		sim("reset", "lobby")
		streamstest.Eventually(t, "cursors from before are expired", func() bool {
			answer, err := client.Try(http.MethodGet, "/hubs/"+hub+"/events?after="+before, nil)
			return err == nil && answer.Status == http.StatusGone
		})
	})
	t.Run("virtualhub", func(t *testing.T) {
		identity := service.For(t).Hub()
		process := exec.CommandContext(
			t.Context(), harness.Binary(t), "virtualhub", "--enroll", service.Public(), "--serial",
			identity.Serial, "--secret", identity.Secret,
		)
		process.Env = append(process.Environ(), environment...)
		process.Stdout, process.Stderr = t.Output(), t.Output()
		harness.Must(t, process.Start())
		list := func(flags ...string) (ids []string) {
			out := sim(append([]string{"list", "--json"}, flags...)...)
			for line := range strings.Lines(out) {
				var hub struct{ ID string }
				if err := json.Unmarshal([]byte(line), &hub); err != nil {
					t.Fatalf("sim list printed %q: %v", line, err)
				}
				ids = append(ids, hub.ID)
			}
			return ids
		}
		streamstest.Eventually(t, "sim lists the hub of another process", func() bool {
			return slices.Contains(list(), identity.HubID)
		})
		if ids := list("--data-dir", service.Dir); len(ids) != 3 {
			t.Errorf("sim list --data-dir: got %v, want the demo's hubs", ids)
		}
		harness.Must(t, process.Process.Kill())
		_ = process.Wait() // killed
		if ids := list(); slices.Contains(ids, identity.HubID) {
			t.Errorf("sim list: got %v, want no hub of a killed process", ids)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		for _, c := range []struct{ line, says string }{
			{"jam attic", "running: hub-demo-0000-0001 Lobby"},
			{"jam hub-demo", "ambiguous"},
			{"jam lobby door", "1 Front door"},
			{"jam lobby 99", "no device"},
			{"smoke", "<hub>"},
			{"report lobby 2 temperature hot", "must be a number"},
			{"report lobby 2 color 1", "no channel"},
			{"battery lobby 101", "0 to 100"},
			{"drop lobby --count 0", "--count"},
			{"late lobby soon", "soon"},
			{"join lobby television", "television"},
			{"emit lobby hub.connected", "hub."},
			{"emit lobby x --data 7", "--data"},
			{"explode lobby", "explode"},
		} {
			args := append([]string{"sim"}, strings.Fields(c.line)...)
			out, errs, code := harness.RunBinaryWith(t, environment, args...)
			if code != 2 || out != "" || !strings.Contains(errs, c.says) ||
				strings.Count(errs, "\n") != 1 {
				t.Errorf(
					"sim %s: got exit code %d, %q and %q, want 2 and one line with %q",
					c.line, code, out, errs, c.says,
				)
			}
		}
	})
}

// unlockDoor unlocks the front door of a hub and checks that it is accepted, or the type of the
// error if that is not empty.
func unlockDoor(client *harness.Client, hub, errorType string) {
	client.T.Helper()
	path, body := "/hubs/"+hub+"/devices/1/commands", `{"key":"lock","value":false}`
	if errorType == "" {
		client.Must(http.MethodPost, path, body, http.StatusAccepted)
		return
	}
	client.Rejected(http.MethodPost, path, body, errorType)
}
