package contract

import (
	"net/http"
	"sync"
	"testing"

	"hubcloud/test/harness"
)

// adoptionRaces tests "A hub belongs to one organization at a time; the first organization to add
// it keeps it."
func adoptionRaces(t *testing.T, c *harness.Target) {
	const pairs = 50
	tenant, stranger := c.Tenant("First"), c.OtherTenant("Second")
	hubs := c.Inventory(pairs)
	var racing sync.WaitGroup
	queue := make(chan harness.FactoryHub, pairs)
	for _, hub := range hubs {
		queue <- hub
	}
	close(queue)
	for range 4 {
		racing.Go(func() {
			for hub := range queue {
				raw := hub.Raw(t, c.Public)
				raw.Enroll()
				raw.GoOnline()
				var both sync.WaitGroup
				answers := make([]harness.Answer, 2)
				for i, org := range []*harness.Tenant{tenant, stranger} {
					both.Go(func() {
						answer, err := org.Try(
							http.MethodPost, "/hubs",
							map[string]string{"serial": raw.Serial, "site_id": org.Site},
						)
						if err != nil {
							t.Error(err)
						}
						answers[i] = answer
					})
				}
				both.Wait()
				winner, loser := 0, 1
				if answers[1].Status == http.StatusOK {
					winner, loser = 1, 0
				}
				if answers[winner].Status != http.StatusOK ||
					answers[loser].Status != http.StatusUnprocessableEntity ||
					answers[loser].ErrorType() != "hub_not_addable" {
					t.Errorf(
						"%s: got %d %s and %d %s, want 200 and 422 hub_not_addable", raw.ID,
						answers[0].Status, answers[0].Body, answers[1].Status, answers[1].Body,
					)
					continue
				}
				for i, org := range []*harness.Tenant{tenant, stranger} {
					want := http.StatusNotFound
					if i == winner {
						want = http.StatusOK
					}
					if answer, err := org.Try(http.MethodGet, "/hubs/"+raw.ID, nil); err != nil ||
						answer.Status != want {
						t.Errorf(
							"%s: organization %d: got status %d, want %d: %v", raw.ID, i,
							answer.Status, want, err,
						)
					}
				}
				raw.Disconnect()
			}
		})
	}
	racing.Wait()
}
