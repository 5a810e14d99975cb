package operators

import (
	"os"
	"strconv"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/population"
)

// Environment variables for the number of events in the directory and the number of concurrent
// clients. Defaults are small; the promise is for 200,000 events and 50 clients.
const (
	envEvents  = "HUBCLOUD_TEST_EVENTS"
	envClients = "HUBCLOUD_TEST_CLIENTS"
)

// scale is the size of a test.
type scale struct{ events, orgs, clients int }

// sizeOf returns the size from the environment, with the given defaults.
func sizeOf(t *testing.T, events, clients int) scale {
	t.Helper()
	for name, n := range map[string]*int{envEvents: &events, envClients: &clients} {
		if text := os.Getenv(name); text != "" {
			given, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*n = given
		}
	}
	return scale{events: events, orgs: max(clients, events/400), clients: clients}
}

// populate fills the directory of a running service and waits until the read models have caught up.
func populate(t *testing.T, s *harness.Service, size scale, seed uint64) population.Population {
	t.Helper()
	began := time.Now()
	written, err := population.Write(
		t.Context(), connect(t, s),
		population.Config{Events: size.events, Orgs: size.orgs, Environment: "dev", Seed: seed},
	)
	harness.Must(t, err)
	writeTime := time.Since(began)
	streamstest.EventuallyWithin(
		t,
		10*time.Minute,
		"the read models are up to date",
		func() bool {
			for _, line := range s.CLI("projections", "status") {
				if line["lag"].(float64) != 0 || line["state"] != "running" {
					return false
				}
			}
			return true
		},
	)
	t.Logf(
		"%d events of %d organizations were written in %s, and projected %s later", written.Events,
		len(written.Orgs), writeTime.Round(time.Millisecond),
		(time.Since(began) - writeTime).Round(time.Millisecond),
	)
	return written
}

// unlimited lifts limits that are not tested here.
var unlimited = []string{"--rate", "1000000", "--burst", "1000000", "--log-level", "warn"}
