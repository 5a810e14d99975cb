package operators

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/population"
)

// crowd is clients that read and write without pause. Each has an organization of its own and
// therefore knows its content.
type crowd struct {
	t       *testing.T
	clients []*orgClient
	stop    chan struct{}
	ended   chan struct{}
}

// orgClient is the only writer of its organization.
type orgClient struct {
	t    *testing.T
	api  *harness.Client
	also *harness.Client // another replica, or the same service
	org  population.Org
	// reads and writes count successful requests. slowest is the longest request.
	reads, writes atomic.Int64
	slowest       atomic.Int64
	serial        int
}

// startCrowd runs clients against one service, or against two in turn, until close is called.
func startCrowd(t *testing.T, orgs []population.Org, services ...*harness.Service) *crowd {
	t.Helper()
	c := &crowd{t: t, stop: make(chan struct{}), ended: make(chan struct{})}
	running := make(chan struct{}, len(orgs))
	for _, org := range orgs {
		client := &orgClient{t: t, org: org, api: harness.NewClient(t, services[0].Base(), org.Key)}
		client.also = client.api
		if len(services) > 1 {
			client.also = harness.NewClient(t, services[1].Base(), org.Key)
		}
		c.clients = append(c.clients, client)
		go func() {
			defer func() { running <- struct{}{} }()
			for n := 0; ; n++ {
				select {
				case <-c.stop:
					return
				default:
				}
				if !client.work(n) {
					return
				}
			}
		}()
	}
	go func() {
		defer close(c.ended)
		for range orgs {
			<-running
		}
	}()
	t.Cleanup(c.close)
	return c
}

// busy waits until every client has made so many more requests.
func (c *crowd) busy(requests int64) {
	c.t.Helper()
	before := make([]int64, len(c.clients))
	for i, client := range c.clients {
		before[i] = client.reads.Load() + client.writes.Load()
	}
	streamstest.Eventually(c.t, fmt.Sprintf("every client has done %d more requests", requests),
		func() bool {
			for i, client := range c.clients {
				if client.reads.Load()+client.writes.Load() < before[i]+requests && !c.t.Failed() {
					return false
				}
			}
			return true
		},
	)
}

// close stops the clients and waits for them. It may be called twice.
func (c *crowd) close() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	<-c.ended
}

// report returns a summary of the requests.
func (c *crowd) report() string {
	var reads, writes, slowest int64
	for _, client := range c.clients {
		reads, writes, slowest = reads+client.reads.Load(), writes+client.writes.Load(), max(
			slowest, client.slowest.Load(),
		)
	}
	return fmt.Sprintf(
		"%d clients made %d reads and %d writes, of which none failed; the slowest took %s",
		len(c.clients), reads, writes, time.Duration(slowest).Round(time.Millisecond),
	)
}

// work makes a change, reads it back, and sometimes reads everything. It returns false after a
// failure, since later checks would fail for the same reason.
func (c *orgClient) work(n int) bool {
	switch n % 10 {
	case 0:
		return c.newSite() && c.readSites()
	case 1, 6:
		return c.renameSite(n)
	case 4, 8:
		return c.moveHub(n) && c.readHubs()
	case 5:
		return c.invite()
	default:
		return c.renameHub(n)
	}
}

// ask makes a request, checks its status and decodes its answer.
func (c *orgClient) ask(
	api *harness.Client, method, path string, body any, status int, into any,
) bool {
	began := time.Now()
	answer, err := api.Do(method, path, body)
	if took := int64(time.Since(began)); took > c.slowest.Load() {
		c.slowest.Store(took)
	}
	if err != nil || answer.Status != status {
		c.t.Errorf(
			"%s: %s %s: got status %d, %s, %v, after %s", c.org.Name, method, path, answer.Status,
			answer.Body, err, time.Since(began),
		)
		return false
	}
	if into != nil {
		if err := json.Unmarshal(answer.Body, into); err != nil {
			c.t.Errorf("%s: %s %s: %v in %s", c.org.Name, method, path, err, answer.Body)
			return false
		}
	}
	if method == http.MethodGet {
		c.reads.Add(1)
	} else {
		c.writes.Add(1)
	}
	return true
}

func (c *orgClient) name(what string) string {
	c.serial++
	return fmt.Sprintf("%s %d of the client", what, c.serial)
}

func (c *orgClient) newSite() bool {
	var made struct{ ID string }
	site := population.Site{Name: c.name("Site")}
	if !c.ask(
		c.api, http.MethodPost, "/sites", map[string]string{"name": site.Name}, http.StatusCreated,
		&made,
	) {
		return false
	}
	site.ID = made.ID
	c.org.Sites = append(c.org.Sites, site)
	return c.readSite(site)
}

func (c *orgClient) renameSite(n int) bool {
	site := &c.org.Sites[n%len(c.org.Sites)]
	site.Name = c.name("Renamed site")
	return c.ask(
		c.api, http.MethodPatch, "/sites/"+site.ID, map[string]string{"name": site.Name},
		http.StatusOK, nil,
	) &&
		c.readSite(*site)
}

// readSite reads a changed site, from the other service if there are two.
func (c *orgClient) readSite(want population.Site) bool {
	var got population.Site
	if !c.ask(c.also, http.MethodGet, "/sites/"+want.ID, nil, http.StatusOK, &got) {
		return false
	}
	if got != want {
		c.t.Errorf("%s: site got %+v, want %+v", c.org.Name, got, want)
		return false
	}
	return true
}

