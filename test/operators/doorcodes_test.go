package operators

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestDoorCodesSurviveAndStayHidden: codes that wait for a lock that is away are in a backup, and
// reach the lock after a restore. No code is in the clear in the data directory, the backup, the log,
// metrics, events or the audit, whether it waits, was replaced, or is in the lock.
func TestDoorCodesSurviveAndStayHidden(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(t)
	s, tenant := c.OwnService(), c.Tenant("Door codes")
	hub := c.VirtualHub(tenant, virtualhub.Config{
		Devices: []virtualhub.DeviceSpec{{Kind: "lock"}, {Kind: "lock"}},
	})
	const active, waiting, replaced, changed = "4815162342", "9182736455", "5566778899", "1029384756"
	path := func(device int) string {
		return fmt.Sprintf("/hubs/%s/devices/%d/credentials", hub.ID(), device)
	}
	// A hub that is away is not asked, so its last states must be known before.
	streamstest.Eventually(t, "the service knows the locks", func() bool {
		var locks struct{ Data []struct{} }
		tenant.Must(
			http.MethodGet, "/state?key=lock&hub_id="+hub.ID(), nil, http.StatusOK,
		).JSON(t, &locks)
		return len(locks.Data) == 2
	})
	give := func(device, slot int, code string) {
		t.Helper()
		body := map[string]any{"label": "Somebody", "slot": slot, "code": code}
		tenant.Must(http.MethodPost, path(device), body, http.StatusCreated, "Idempotency-Key", code)
	}
	opens := func(device, slot int64, code string) bool {
		got, err := hub.EnterCode(device, code)
		return err == nil && got == slot
	}
	give(1, 3, active)
	streamstest.Eventually(t, "the lock has a code", func() bool { return opens(1, 3, active) })
	hub.Offline(true)
	streamstest.Eventually(t, "the hub is away", func() bool {
		var list struct{ Complete bool }
		tenant.Must(http.MethodGet, path(1), nil, http.StatusOK).JSON(t, &list)
		return !list.Complete
	})
	give(2, 4, replaced)
	tenant.Must(http.MethodPatch, path(2)+"/4", map[string]any{"code": waiting}, http.StatusOK)
	tenant.Must(http.MethodPatch, path(1)+"/3", map[string]any{"code": changed}, http.StatusOK)
	var made struct{ Code string }
	tenant.Must(
		http.MethodPost, path(2), map[string]any{"label": "Guest", "slot": 5}, http.StatusCreated,
	).JSON(t, &made)

	backup := filepath.Join(t.TempDir(), "backup")
	s.CLI("backup", backup, "--hub-logs")
	hidden := func(when string) {
		t.Helper()
		saved := s.For(t)
		saved.Dir = backup
		events, err := json.Marshal(tenant.AllEvents(hub.ID(), ""))
		harness.Must(t, err)
		texts := map[string]string{
			"events": string(events), "log": s.Log(), "metrics": metricsText(t, s),
			"audit": string(tenant.Must(http.MethodGet, "/audit?limit=500", nil, http.StatusOK).Body),
		}
		if !strings.Contains(texts["audit"], "Somebody") || !strings.Contains(texts["events"], "Somebody") {
			t.Errorf("%s: audit and events do not name the label", when)
		}
		for _, code := range []string{active, waiting, replaced, changed} {
			for where, text := range texts {
				if strings.Contains(text, code) {
					t.Errorf("%s: %s has a code", when, where)
				}
			}
			if file := s.FindInFiles(code) + saved.FindInFiles(code); file != "" {
				t.Errorf("%s: %s has a code", when, file)
			}
		}
	}
	hidden("while codes wait")

	s.Kill()
	streamstest.Eventually(t, "the data directory is gone", func() bool {
		return os.RemoveAll(s.Dir) == nil
	})
	s.CLI("restore", backup)
	s.Begin()
	hub.Offline(false)
	for code, at := range map[string][2]int64{waiting: {2, 4}, made.Code: {2, 5}, changed: {1, 3}} {
		streamstest.Eventually(t, "a code that has waited opens", func() bool {
			return opens(at[0], at[1], code)
		})
	}
	if opens(1, 3, active) || opens(2, 4, replaced) {
		t.Error("a code that was replaced opens")
	}
	hidden("after the restore")
}

// metricsText returns the metrics of a service as they are scraped.
func metricsText(t *testing.T, s *harness.Service) string {
	t.Helper()
	answer, err := http.Get("http://" + s.Admin + "/metrics")
	harness.Must(t, err)
	defer answer.Body.Close()
	text := new(strings.Builder)
	if _, err := io.Copy(text, answer.Body); err != nil || !strings.Contains(text.String(), "hubcloud_") {
		t.Fatalf("metrics: %v: %.200s", err, text)
	}
	return text.String()
}
