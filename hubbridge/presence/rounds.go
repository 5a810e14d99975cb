package presence

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

// rounds compares the broker's lists with the view. Only the goroutine of Watcher.Run uses it.
type rounds struct {
	*Watcher
	subs    []*nats.Subscription
	dropped int
	// open has the running rounds by the token of their inbox.
	open   map[string]*round
	tokens uint64
	// due has the single hubs to compare, and when. ending has the connections that are gone while
	// the broker has not reported their end.
	due    map[domain.HubID]time.Time
	ending map[domain.HubID]ending
	// last is when the last comparison of all hubs began.
	last time.Time
}

// round is one comparison: of all hubs of the shard, or of one.
type round struct {
	hub        domain.HubID // empty for all
	began      time.Time
	lastAnswer time.Time
	// servers has the servers that answered, seen the connections that they listed.
	servers map[string]bool
	seen    map[listed]bool
	// lookup is the connection to look up, if the round looks up one connection instead of listing
	// them.
	lookup *domain.Connection
}

// ending is a connection that is observed to have ended at the time at, unless the broker reports
// its end before.
type ending struct {
	connection domain.Connection
	at         time.Time
}

// listed is a connection on a server's list.
type listed struct {
	hub    domain.HubID
	server string
	cid    uint64
}

// schedule notes a hub to compare, at the earliest time requested.
func (r *rounds) schedule(c check) {
	if due, ok := r.due[c.hub]; !ok || c.due.Before(due) {
		r.due[c.hub] = c.due
	}
}

// tick starts the comparisons that are due, observes the ends whose grace is over, and finishes the
// rounds that expect no more answers.
func (r *rounds) tick(now time.Time) {
	for hub, due := range r.due {
		if !now.Before(due) {
			delete(r.due, hub)
			r.start(hub, now)
		}
	}
	if dropped := r.countDropped(); dropped || now.Sub(r.last) >= compareEvery {
		if dropped {
			r.view.metrics.overruns.Inc()
			r.logger.Warn("connection events dropped", "account", r.account)
		}
		r.start("", now)
	}
	for hub, e := range r.ending {
		if now.Before(e.at) {
			continue
		}
		delete(r.ending, hub)
		if known, _ := r.view.Get(hub); known.Online && Same(known.Connection, e.connection) {
			r.observe(hub, Observation{Connection: e.connection, Ended: true})
		}
	}
	for token, round := range r.open {
		if now.Sub(round.began) > roundLimit ||
			round.lookup == nil && now.Sub(round.lastAnswer) > roundQuiet {
			delete(r.open, token)
			r.finish(round)
		}
	}
}

// interval returns the time until the next tick.
func (r *rounds) interval() time.Duration {
	if len(r.open)+len(r.due)+len(r.ending) > 0 {
		return busyTick
	}
	return idleTick
}

// countDropped reports whether messages of the broker were dropped since the last call.
func (r *rounds) countDropped() bool {
	total := 0
	for _, sub := range r.subs {
		if n, err := sub.Dropped(); err == nil {
			total += n
		}
	}
	grown := total > r.dropped
	r.dropped = total
	return grown
}

// start asks all servers for the connections of one hub; of all hubs of the shard when hub is "".
func (r *rounds) start(hub domain.HubID, now time.Time) {
	if hub == "" {
		r.view.metrics.comparisons.Inc()
		r.last = now
	}
	r.ask(
		pingList,
		listQuery{MQTT: string(hub)},
		&round{
			hub:        hub,
			began:      now,
			lastAnswer: now,
			servers:    map[string]bool{},
			seen:       map[listed]bool{},
		},
	)
}

// lookUp asks the server of a connection whether the connection exists.
func (r *rounds) lookUp(hub domain.HubID, c domain.Connection) {
	now := time.Now()
	r.ask(
		serverList(c.Server), listQuery{CID: c.CID},
		&round{hub: hub, began: now, lastAnswer: now, lookup: &c},
	)
}

// ask opens a round and sends its first query.
func (r *rounds) ask(subject string, query listQuery, round *round) {
	r.tokens++
	token := strconv.FormatUint(r.tokens, 36)
	r.open[token] = round
	r.send(subject, token, query)
}

// send sends a query of the round with the token.
func (r *rounds) send(subject, token string, query listQuery) {
	query.Account, query.Sort, query.Limit = string(r.account), "cid", pageSize
	payload, err := json.Marshal(query)
	if err == nil {
		err = r.sys.PublishRequest(subject, r.inbox+"."+token, payload)
	}
	if err != nil {
		r.logger.Warn("connection list not requested", "account", r.account, "error", err)
	}
}

// answer handles a server's answer to a query of the round with the token.
func (r *rounds) answer(token string, msg *nats.Msg, now time.Time) {
	round := r.open[token]
	if round == nil {
		return
	}
	if msg.Header.Get("Status") == "503" { // no such server: it is gone
		if round.lookup != nil {
			delete(r.open, token)
			r.serverGone(round.lookup.Server)
		}
		return
	}
	var page listPage
	if err := json.Unmarshal(msg.Data, &page); err != nil || page.Data == nil {
		r.logger.Warn("connection list unreadable", "account", r.account, "error", err)
		return
	}
	round.lastAnswer = now
	alive := false
	for _, c := range page.Data.Connections {
		hub, ok := domain.ParseHubID(c.MQTT)
		if !ok || !r.inShard(hub) {
			continue
		}
		connection := domain.Connection{Server: page.Server.ID, CID: c.CID, Start: c.Start}
		if round.lookup != nil {
			alive = alive || hub == round.hub && Same(connection, *round.lookup)
			continue
		}
		round.seen[listed{hub, connection.Server, connection.CID}] = true
		if known, _ := r.view.Get(hub); !known.Online || !Same(known.Connection, connection) {
			r.observe(hub, Observation{Connection: connection, IP: c.IP})
		}
	}
	if round.lookup != nil {
		delete(r.open, token)
		if !alive {
			r.ending[round.hub] = ending{*round.lookup, now.Add(endGrace)}
		}
		return
	}
	round.servers[page.Server.ID] = true
	if next := page.Data.Offset + pageSize; round.hub == "" && next < page.Data.Total {
		r.send(serverList(page.Server.ID), token, listQuery{Offset: next})
	}
}

// finish looks up each connection of an online hub that no server listed. A connection may be
// missing from the pages of a list although it lasts, when others ended between two pages. Of a
// server that did not answer, finish looks up one connection only: the server answers, or it is
// gone with all its connections.
func (r *rounds) finish(round *round) {
	if round.lookup != nil {
		return // the server may be slow: the next comparison asks again
	}
	silent := map[string]bool{}
	compared := func(hub domain.HubID) bool {
		return round.hub == hub || round.hub == "" && r.inShard(hub)
	}
	for hub, c := range r.view.online(compared) {
		if round.seen[listed{hub, c.Server, c.CID}] || silent[c.Server] {
			continue
		}
		if !round.servers[c.Server] {
			silent[c.Server] = true
		}
		r.lookUp(hub, c)
	}
}

// serverGone observes the end of every connection to a server that no longer exists.
func (r *rounds) serverGone(server string) {
	for hub, known := range r.view.online(r.inShard) {
		if known.Server == server {
			r.observe(hub, Observation{Connection: known, Ended: true})
		}
	}
}
