package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// traffic uses the service during outages: hubs send events and run commands, readers follow pages,
// long polls and streams, and clients create sites and send commands. Each changes to another
// replica when one fails, and records the answers.
type traffic struct {
	t       *testing.T
	clients []*harness.Client
	tenant  *harness.Tenant
	hubs    []*trafficHub
	readers []*trafficReader

	stop, stopReading chan struct{}
	working, reading  sync.WaitGroup
	mu                sync.Mutex
	sites             map[string]string // names of created sites, by id
	accepted          map[string][]int  // endpoints of accepted commands, by hub
	commands          int
	answers           map[string]int // count by request and answer
	wrong             []string       // answers that an outage does not allow
	slowest           time.Duration
	slowestWhat       string
}

// trafficHub is a hub that sends numbered events and runs commands.
type trafficHub struct {
	sender

	mu sync.Mutex
	// ran has the ids of the received commands by endpoint. Each command has another endpoint.
	ran map[int][]string
}

// trafficReader follows one hub's log from its start, by pages or by streams, or the organization's
// feed, filtered by the hub and from its beginning.
type trafficReader struct {
	hub, start, cursor, how string
	got                     []harness.Event
}

// path returns the path of the reader's pages or streams, with the query given.
func (f *trafficReader) path(what, query string) string {
	if strings.HasSuffix(f.how, "feed") {
		return "/events" + what + "?hub_id=" + f.hub + query
	}
	return "/hubs/" + f.hub + "/events" + what + "?" + strings.TrimPrefix(query, "&")
}

// newTraffic adds hubs and starts the traffic.
func newTraffic(
	t *testing.T, broker *natscluster.Cluster, service *harness.Service, hubs int,
	clients []*harness.Client, tenant *harness.Tenant,
) *traffic {
	t.Helper()
	r := &traffic{
		t: t, clients: clients, tenant: tenant, stop: make(chan struct{}),
		stopReading: make(chan struct{}),
		sites:       map[string]string{}, accepted: map[string][]int{}, answers: map[string]int{},
	}
	for i := range hubs {
		hub := adopted(t, service, tenant)
		hub.Disconnect()
		h := &trafficHub{ran: map[int][]string{}}
		turn := i % len(broker.MQTT)
		h.sender = sender{
			hub:     hub,
			pace:    250 * time.Millisecond,
			through: append(append([]string{}, broker.MQTT[turn:]...), broker.MQTT[:turn]...),
		}
		hub.OnRequest(h.respond)
		r.hubs = append(r.hubs, h)
		start := tenant.Head(hub.ID)
		for _, how := range []string{
			"pages", "long-polls", "stream", "pages of the feed", "stream of the feed",
		} {
			reader := &trafficReader{hub: hub.ID, start: start, cursor: start, how: how}
			if strings.HasSuffix(how, "feed") {
				reader.cursor = "" // the cursors of the feed are others
			}
			r.readers = append(r.readers, reader)
		}
	}
	for _, h := range r.hubs {
		r.working.Go(func() { h.run(r.stop) })
	}
	for i, reader := range r.readers {
		r.reading.Go(func() { r.follow(reader, i) })
	}
	for i := range clients {
		r.working.Go(func() { r.createSites(i) })
		r.working.Go(func() { r.command(i) })
	}
	return r
}

// respond runs a command.
func (h *trafficHub) respond(request harness.Request) harness.Response {
	if request.Method != "channels.command" {
		return harness.Response{
			Error: &harness.LinkError{Type: "not_found", Message: "no such method"},
		}
	}
	var command struct {
		CommandID string `json:"command_id"`
		Endpoint  int    `json:"endpoint"`
		Value     bool   `json:"value"`
	}
	request.DecodeParams(&command)
	h.mu.Lock()
	if !slices.Contains(h.ran[command.Endpoint], command.CommandID) {
		h.ran[command.Endpoint] = append(h.ran[command.Endpoint], command.CommandID)
	}
	h.mu.Unlock()
	return harness.Response{Result: map[string]any{"channel": map[string]any{
		"key": "lock", "endpoint": command.Endpoint, "kind": "lock", "unit": nil,
		"available": true, "status": "pending", "value": nil, "observed_at": nil,
		"desired":    command.Value,
		"desired_at": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
	}}}
}

