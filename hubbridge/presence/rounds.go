package presence

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

// rounds compares the broker's lists with the view. It belongs to the goroutine of Watcher.Run.
type rounds struct {
	*Watcher
	subs    []*nats.Subscription
	dropped int
	// open holds the rounds under way by the token of their inbox.
	open   map[string]*round
	tokens uint64
	// due holds the single hubs to compare, ending the connections that are known to be gone
	// without the broker's word.
	due    map[domain.HubID]time.Time
	ending map[domain.HubID]ending
	// last is when a comparison of all hubs began.
	last time.Time
}

// round is one comparison: of all hubs of the shard, or of one.
type round struct {
	hub     domain.HubID // empty for all
	began   time.Time
	heard   time.Time
	servers map[string]bool
	// seen holds the connections that a server listed.
	seen map[listed]bool
	// asked is the connection that is asked for by itself, if this is such a question rather than a
	// list.
	asked *domain.Connection
}

// ending is a connection that is observed to have ended at a time, unless its end was heard by
// then.
type ending struct {
	connection domain.Connection
	at         time.Time
}

type listed struct {
	hub    domain.HubID
	server string
	cid    uint64
}

func (r *rounds) schedule(c check) {
	if due, ok := r.due[c.hub]; !ok || c.due.Before(due) {
		r.due[c.hub] = c.due
	}
}

// look starts what is due and ends what has heard everything that it is going to hear.
func (r *rounds) look(now time.Time) {
	for hub, due := range r.due {
		if !now.Before(due) {
			delete(r.due, hub)
			r.start(hub, now)
		}
	}
	if lost := r.lost(); lost || now.Sub(r.last) >= compareEvery {
		if lost {
			r.view.metrics.overruns.Inc()
			r.log.Warn(
				"the broker's events came too fast, some were dropped; comparing with its list",
				"account", r.account,
			)
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
		if now.Sub(round.began) > roundLimit || round.asked == nil && now.Sub(round.heard) > quiet {
			delete(r.open, token)
			r.finish(round)
		}
	}
}

// pause is how long it takes until look has something to do.
func (r *rounds) pause() time.Duration {
	if len(r.open)+len(r.due)+len(r.ending) > 0 {
		return busyTick
	}
	return idleTick
}

// lost says whether messages of the broker were dropped since it was last asked.
func (r *rounds) lost() bool {
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

// start asks all servers for the connections of the shard, or of one hub.
func (r *rounds) start(hub domain.HubID, now time.Time) {
	if hub == "" {
		r.view.metrics.comparisons.Inc()
		r.last = now
	}
	r.ask(
		pingList,
		listQuery{MQTT: string(hub)},
		&round{
			hub:     hub,
			began:   now,
			heard:   now,
			servers: map[string]bool{},
			seen:    map[listed]bool{},
		},
	)
}

// askFor asks one server for one connection.
func (r *rounds) askFor(hub domain.HubID, c domain.Connection) {
	now := time.Now()
	r.ask(
		serverList(c.Server), listQuery{CID: c.CID},
		&round{hub: hub, began: now, heard: now, asked: &c},
	)
}

func (r *rounds) ask(subject string, query listQuery, round *round) {
	r.tokens++
	token := strconv.FormatUint(r.tokens, 36)
	r.open[token] = round
	r.send(subject, token, query)
}

func (r *rounds) send(subject, token string, query listQuery) {
	query.Account, query.Sort, query.Limit = string(r.account), "cid", pageSize
	payload, err := json.Marshal(query)
	if err == nil {
		err = r.sys.PublishRequest(subject, r.inbox+"."+token, payload)
	}
	if err != nil {
		r.log.Warn("the broker's list cannot be asked for", "account", r.account, "error", err)
	}
}

// answer takes what a server answers.
func (r *rounds) answer(token string, msg *nats.Msg, now time.Time) {
	round := r.open[token]
	if round == nil {
		return
	}
	if msg.Header.Get("Status") == "503" { // nobody has subscribed: the server is gone
		if round.asked != nil {
			delete(r.open, token)
			r.gone(*round.asked)
		}
		return
	}
	var page listPage
	if err := json.Unmarshal(msg.Data, &page); err != nil || page.Data == nil {
		r.log.Warn("the broker's list cannot be read", "account", r.account, "error", err)
		return
	}
	round.heard = now
	alive := false
	for _, c := range page.Data.Connections {
		hub, ok := domain.ParseHubID(c.MQTT)
		if !ok || !r.mine(hub) {
			continue
		}
		connection := domain.Connection{Server: page.Server.ID, CID: c.CID, Start: c.Start}
		if round.asked != nil {
			alive = alive || hub == round.hub && Same(connection, *round.asked)
			continue
		}
		round.seen[listed{hub, connection.Server, connection.CID}] = true
		if known, _ := r.view.Get(hub); !known.Online || !Same(known.Connection, connection) {
			r.observe(hub, Observation{Connection: connection, IP: c.IP})
		}
	}
	if round.asked != nil {
		delete(r.open, token)
		if !alive {
			r.ending[round.hub] = ending{*round.asked, now.Add(grace)}
		}
		return
	}
	round.servers[page.Server.ID] = true
	if next := page.Data.Offset + pageSize; round.hub == "" && next < page.Data.Total {
		r.send(serverList(page.Server.ID), token, listQuery{Offset: next})
	}
}

// finish asks for each connection that makes a hub online and was not listed. A page may miss a
// connection that was there all the time, when others ended between two pages, so absence proves
// nothing by itself. Of a server that did not answer at all one connection is asked for: either it
// still answers to that, or it is gone with all its connections.
func (r *rounds) finish(round *round) {
	if round.asked != nil {
		return // its server answers nothing, and may only be slow: the next comparison asks again
	}
	silent := map[string]bool{}
	for hub, c := range r.view.online(func(hub domain.HubID) bool { return round.hub == hub || round.hub == "" && r.mine(hub) }) {
		if round.seen[listed{hub, c.Server, c.CID}] || silent[c.Server] {
			continue
		}
		if !round.servers[c.Server] {
			silent[c.Server] = true
		}
		r.askFor(hub, c)
	}
}

// gone tells the end of every connection to the server that c was to.
func (r *rounds) gone(c domain.Connection) {
	for hub, known := range r.view.online(r.mine) {
		if known.Server == c.Server {
			r.observe(hub, Observation{Connection: known, Ended: true})
		}
	}
}
