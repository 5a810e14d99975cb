package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// foreignHubs tests "A hub that belongs to another organization answers exactly like a hub that
// does not exist (404 not_found)" and "a hub of another organization returns 404 not_found, never
// revealing it exists". The hub is online and would answer.
func foreignHubs(t *testing.T, c *harness.Target) {
	tenant, stranger := c.Tenant("Own"), c.OtherTenant("Foreign")
	foreign := c.VirtualHub(stranger, virtualhub.Config{}).ID()
	// A registered hub without an organization does not exist either.
	unowned := c.Hub().HubID

	for _, e := range endpoints {
		if !e.ofHub() {
			continue
		}
		t.Run(e.String(), func(t *testing.T) {
			client := tenant.For(t)
			bodies := []any{e.sent()}
			if e.body != "" {
				bodies = append(bodies, `{"what":`, `{"unknown":1}`)
			}
			for i, body := range bodies {
				unknown, err := client.Try(e.method, e.at(noHub), body)
				harness.Must(t, err)
				if i == 0 &&
					(unknown.Status != http.StatusNotFound || unknown.ErrorType() != "not_found") {
					t.Fatalf(
						"unknown hub: got %d %s, want 404 not_found", unknown.Status, unknown.Body,
					)
				}
				for _, id := range []string{foreign, unowned} {
					answer := client.Must(e.method, e.at(id), body, unknown.Status)
					apiError := harness.CheckAPIError(t, answer)
					if apiError.Type != unknown.ErrorType() ||
						apiError.Message != unknown.APIError().Message ||
						strings.Contains(apiError.Message, id) {
						t.Errorf(
							"unknown and foreign hub differ: %s and %s", unknown.Body, answer.Body,
						)
					}
				}
			}
		})
	}
	for _, id := range []string{
		strings.ToUpper(foreign), foreign + "-x", "x", "%00", "a%2fb", strings.Repeat("x", 2000),
	} {
		tenant.Rejected(http.MethodGet, "/hubs/"+id, nil, "not_found")
	}
	list := data(t, tenant.Get("/hubs?site_id="+stranger.Site).Object(t))
	if len(list) != 0 {
		t.Errorf("another organization's site: got hubs %v, want none", list)
	}
	tenant.Rejected(http.MethodGet, "/hubs?starting_after="+foreign, nil, "invalid_request")

	t.Run("time", func(t *testing.T) {
		// Other load only makes requests slower, so compare the fastest of several. A real
		// difference shows in every attempt, a random one does not. They take turns in being first,
		// since a wait for the rate limit comes before one of them.
		client := tenant.For(t)
		alike := func(what string, call func(hub string) (harness.Answer, error)) {
			difference := ""
			for range 20 {
				fastest := [2]time.Duration{time.Hour, time.Hour}
				for turn := range 12 {
					i := (turn + turn/2) % 2
					began := time.Now()
					answer, err := call([]string{foreign, noHub}[i])
					took := time.Since(began)
					harness.Must(t, err)
					if answer.Status == http.StatusTooManyRequests {
						client.Get("/sites") // waits
						continue
					}
					fastest[i] = min(fastest[i], took)
				}
				if (fastest[0] - fastest[1]).Abs() < max(
					300*time.Microsecond, min(fastest[0], fastest[1])/2,
				) {
					return
				}
				difference = fmt.Sprintf("foreign %s, unknown %s", fastest[0], fastest[1])
			}
			t.Errorf("%s: unknown and foreign hub differ in time: %s", what, difference)
		}
		for _, e := range endpoints {
			if e.ofHub() && (e.body == "" || e.method == http.MethodPost) {
				alike(
					e.String(),
					func(hub string) (harness.Answer, error) {
						return client.Do(e.method, e.at(hub), e.sent())
					},
				)
			}
		}
		alike("POST /hubs", func(hub string) (harness.Answer, error) {
			return client.Do(
				http.MethodPost, "/hubs", map[string]string{"serial": hub, "site_id": client.Site},
			)
		})
	})
}