// isClosed reports whether a channel is closed.
func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// pause waits for d or until stop is closed.
func pause(stop <-chan struct{}, d time.Duration) {
	select {
	case <-stop:
	case <-time.After(d):
	}
}

// request sends a request to one replica and records its answer. It reports whether the request
// succeeded. Outages must be answered as temporary: never with 500, nor with 410 for a valid
// cursor.
func (r *traffic) request(
	client int, what, method, path string, body any, header ...string,
) (harness.Answer, bool) {
	began := time.Now()
	answer, err := r.clients[client].Do(method, path, body, header...)
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.answers[what+" none"]++
		return answer, false
	}
	r.answers[what+" "+statusAndMessage(answer)]++
	if took > r.slowest {
		r.slowest, r.slowestWhat = took, fmt.Sprint(what, " ", answer.Status)
	}
	if answer.Status < 300 {
		return answer, true
	}
	if !isTemporary(what == "command", answer) {
		r.recordWrong(
			"replica %d: %s %s: got %d %s after %s", client, method, path, answer.Status,
			answer.Body, took.Round(time.Millisecond),
		)
	}
	return answer, false
}

// statusAndMessage returns an answer's status and, for an error, its message.
func statusAndMessage(answer harness.Answer) string {
	var body struct{ Error struct{ Message string } }
	if answer.Status < 300 || json.Unmarshal(answer.Body, &body) != nil {
		return fmt.Sprint(answer.Status)
	}
	return fmt.Sprint(answer.Status, " ", body.Error.Message)
}

// isTemporary reports whether an outage allows an answer. Failures of the service must be
// service_unavailable with Retry-After. Failures of the hub must be those of the contract: it is
// not connected, the request could not be sent to it, or it did not answer in time. A command
// that is repeated with its key runs once.
func isTemporary(command bool, answer harness.Answer) bool {
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal(answer.Body, &body) != nil {
		return false
	}
	switch kind := body.Error.Type; answer.Status {
	case http.StatusTooManyRequests:
		return kind == "rate_limited" && answer.Header.Get("Retry-After") != ""
	case http.StatusServiceUnavailable:
		return kind == "service_unavailable" && answer.Header.Get("Retry-After") != "" ||
			command && kind == "hub_offline"
	case http.StatusBadGateway:
		return command && kind == "hub_error" &&
			strings.HasPrefix(body.Error.Message, "the request could not be sent to the hub")
	case http.StatusGatewayTimeout:
		return command && kind == "hub_timeout"
	}
	return false
}

// recordWrong records a wrong answer, up to a limit. The caller must hold r.mu.
func (r *traffic) recordWrong(format string, arguments ...any) {
	if len(r.wrong) < 40 {
		r.wrong = append(
			r.wrong, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, arguments...),
		)
	}
}

// createSites creates sites at a replica. An unanswered request may or may not create its site.
func (r *traffic) createSites(client int) {
	for i := 0; !isClosed(r.stop); i++ {
		name := fmt.Sprintf("site %d of %d", i, client)
		body := map[string]string{"name": name}
		answer, ok := r.request(client, "create a site", http.MethodPost, "/sites", body)
		if ok {
			var site struct{ ID string }
			if json.Unmarshal(answer.Body, &site) == nil {
				r.mu.Lock()
				r.sites[site.ID] = name
				r.mu.Unlock()
			}
		}
		pause(r.stop, 300*time.Millisecond)
	}
}

