package presence

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// comparer compares the broker's lists of connections with the view. Only the goroutine of
// Watcher.Run uses it.
type comparer struct {
	*Watcher
	subs    []*nats.Subscription
	dropped int
	// queries has the queries without a final answer, by the token of their inbox.
	queries map[string]*query
	tokens  uint64
	// requested has the single hubs to compare, and when.
	requested map[domain.HubID]time.Time
	// gone has the connections that no server has any more, but whose end the broker has not
	// reported.
	gone map[domain.HubID]goneConnection
	// again has the connections that a server lists although their end is recorded, and when they
	// were found on a list.
	again map[domain.HubID]goneConnection
	// missing has the servers of a cluster that cannot be reached.
	missing map[string]missingServer
	// last is when the last comparison of all hubs began, and next when the next one is due at the
	// latest; zero for no such time.
	last, next time.Time
}

// query asks servers for the connections of all hubs of the shard or of one hub, or one server
// whether it has a connection.
type query struct {
	hub        domain.HubID // empty for all
	began      time.Time
	lastAnswer time.Time
	// servers has the servers that answered, listed the connections on their lists.
	servers map[string]bool
	listed  map[listed]bool
	// lookup is the connection that the query looks up; nil for a query that lists connections.
	// replaced reports that the hub has another connection.
	lookup   *domain.Connection
	replaced bool
}

// goneConnection is a connection that is gone, or seems to be. In comparer.gone it is observed to
// have ended at the time at, unless the broker reports its end before.
type goneConnection struct {
	connection domain.Connection
	at         time.Time
}

// missingServer is a server that cannot be reached since a time. It was last asked for a hub's
// connection at the time asked.
type missingServer struct {
	since, asked time.Time
	hub          domain.HubID
	connection   domain.Connection
}

// listed is a connection on a server's list.
type listed struct {
	hub    domain.HubID
	server string
	cid    uint64
}

// request notes a hub to compare, at the earliest time requested.
func (c *comparer) request(r checkRequest) {
	if at, ok := c.requested[r.hub]; !ok || r.at.Before(at) {
		c.requested[r.hub] = r.at
	}
}

// tick starts the comparisons that are due, observes the ends whose grace is over, and finishes the
// queries that expect no more answers.
func (c *comparer) tick(now time.Time) {
	for hub, at := range c.requested {
		if !now.Before(at) {
			delete(c.requested, hub)
			c.compare(hub, now)
		}
	}
	every := compareEvery
	if now.Sub(c.changed()) < unrestFor {
		every = unrestEvery
	}
	due := now.Sub(c.last) >= every || !c.next.IsZero() && !now.Before(c.next)
	if dropped := c.countDropped(); dropped || due {
		if dropped {
			c.view.metrics.overruns.Inc()
			c.logger.Warn("connection events dropped", "account", c.account)
		}
		c.compare("", now)
	}
	for hub, gone := range c.gone {
		if now.Before(gone.at) {
			continue
		}
		delete(c.gone, hub)
		if known, _ := c.view.Get(hub); known.Online && known.Connection.Same(gone.connection) {
			c.observe(hub, Observation{Connection: gone.connection, Ended: true})
		}
	}
	for server, m := range c.missing {
		if now.Sub(m.asked) >= unrestEvery {
			m.asked = now
			c.missing[server] = m
			c.lookUp(m.hub, m.connection, false)
		}
	}
	for token, q := range c.queries {
		if now.Sub(q.began) > queryLimit || q.lookup == nil && now.Sub(q.lastAnswer) > queryQuiet {
			delete(c.queries, token)
			c.finish(q)
		}
	}
}

// interval returns the time until the next tick.
func (c *comparer) interval() time.Duration {
	if len(c.queries)+len(c.requested)+len(c.gone) > 0 {
		return busyTick
	}
	return idleTick
}

// countDropped reports whether messages of the broker were dropped since the last call.
func (c *comparer) countDropped() bool {
	total := 0
	for _, sub := range c.subs {
		if n, err := sub.Dropped(); err == nil {
			total += n
		}
	}
	grown := total > c.dropped
	c.dropped = total
	return grown
}

// compare asks all servers for the connections of one hub; of all hubs of the shard when hub is "".
func (c *comparer) compare(hub domain.HubID, now time.Time) {
	if hub == "" {
		c.view.metrics.comparisons.Inc()
		c.last, c.next = now, time.Time{}
		maps.DeleteFunc(c.again, func(_ domain.HubID, first goneConnection) bool {
			return now.Sub(first.at) > compareEvery
		})
	}
	c.ask(
		pingList, listRequest{MQTT: string(hub)},
		&query{
			hub: hub, began: now, lastAnswer: now,
			servers: map[string]bool{}, listed: map[listed]bool{},
		},
	)
}

// lookUp asks the server of a connection whether the connection exists. replaced reports that the
// hub has another one.
func (c *comparer) lookUp(hub domain.HubID, connection domain.Connection, replaced bool) {
	now := time.Now()
	c.ask(
		serverList(connection.Server), listRequest{CID: connection.CID},
		&query{
			hub: hub, began: now, lastAnswer: now, lookup: &connection, replaced: replaced,
		},
	)
}

// ask registers a query and sends its first request.
func (c *comparer) ask(subject string, request listRequest, q *query) {
	c.tokens++
	token := strconv.FormatUint(c.tokens, 36)
	c.queries[token] = q
	c.send(subject, token, request)
}

