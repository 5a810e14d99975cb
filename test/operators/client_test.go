package operators

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/population"
)

// crowd is a set of clients that read and write, with short pauses that leave the processors to the
// service. Each is the only writer of its organization and therefore knows what it must read.
type crowd struct {
	t       *testing.T
	clients []*orgClient
	stop    chan struct{}
	working sync.WaitGroup
}

// orgClient is the only writer of its organization.
type orgClient struct {
	t *testing.T
	// writeTo is the service that gets the changes, readFrom the one that is read: another
	// replica, or the same service.
	writeTo, readFrom *harness.Client
	// org is the content that reads must return.
	org population.Org
	// reads and writes count successful requests. slowest is the longest request.
	reads, writes atomic.Int64
	slowest       atomic.Int64
	serial        int // counts names and addresses
}

// startCrowd runs a client for each organization until close is called. The clients write to the
// first service, and read from the second if there are two.
func startCrowd(t *testing.T, orgs []population.Org, services ...*harness.Service) *crowd {
	t.Helper()
	c := &crowd{t: t, stop: make(chan struct{})}
	for _, org := range orgs {
		client := &orgClient{
			t: t, org: org, writeTo: harness.NewClient(t, services[0].Base(), org.Key),
		}
		client.readFrom = client.writeTo
		if len(services) > 1 {
			client.readFrom = harness.NewClient(t, services[1].Base(), org.Key)
		}
		c.clients = append(c.clients, client)
		c.working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-c.stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				if !client.work(n) {
					return
				}
			}
		})
	}
	t.Cleanup(c.close)
	return c
}

// await waits until every client has made the given number of further requests.
func (c *crowd) await(requests int64) {
	c.t.Helper()
	before := make([]int64, len(c.clients))
	for i, client := range c.clients {
		before[i] = client.reads.Load() + client.writes.Load()
	}
	streamstest.Eventually(c.t, fmt.Sprintf("every client has made %d more requests", requests),
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
	c.working.Wait()
}

// report returns a summary of the requests.
func (c *crowd) report() string {
	var reads, writes, slowest int64
	for _, client := range c.clients {
		reads += client.reads.Load()
		writes += client.writes.Load()
		slowest = max(slowest, client.slowest.Load())
	}
	return fmt.Sprintf(
		"%d clients made %d reads and %d writes; the slowest took %s",
		len(c.clients), reads, writes, time.Duration(slowest).Round(time.Millisecond),
	)
}

// work makes the n-th change and reads it back; some changes are followed by reads of whole lists.
// It reports whether all answers were as expected; after a failure, later checks would fail for the
// same reason.
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

// request makes a request, checks its status and decodes its answer into into, unless into is nil.
// It reports whether that succeeded. So do all methods below that return a bool.
func (c *orgClient) request(
	api *harness.Client, method, path string, body any, status int, into any,
) bool {
	began := time.Now()
	answer, err := api.Do(method, path, body)
	if took := int64(time.Since(began)); took > c.slowest.Load() {
		c.slowest.Store(took)
	}
	if err != nil || answer.Status != status {
		c.t.Errorf(
			"%s: %s %s: got status %d, %s, %v after %s, want status %d", c.org.Name, method, path,
			answer.Status, answer.Body, err, time.Since(began), status,
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

// name returns a new name.
func (c *orgClient) name(what string) string {
	c.serial++
	return fmt.Sprintf("%s %d of the client", what, c.serial)
}

func (c *orgClient) newSite() bool {
	var made struct{ ID string }
	site := population.Site{Name: c.name("Site")}
	if !c.request(
		c.writeTo, http.MethodPost, "/sites", map[string]string{"name": site.Name},
		http.StatusCreated, &made,
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
	return c.request(
		c.writeTo, http.MethodPatch, "/sites/"+site.ID, map[string]string{"name": site.Name},
		http.StatusOK, nil,
	) &&
		c.readSite(*site)
}

// readSite reads a site and compares it with want.
func (c *orgClient) readSite(want population.Site) bool {
	var got population.Site
	if !c.request(c.readFrom, http.MethodGet, "/sites/"+want.ID, nil, http.StatusOK, &got) {
		return false
	}
	if got != want {
		c.t.Errorf("%s: site: got %+v, want %+v", c.org.Name, got, want)
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
	return c.request(
		c.writeTo, http.MethodPatch, "/hubs/"+hub.ID, map[string]*string{"name": hub.Name},
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
	return c.request(
		c.writeTo, http.MethodPatch, "/hubs/"+hub.ID, map[string]string{"site_id": hub.SiteID},
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

// equals reports whether h is the hub want.
func (h hubAnswer) equals(want population.Hub) bool {
	same := (h.Name == nil) == (want.Name == nil) && (h.Name == nil || *h.Name == *want.Name)
	return same && h.ID == want.ID && h.SiteID == want.SiteID
}

func (c *orgClient) readHub(want population.Hub) bool {
	var got hubAnswer
	if !c.request(c.readFrom, http.MethodGet, "/hubs/"+want.ID, nil, http.StatusOK, &got) {
		return false
	}
	if !got.equals(want) {
		c.t.Errorf("%s: hub: got %+v, want %+v", c.org.Name, got, want)
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

// readHubs reads the whole list of hubs and compares it with the organization's.
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
		if !got[i].equals(want) {
			c.t.Errorf("%s: hub %d: got %+v, want %+v", c.org.Name, i, got[i], want)
			return false
		}
	}
	return true
}

// readList appends the items of all pages of a list to into.
func readList[E any](c *orgClient, path string, into *[]E) bool {
	after := ""
	for {
		var page struct {
			Data    []json.RawMessage `json:"data"`
			HasMore bool              `json:"has_more"`
		}
		if !c.request(c.readFrom, http.MethodGet, path+after, nil, http.StatusOK, &page) {
			return false
		}
		for _, raw := range page.Data {
			var entry E
			var id struct{ ID string }
			if json.Unmarshal(raw, &entry) != nil || json.Unmarshal(raw, &id) != nil {
				c.t.Errorf("%s: %s: got item %s, want an object with an id", c.org.Name, path, raw)
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
// listed no more.
func (c *orgClient) invite() bool {
	var made struct{ ID string }
	address := fmt.Sprintf("guest-%d@%s.example.com", c.serial, c.org.ID)
	c.serial++
	return c.request(
		c.writeTo, http.MethodPost, "/invitations", map[string]string{"email": address},
		http.StatusCreated, &made,
	) &&
		c.checkListed(made.ID, true) &&
		c.request(
			c.writeTo, http.MethodDelete, "/invitations/"+made.ID, nil, http.StatusNoContent, nil,
		) &&
		c.checkListed(made.ID, false)
}

// checkListed checks whether an invitation is listed.
func (c *orgClient) checkListed(id string, want bool) bool {
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
