package operators

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestStatesAreRebuilt changes last reported states in the database by hand, while 200 devices
// report: verify names the changes, and a rebuild repairs them while the states can be read.
func TestStatesAreRebuilt(t *testing.T) {
	t.Parallel()
	target := harness.NewTarget(t, "--rate", "1000", "--burst", "1000")
	s, tenant := target.OwnService(), target.Tenant("States")
	specs := make([]virtualhub.DeviceSpec, 200)
	for i := range specs {
		specs[i] = virtualhub.DeviceSpec{Kind: "lock"}
	}
	hub := target.VirtualHub(tenant, virtualhub.Config{Devices: specs})
	streamstest.Eventually(t, "all locks are listed", func() bool {
		listed, err := listedLocks(tenant.Client)
		return err == nil && listed == len(specs)
	})

	stop := make(chan struct{})
	var running sync.WaitGroup
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	running.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			// The first device stays as it is.
			device := int64(2 + rand.IntN(len(specs)-1))
			err := hub.Report(device, virtualhub.ChannelRef{Key: "lock"}, rand.IntN(2) == 0)
			if err != nil {
				t.Errorf("report of device %d: %v", device, err)
				return
			}
		}
	})
	reads := 0
	running.Go(func() {
		for ; ; reads++ {
			select {
			case <-stop:
				return
			default:
			}
			if listed, err := listedLocks(tenant.Client); err != nil || listed != len(specs) {
				t.Errorf("GET /state: got %d locks, %v, want %d", listed, err, len(specs))
				return
			}
		}
	})

	if differences := verify(t, s); len(differences) > 0 {
		t.Errorf("before the change: got differences %s, want none", differences)
	}
	schema := query[string](
		t, s, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hubcloud\\_%'",
	)[0]
	changed := query[string](t, s, fmt.Sprintf(
		"UPDATE %s.reported_channels SET value = CASE value WHEN 'true' THEN 'false' ELSE 'true' END "+
			"WHERE hub_id = '%s' AND device_id = 1 AND key = 'lock' RETURNING value",
		schema, hub.ID(),
	))
	differences := verify(t, s)
	want := fmt.Sprintf(
		`{"table":"reported_channels","key":{"hub_id":%q,"device_id":"1","key":"lock","endpoint":"0"},`+
			`"what":"changed","column":"value","live":%q`, hub.ID(), changed[0],
	)
	if len(differences) != 1 || !strings.Contains(string(differences[0]), want) {
		t.Errorf("after the change: got differences %s, want %s", differences, want)
	}
	rebuild(t, s)
	if differences := verify(t, s); len(differences) > 0 {
		t.Errorf("after the rebuild: got differences %s, want none", differences)
	}
	close(stop)
	running.Wait()
	t.Logf("%d complete reads of the states meanwhile", reads)

	s.CLI("projections", "stop", "devices")
	var statuses []string
	for _, row := range s.CLI("projections", "status") {
		statuses = append(statuses, fmt.Sprint(row["name"], " ", row["state"]))
	}
	want = "directory running, presence running, devices stopped_by_operator, book running"
	if got := strings.Join(statuses, ", "); got != want {
		t.Errorf("projections status: got %q, want %q", got, want)
	}
	s.CLI("projections", "resume", "devices")
}

// listedLocks returns how many locks GET /state lists.
func listedLocks(client *harness.Client) (int, error) {
	answer, err := client.Try(http.MethodGet, "/state?limit=500&key=lock", nil)
	if err != nil {
		return 0, err
	}
	var page struct{ Data []json.RawMessage }
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &page) != nil {
		return 0, fmt.Errorf("got %d %s", answer.Status, answer.Body)
	}
	return len(page.Data), nil
}
