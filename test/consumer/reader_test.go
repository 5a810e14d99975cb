package consumer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// namedReader checks that a follower of the command line that names itself is listed by `hubcloud
// readers` and by the API: with no event behind while it follows, and with the events that came
// since once it is killed.
func namedReader(t *testing.T, target *harness.Target) {
	tenant := target.Tenant("Readers")
	hub := newHub(t, target, tenant)
	// listed returns "<name> <what it reads> <state> <events behind>" of each reader, as the API
	// and as the command lists it.
	listed := func() (api, command []string) {
		t.Helper()
		type reader struct {
			Name, State  string
			HubID        *string `json:"hub_id"`
			EventsBehind *int    `json:"events_behind"`
		}
		describe := func(r reader) string {
			read, behind := "all", "?"
			if r.HubID != nil {
				read = *r.HubID
			}
			if r.EventsBehind != nil {
				behind = fmt.Sprint(*r.EventsBehind)
			}
			return strings.Join([]string{r.Name, read, r.State, behind}, " ")
		}
		var page struct{ Data []reader }
		tenant.Must(http.MethodGet, "/readers", nil, http.StatusOK).JSON(t, &page)
		for _, r := range page.Data {
			api = append(api, describe(r))
		}
		out, errs, code := harness.RunBinary(
			t, "readers", "--json", "--url", tenant.Base, "--key", tenant.Key,
		)
		if code != 0 {
			t.Fatalf("readers: got exit code %d: %s", code, errs)
		}
		for line := range strings.Lines(out) {
			var r reader
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("readers printed %q: %v", line, err)
			}
			command = append(command, describe(r))
		}
		return api, command
	}
	await := func(when, want string) {
		t.Helper()
		streamstest.EventuallyNil(t, when, func() error {
			api, command := listed()
			slices.Sort(api)
			slices.Sort(command)
			if strings.Join(api, "; ") != want || strings.Join(command, "; ") != want {
				return fmt.Errorf("the API lists %q and the command %q, want %q", api, command, want)
			}
			return nil
		})
	}
	await("before any reader", "")
	followers := map[string]*process{}
	for name, what := range map[string]string{"wall panel": "--all", "lobby": hub.ID()} {
		followers[name] = processOf(t, func() *exec.Cmd {
			cmd := exec.Command(harness.Binary(t), "events", what, "--follow", "--reader", name)
			cmd.Env = append(
				os.Environ(), "HUBCLOUD_URL="+tenant.Base, "HUBCLOUD_API_KEY="+tenant.Key,
			)
			return cmd
		})
	}
	await("while they follow", "lobby "+hub.ID()+" ok 0; wall panel all ok 0")
	for _, follower := range followers {
		follower.kill()
	}
	for _, locked := range []bool{false, true, false} {
		if err := hub.Report(1, virtualhub.ChannelRef{Key: "lock"}, locked); err != nil {
			t.Fatal(err)
		}
	}
	harness.Stored(t, hub)
	await("after they were killed", "lobby "+hub.ID()+" ok 3; wall panel all ok 3")
}