// command sends commands to one hub after the other, each for another endpoint and with its own
// Idempotency-Key, and repeats each at one replica after the other until it is answered.
func (r *traffic) command(client int) {
	for n := 0; !isClosed(r.stop); n++ {
		hub := r.hubs[n%len(r.hubs)]
		r.mu.Lock()
		r.commands++
		number := r.commands
		r.mu.Unlock()
		path := "/hubs/" + hub.hub.ID + "/devices/1/commands"
		for try := 0; !isClosed(r.stop) && try < 20; try++ {
			_, ok := r.request(
				(client+try)%len(r.clients), "command", http.MethodPost, path,
				map[string]any{"key": "lock", "endpoint": number, "value": true}, "Idempotency-Key",
				fmt.Sprint("command ", number),
			)
			if ok {
				r.mu.Lock()
				r.accepted[hub.hub.ID] = append(r.accepted[hub.hub.ID], number)
				r.mu.Unlock()
				break
			}
			pause(r.stop, 500*time.Millisecond)
		}
		pause(r.stop, 300*time.Millisecond)
	}
}

// end stops the traffic and checks that nothing is lost, duplicated, out of order, or done twice.
func (r *traffic) end() {
	r.t.Helper()
	close(r.stop)
	r.working.Wait()
	for _, h := range r.hubs { // an offline hub's last events are stored
		awaitOffline(r.t, r.tenant, h.hub.ID)
	}
	close(r.stopReading)
	r.reading.Wait()
	for _, h := range r.hubs {
		r.checkLog(h)
		r.checkCommands(h)
	}
	r.checkSites()
	var lines []string
	for what, count := range r.answers {
		lines = append(lines, fmt.Sprintf("%s: %d", what, count))
	}
	slices.Sort(lines)
	r.t.Logf(
		"%d sites, %d commands; answers:\n  %s\nslowest: %s after %s", len(r.sites), r.commands,
		strings.Join(lines, "\n  "), r.slowestWhat, r.slowest.Round(time.Millisecond),
	)
	for _, w := range r.wrong {
		r.t.Error(w)
	}
}

// checkLog checks that acknowledged events are stored once and in order, identically at every
// replica, and that every reader got all of them.
func (r *traffic) checkLog(h *trafficHub) {
	r.t.Helper()
	for _, b := range h.backwards {
		r.t.Errorf("hub %s: acks went backwards within a connection: %s", h.hub.ID, b)
	}
	var first []harness.Event
	for i, client := range r.clients {
		stored := client.AllEvents(h.hub.ID, "")
		if last := numbersOf(r.t, h.hub.ID, stored); last < h.acked || h.acked == 0 {
			r.t.Errorf(
				"hub %s: acknowledged through %d, replica %d stored through %d", h.hub.ID,
				h.acked, i, last,
			)
		}
		if i == 0 {
			first = stored
			continue
		}
		same(r.t, fmt.Sprintf("%s at replica %d", h.hub.ID, i), stored, first)
	}
	for _, f := range r.readers {
		if f.hub == h.hub.ID {
			want := r.tenant.AllEvents(f.hub, f.start)
			same(r.t, f.hub+" by "+f.how, fromHead(f.got, want), want)
		}
	}
}

// checkCommands checks that every accepted command ran once.
func (r *traffic) checkCommands(h *trafficHub) {
	r.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, number := range r.accepted[h.hub.ID] {
		if len(h.ran[number]) == 0 {
			r.t.Errorf("hub %s: command %d was accepted but never sent", h.hub.ID, number)
		}
	}
	for number, ids := range h.ran {
		if len(ids) > 1 {
			r.t.Errorf(
				"hub %s: command %d ran more than once: %s", h.hub.ID, number,
				strings.Join(ids, " and "),
			)
		}
	}
}

// checkSites checks that every replica has every created site.
func (r *traffic) checkSites() {
	r.t.Helper()
	for i, client := range r.clients {
		found := map[string]string{}
		for after := ""; ; {
			var list struct {
				Data    []struct{ ID, Name string }
				HasMore bool `json:"has_more"`
			}
			client.Must(http.MethodGet, "/sites?limit=50"+after, nil, http.StatusOK).
				JSON(r.t, &list)
			for _, site := range list.Data {
				found[site.ID] = site.Name
				after = "&starting_after=" + site.ID
			}
			if !list.HasMore {
				break
			}
		}
		for id, name := range r.sites {
			if found[id] != name {
				r.t.Errorf("replica %d: site %s: got name %q, want %q", i, id, found[id], name)
			}
		}
	}
}
