package presence

import (
	"slices"
	"time"

	"hubcloud/domain"
)

// reasonTakeover is the broker's reason for ending a connection because another one has the same
// client id.
const reasonTakeover = "duplicate client id"

const (
	// shortLife is how long a held connection that has ended is remembered: the end of the one that
	// it took over is reported within moments.
	shortLife = 2 * time.Second
	// maxHeld bounds the held connections of a hub. The broker lets a hub take over once a second;
	// the list of connections repairs the rest.
	maxHeld = 8
)

// Observation is a fact about one connection of a hub.
type Observation struct {
	Connection domain.Connection
	// Ended says whether the connection has ended; otherwise it has begun.
	Ended bool
	// IP is where it comes from, if it has begun and the broker said so.
	IP string
	// Reason is the broker's word for why it ended, in lower case; nil when it gave none.
	Reason *string
}

// Held is a connection that has begun while another one was there.
type Held struct {
	connection domain.Connection
	ip         string
	// endedAt is when it was heard to have ended as well; zero while it lasts.
	endedAt time.Time
	reason  *string
}

// Transition is a change of a hub's status, to be told.
type Transition struct {
	Online     bool
	Connection domain.Connection
	// IP goes with Online, Reason with its opposite.
	IP     string
	Reason *string
}

// Step takes what is told of a hub and the connections that are held, and gives what an observation
// changes: the transitions to tell, in order, and what is held from then on. It changes none of its
// inputs.
func Step(told domain.Presence, held []Held, o Observation, now time.Time) ([]Transition, []Held) {
	held = slices.DeleteFunc(
		slices.Clone(held),
		func(h Held) bool { return !h.endedAt.IsZero() && now.Sub(h.endedAt) > shortLife },
	)
	is := func(h Held) bool { return Same(h.connection, o.Connection) }
	at := slices.IndexFunc(held, is)
	switch {
	case !o.Ended && Same(o.Connection, told.Connection):
		return nil, held // told already, or over already: no connection comes twice
	case !o.Ended && !told.Online:
		return []Transition{{Online: true, Connection: o.Connection, IP: o.IP}}, nil
	case !o.Ended:
		if at < 0 && len(held) < maxHeld {
			held = append(held, Held{connection: o.Connection, ip: o.IP})
		}
		return nil, held
	case told.Online && Same(o.Connection, told.Connection):
		return succession(Transition{Connection: o.Connection, Reason: o.Reason}, held)
	case at >= 0 && o.Reason != nil && *o.Reason == reasonTakeover:
		// it never took over, or was itself taken over at once
		return nil, slices.Delete(held, at, at+1)
	case at >= 0:
		held[at].endedAt, held[at].reason = now, o.Reason
		return nil, held
	default:
		return nil, held
	}
}

// succession tells the end of the connection that made the hub online, and of the held ones those
// that came and went since, and the first that lasts.
func succession(end Transition, held []Held) ([]Transition, []Held) {
	transitions := []Transition{end}
	for i, h := range held {
		transitions = append(
			transitions, Transition{Online: true, Connection: h.connection, IP: h.ip},
		)
		if h.endedAt.IsZero() {
			return transitions, held[i+1:]
		}
		transitions = append(transitions, Transition{Connection: h.connection, Reason: h.reason})
	}
	return transitions, nil
}

// Same says whether a and b are one connection. A server's id is new each time it starts, and its
// connection ids are not used twice.
func Same(a, b domain.Connection) bool { return a.Server == b.Server && a.CID == b.CID }

// After gives the presence of a hub after a transition at a time. What the hub said of itself
// stays.
func After(p domain.Presence, t Transition, at time.Time) domain.Presence {
	p.Online, p.Since, p.Connection, p.Reason = t.Online, at, t.Connection, t.Reason
	if t.Online {
		p.PublicIP = t.IP
	}
	return p
}
