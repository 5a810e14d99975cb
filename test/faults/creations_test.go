package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// TestCreationsOutliveCrashes: a client that repeated POST /v1/sites after a lost answer made two
// sites. Clients repeat it under one Idempotency-Key until it is answered, two of them at once,
// while the service is killed and started again: each site is made once, and both hear the same.
func TestCreationsOutliveCrashes(t *testing.T) {
	t.Parallel()
	const clients, crashes = 6, 4
	s := harness.Start(t, "--rate", "100000", "--burst", "100000", "--sites-per-org", "100000")
	tenant := harness.NewTenant(t, s, "Creations")
	stop := make(chan struct{})
	var creating sync.WaitGroup
	var mu sync.Mutex
	answered := map[string]string{} // the site's id by its name
	var repeated int
	create := func(name string) string {
		retry := time.NewTicker(retryPause)
		defer retry.Stop()
		for tries := 0; ; tries++ {
			answer, err := tenant.Client.Do(
				http.MethodPost, "/sites", map[string]string{"name": name}, "Idempotency-Key", name,
			)
			if err != nil || answer.Status >= 500 {
				<-retry.C // the service is away
				continue
			}
			var made struct{ ID, Name string }
			if err := json.Unmarshal(answer.Body, &made); err != nil ||
				answer.Status != http.StatusCreated ||
				made.Name != name {
				t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			if tries > 0 {
				repeated++
			}
			return made.ID
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
				var twins [2]string
				var both sync.WaitGroup
				for k := range twins {
					both.Go(func() { twins[k] = create(name) })
				}
				both.Wait()
				if twins[0] != twins[1] {
					t.Errorf("%s: twins were answered %s and %s", name, twins[0], twins[1])
				}
				mu.Lock()
				answered[name] = twins[0]
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

	after := ""
	for more := true; more; {
		var page struct {
			Data    []struct{ ID, Name string }
			HasMore bool `json:"has_more"`
		}
		tenant.Must(http.MethodGet, "/sites"+after, nil, http.StatusOK).JSON(t, &page)
		for _, site := range page.Data {
			if after = "?starting_after=" + site.ID; site.ID == tenant.Site {
				continue
			}
			if answered[site.Name] != site.ID {
				t.Errorf(
					"%s is there as %s; answered was %q", site.Name, site.ID, answered[site.Name],
				)
			}
			delete(answered, site.Name)
		}
		more = page.HasMore
	}
	for name, id := range answered {
		t.Errorf("%s was answered as %s, and is not there", name, id)
	}
	if repeated == 0 {
		t.Error("no crash came in the midst of a creation")
	}
}