func (c *orgClient) renameHub(n int) bool {
	if len(c.org.Hubs) == 0 {
		return true
	}
	hub := &c.org.Hubs[n%len(c.org.Hubs)]
	if hub.Name = nil; n%3 != 0 {
		name := c.name("Hub")
		hub.Name = &name
	}
	return c.ask(
		c.api, http.MethodPatch, "/hubs/"+hub.ID, map[string]*string{"name": hub.Name},
		http.StatusOK, nil,
	) &&
		c.readHub(*hub)
}

func (c *orgClient) moveHub(n int) bool {
	if len(c.org.Hubs) == 0 {
		return true
	}
	hub := &c.org.Hubs[n%len(c.org.Hubs)]
	hub.SiteID = c.org.Sites[c.serial%len(c.org.Sites)].ID
	return c.ask(
		c.api, http.MethodPatch, "/hubs/"+hub.ID, map[string]string{"site_id": hub.SiteID},
		http.StatusOK, nil,
	) &&
		c.readHub(*hub)
}

// hubAnswer is a hub in an answer.
type hubAnswer struct {
	ID     string  `json:"id"`
	SiteID string  `json:"site_id"`
	Name   *string `json:"name"`
}

func (h hubAnswer) is(want population.Hub) bool {
	same := (h.Name == nil) == (want.Name == nil) && (h.Name == nil || *h.Name == *want.Name)
	return same && h.ID == want.ID && h.SiteID == want.SiteID
}

func (c *orgClient) readHub(want population.Hub) bool {
	var got hubAnswer
	if !c.ask(c.also, http.MethodGet, "/hubs/"+want.ID, nil, http.StatusOK, &got) {
		return false
	}
	if !got.is(want) {
		c.t.Errorf("%s: hub got %+v, want %+v", c.org.Name, got, want)
		return false
	}
	return true
}

// readSites reads the whole list of sites and checks their hub counts.
func (c *orgClient) readSites() bool {
	hubs := map[string]int{}
	for _, hub := range c.org.Hubs {
		hubs[hub.SiteID]++
	}
	var got []struct {
		population.Site
		HubCount int `json:"hub_count"`
	}
	if !readList(c, "/sites", &got) {
		return false
	}
	if len(got) != len(c.org.Sites) {
		c.t.Errorf("%s: got %d sites, want %d", c.org.Name, len(got), len(c.org.Sites))
		return false
	}
	for i, want := range c.org.Sites {
		if got[i].Site != want || got[i].HubCount != hubs[want.ID] {
			c.t.Errorf(
				"%s: site %d: got %+v, want %+v with %d hubs", c.org.Name, i, got[i], want,
				hubs[want.ID],
			)
			return false
		}
	}
	return true
}

// readHubs reads the whole list of hubs.
func (c *orgClient) readHubs() bool {
	var got []hubAnswer
	if !readList(c, "/hubs", &got) {
		return false
	}
	if len(got) != len(c.org.Hubs) {
		c.t.Errorf("%s: got %d hubs, want %d", c.org.Name, len(got), len(c.org.Hubs))
		return false
	}
	for i, want := range c.org.Hubs {
		if !got[i].is(want) {
			c.t.Errorf("%s: hub %d: got %+v, want %+v", c.org.Name, i, got[i], want)
			return false
		}
	}
	return true
}

// readList reads a list page by page.
func readList[E any](c *orgClient, path string, into *[]E) bool {
	after := ""
	for {
		var page struct {
			Data    []json.RawMessage `json:"data"`
			HasMore bool              `json:"has_more"`
		}
		if !c.ask(c.also, http.MethodGet, path+after, nil, http.StatusOK, &page) {
			return false
		}
		for _, raw := range page.Data {
			var entry E
			var id struct{ ID string }
			if json.Unmarshal(raw, &entry) != nil || json.Unmarshal(raw, &id) != nil {
				c.t.Errorf("%s: %s in %s", c.org.Name, raw, path)
				return false
			}
			*into = append(*into, entry)
			after = "?starting_after=" + id.ID
		}
		if !page.HasMore {
			return true
		}
	}
}

// invite invites a person, checks that the invitation is listed, revokes it, and checks that it is
// not.
func (c *orgClient) invite() bool {
	var made struct{ ID string }
	address := fmt.Sprintf("guest-%d@%s.example.com", c.serial, c.org.ID)
	c.serial++
	return c.ask(
		c.api, http.MethodPost, "/invitations", map[string]string{"email": address},
		http.StatusCreated, &made,
	) &&
		c.findsInvitation(made.ID, true) &&
		c.ask(c.api, http.MethodDelete, "/invitations/"+made.ID, nil, http.StatusNoContent, nil) &&
		c.findsInvitation(made.ID, false)
}

func (c *orgClient) findsInvitation(id string, want bool) bool {
	var all []struct{ ID string }
	if !readList(c, "/invitations", &all) {
		return false
	}
	found := false
	for _, invitation := range all {
		found = found || invitation.ID == id
	}
	if found != want {
		c.t.Errorf("%s: invitation %s listed: got %v, want %v", c.org.Name, id, found, want)
	}
	return found == want
}
