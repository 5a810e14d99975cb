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
	// endedFor is how long Step remembers a pending connection that has ended: the end of the
	// connection that it took over follows within moments.
	endedFor = 2 * time.Second
	// maxPending bounds the pending connections of a hub. The broker allows a hub one takeover a
	// second; a comparison with the broker's list finds those beyond the bound.
	maxPending = 8
)

// Observation is a fact about one connection of a hub.
type Observation struct {
	Connection domain.Connection
	// Ended reports whether the connection has ended; otherwise it has begun.
	Ended bool
	// Open reports that the connection is open although its end was observed: its server could not
	// be reached for a while.
	Open bool
	// IP is the hub's address, when the connection has begun and the broker reported the address.
	IP string
	// Reason is the broker's reason for the end, in lower case; nil when the broker gave none.
	Reason *string
}

// Pending is a connection of a hub that began while another one was recorded as online.
type Pending struct {
	connection domain.Connection
	ip         string
	// endedAt is when the end of the connection was observed; zero while it lasts.
	endedAt time.Time
	reason  *string
}

// Transition is a change of a hub's status that must be recorded.
type Transition struct {
	Online     bool
	Connection domain.Connection
	// IP is the hub's address, when Online.
	IP string
	// Reason is the reason for the end, when not Online; nil when it is not known.
	Reason *string
}

// Step returns the transitions, in order, that follow from an observation at the time now, and the
// connections that are pending after it. recorded is the presence of the hub as recorded so far;
// pending is what the last Step returned. Step changes none of its arguments.
func Step(
	recorded domain.Presence, pending []Pending, o Observation, now time.Time,
) ([]Transition, []Pending) {
	pending = slices.DeleteFunc(
		slices.Clone(pending),
		func(p Pending) bool { return !p.endedAt.IsZero() && now.Sub(p.endedAt) > endedFor },
	)
	at := slices.IndexFunc(pending, func(p Pending) bool { return p.connection.Same(o.Connection) })
	switch {
	case !o.Ended && o.Connection.Same(recorded.Connection) && (recorded.Online || !o.Open):
		return nil, pending // recorded, or ended already: an event may be late
	case !o.Ended && !recorded.Online:
		return []Transition{{Online: true, Connection: o.Connection, IP: o.IP}}, nil
	case !o.Ended:
		if at < 0 && len(pending) < maxPending {
			pending = append(pending, Pending{connection: o.Connection, ip: o.IP})
		}
		return nil, pending
	case recorded.Online && o.Connection.Same(recorded.Connection):
		return succeed(Transition{Connection: o.Connection, Reason: o.Reason}, pending)
	case at >= 0 && o.Reason != nil && *o.Reason == reasonTakeover:
		// The pending connection never took over, or was itself taken over at once.
		return nil, slices.Delete(pending, at, at+1)
	case at >= 0:
		pending[at].endedAt, pending[at].reason = now, o.Reason
		return nil, pending
	default:
		return nil, pending
	}
}

// succeed returns the transitions that follow the end of the recorded connection: end itself, the
// beginning and end of each pending connection that has ended too, and the beginning of the first
// one that lasts. It returns the remaining connections as pending.
func succeed(end Transition, pending []Pending) ([]Transition, []Pending) {
	transitions := []Transition{end}
	for i, p := range pending {
		transitions = append(
			transitions, Transition{Online: true, Connection: p.connection, IP: p.ip},
		)
		if p.endedAt.IsZero() {
			return transitions, pending[i+1:]
		}
		transitions = append(transitions, Transition{Connection: p.connection, Reason: p.reason})
	}
	return transitions, nil
}

// Apply returns the presence p after the transition, which happened at the given time. It keeps
// firmware and network, which the hub reports itself.
func (t Transition) Apply(p domain.Presence, at time.Time) domain.Presence {
	p.Online, p.Since, p.Connection, p.Reason = t.Online, at, t.Connection, t.Reason
	if t.Online {
		p.PublicIP = t.IP
	}
	return p
}