// send sends a request of the query with the token.
func (c *comparer) send(subject, token string, request listRequest) {
	request.Account, request.Sort, request.Limit = string(c.account), "cid", pageSize
	payload, err := json.Marshal(request)
	if err == nil {
		err = c.sys.PublishRequest(subject, c.inbox+"."+token, payload)
	}
	if err != nil {
		c.logger.Warn("connection list not requested", "account", c.account, "error", err)
	}
}

// handleAnswer handles a server's answer to the query with the token.
func (c *comparer) handleAnswer(token string, msg *nats.Msg, now time.Time) {
	q := c.queries[token]
	if q == nil {
		return
	}
	if streams.NoResponders(msg) { // no such server
		if q.lookup != nil {
			delete(c.queries, token)
			c.handleMissing(q, now)
		}
		return
	}
	var page listPage
	if err := json.Unmarshal(msg.Data, &page); err != nil || page.Data == nil {
		c.logger.Warn("connection list unreadable", "account", c.account, "error", err)
		return
	}
	delete(c.missing, page.Server.ID)
	if q.lookup != nil {
		delete(c.queries, token)
		c.handleLookup(q, page, now)
		return
	}
	q.lastAnswer = now
	c.handlePage(q, page, now)
	if next := page.Data.Offset + pageSize; q.hub == "" && next < page.Data.Total {
		c.send(serverList(page.Server.ID), token, listRequest{Offset: next})
	}
}

// handleLookup notes the connection of the query as gone unless the server has it.
func (c *comparer) handleLookup(q *query, page listPage, now time.Time) {
	for _, l := range page.Data.Connections {
		connection := domain.Connection{Server: page.Server.ID, CID: l.CID}
		hub, ok := domain.ParseHubID(l.MQTT)
		if ok && hub == q.hub && connection.Same(*q.lookup) {
			return
		}
	}
	c.gone[q.hub] = goneConnection{*q.lookup, now.Add(endGrace)}
}

// handleMissing handles that the server of a looked up connection cannot be reached: it has ended,
// or the servers that answer cannot reach it. Its connections count as ended once that has lasted;
// a connection that the hub has replaced, and connections of a broker that is one server, at once.
func (c *comparer) handleMissing(q *query, now time.Time) {
	server := q.lookup.Server
	m, known := c.missing[server]
	switch {
	case q.replaced:
		c.observe(q.hub, serverEnded(*q.lookup))
	case known && now.Sub(m.since) >= missingFor || streams.IsSingle(c.sys):
		delete(c.missing, server)
		c.serverGone(server)
	case !known:
		c.missing[server] = missingServer{now, now, q.hub, *q.lookup}
	}
}

// handlePage observes the connections on a server's list that the view does not have.
func (c *comparer) handlePage(q *query, page listPage, now time.Time) {
	for _, l := range page.Data.Connections {
		hub, ok := domain.ParseHubID(l.MQTT)
		if !ok || !c.inShard(hub) {
			continue
		}
		connection := domain.Connection{Server: page.Server.ID, CID: l.CID, Start: l.Start}
		q.listed[listed{hub, connection.Server, connection.CID}] = true
		known, _ := c.view.Get(hub)
		same := known.Connection.Same(connection)
		if same && (known.Online || !c.isOpen(q, hub, connection, now)) {
			continue
		}
		c.observe(hub, Observation{Connection: connection, IP: l.IP, Open: same})
	}
	q.servers[page.Server.ID] = true
}

// isOpen reports whether a connection on a list is open although its end is recorded. The first
// such list brings the next comparison forward.
func (c *comparer) isOpen(
	q *query, hub domain.HubID, connection domain.Connection, now time.Time,
) bool {
	first := c.again[hub]
	if first.connection.Same(connection) && q.began.Sub(first.at) >= listedTwice {
		delete(c.again, hub)
		return true
	}
	if !first.connection.Same(connection) {
		c.again[hub] = goneConnection{connection, now}
		c.next = now.Add(listedTwice)
	}
	return false
}

// finish looks up each connection of an online hub that is on no server's list. The connection may
// still exist: when other connections end between two pages of a list, the second page skips some.
// For a server that sent no list, finish looks up only one connection: either the server answers,
// or it is gone with all its connections.
func (c *comparer) finish(q *query) {
	if q.lookup != nil {
		return // the server may be slow: the next comparison asks again
	}
	silent := map[string]bool{}
	compared := func(hub domain.HubID) bool {
		return q.hub == hub || q.hub == "" && c.inShard(hub)
	}
	for hub, known := range c.view.onlineConnections(compared) {
		if q.listed[listed{hub, known.Server, known.CID}] || silent[known.Server] {
			continue
		}
		if !q.servers[known.Server] {
			silent[known.Server] = true
		}
		c.lookUp(hub, known, q.hub == hub && len(q.listed) > 0)
	}
}

// serverGone observes the end of every connection to a server that no longer exists.
func (c *comparer) serverGone(server string) {
	for hub, known := range c.view.onlineConnections(c.inShard) {
		if known.Server == server {
			c.observe(hub, serverEnded(known))
		}
	}
}

// serverEnded returns that a connection has ended with its server, which could not report it.
func serverEnded(connection domain.Connection) Observation {
	reason := domain.ReasonServerShutdown
	return Observation{Connection: connection, Ended: true, Reason: &reason}
}
