package domain

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is a stored event of the directory: a Fact with its id, time and cause. Events are stored
// forever, and every later version of the code must read every event ever written: a type's data
// only gains optional fields, and a change of meaning is a new V.
type Event struct {
	// ID is a ULID, unique over the installation.
	ID string `json:"id"`
	// Type is the EventType of its fact.
	Type string `json:"type"`
	// V is the version of the type's data, from 1.
	V int `json:"v"`
	// At is when the event was decided, by the cloud's clock.
	At time.Time `json:"at"`
	// Actor caused the event.
	Actor Actor `json:"actor"`
	// RequestID is the ULID of the request that caused the event, or empty.
	RequestID string `json:"request_id,omitempty"`
	// Address is the IP address that the request came from, or empty.
	Address string `json:"address,omitempty"`
	// Data is the type's own structure, such as SiteCreated.
	Data json.RawMessage `json:"data"`
}

// Actor is the cause of an event.
type Actor struct {
	// Kind is one of the Actor… constants.
	Kind string `json:"kind"`
	// ID identifies the actor within its kind: a key id, a member id, a hub id; empty for the
	// operator and the service itself.
	ID string `json:"id,omitempty"`
}

// The kinds of actor.
const (
	ActorKey      = "key"
	ActorMember   = "member"
	ActorHub      = "hub"
	ActorOperator = "operator"
	ActorService  = "service"
)

// Fact is the data of an event: one of the types in facts.go.
type Fact interface {
	// EventType returns the type of the events that record the fact.
	EventType() string
}

// Origin is the time, actor and request of a command, and the address that the request came from.
// Decide functions copy it into the events.
type Origin struct {
	At        time.Time
	Actor     Actor
	RequestID string
	Address   string
}

// Record returns the event of a fact. Its ID is empty; the directory log sets it. Times are
// truncated to microseconds, in UTC, so that a state folded from these events equals one folded
// from the stored ones.
func Record(o Origin, fact Fact) Event {
	data, err := json.Marshal(fact)
	if err != nil {
		// Facts contain only text, numbers and times, so this is a bug in this package.
		panic(fmt.Sprintf("domain: encode %s: %v", fact.EventType(), err))
	}
	return Event{
		Type:      fact.EventType(),
		V:         currentVersion,
		At:        wholeMicroseconds(o.At),
		Actor:     o.Actor,
		RequestID: o.RequestID,
		Address:   o.Address,
		Data:      data,
	}
}

func wholeMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
