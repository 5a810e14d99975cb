package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// TestCreationsOutliveCrashes creates sites under crashes. Regression: a client that repeated
// POST /v1/sites after a lost answer created two sites. Two concurrent clients repeat each request
// with one Idempotency-Key until it is answered, while the service is killed and restarted. Each
// site is created once, and both clients get the same answer.
func TestCreationsOutliveCrashes(t *testing.T) {
	t.Parallel()
	const clients, crashes = 6, 2
	s := harness.Start(t, "--rate", "100000", "--burst", "100000", "--sites-per-org", "100000")
	tenant := harness.NewTenant(t, s, "Creations")
	stop := make(chan struct{})
	var creating sync.WaitGroup
	var mu sync.Mutex
	answered := map[string]string{} // site ids by name
	var repeated int
	create := func(name string) string {
		retry := time.NewTicker(retryPause)
		defer retry.Stop()
		for tries := 0; ; tries++ {
			answer, err := tenant.Client.Do(
				http.MethodPost, "/sites", map[string]string{"name": name}, "Idempotency-Key", name,
			)
			if err != nil || answer.Status >= 500 {
				<-retry.C // the service is down
				continue
			}
			var created struct{ ID, Name string }
			if err := json.Unmarshal(answer.Body, &created); err != nil ||
				answer.Status != http.StatusCreated ||
				created.Name != name {
				t.Errorf(
					"create %s: got %d %s, want 201 with the site", name, answer.Status,
					answer.Body,
				)
			}
			mu.Lock()
			defer mu.Unlock()
			if tries > 0 {
				repeated++
			}
			return created.ID
		}
	}
	for i := range clients {
		creating.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("Site %d of %d", n, i)
				var ids [2]string
				var both sync.WaitGroup
				for k := range ids {
					both.Go(func() { ids[k] = create(name) })
				}
				both.Wait()
				if ids[0] != ids[1] {
					t.Errorf(
						"%s: concurrent duplicates got different answers: %s and %s", name, ids[0],
						ids[1],
					)
				}
				mu.Lock()
				answered[name] = ids[0]
				mu.Unlock()
			}
		})
	}
	for range crashes {
		harness.AnyMoment(200*time.Millisecond, 400*time.Millisecond)
		s.Kill()
		s.Begin()
	}
	close(stop)
	creating.Wait()

	// An answer waits for the list for ten seconds only, and not again after a crash.
	for deadline := time.Now().Add(time.Minute); ; harness.Elapse(retryPause) {
		missing := maps.Clone(answered)
		for id, name := range siteNames(t, tenant) {
			if answered[name] != id {
				t.Errorf("%s: got id %s in the list, want %q from the answer", name, id, answered[name])
			}
			delete(missing, name)
		}
		if len(missing) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("created, but not listed: %v", missing)
			break
		}
	}
	if repeated == 0 {
		t.Error("no crash interrupted a request")
	}
}

// siteNames returns the names of the sites that the tenant has created, by id.
func siteNames(t *testing.T, tenant *harness.Tenant) map[string]string {
	t.Helper()
	names, after := map[string]string{}, ""
	for more := true; more; {
		var page struct {
			Data    []struct{ ID, Name string }
			HasMore bool `json:"has_more"`
		}
		tenant.Must(http.MethodGet, "/sites"+after, nil, http.StatusOK).JSON(t, &page)
		for _, site := range page.Data {
			if after = "?starting_after=" + site.ID; site.ID != tenant.Site {
				names[site.ID] = site.Name
			}
		}
		more = page.HasMore
	}
	return names
}
