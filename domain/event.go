package domain

import (
	"encoding/json"
	"time"
)

// Event is a fact of the directory, in the past tense. Events are kept for ever: every later
// version of the code must read every event ever written, so a type's data only ever gains optional
// fields, and a change of meaning is a new V.
type Event struct {
	// ID is a ULID, unique over the installation.
	ID string `json:"id"`
	// Type is one of the Type… constants.
	Type string `json:"type"`
	// V is the version of the type's data, from 1.
	V int `json:"v"`
	// At is when it was decided, by the cloud's clock.
	At time.Time `json:"at"`
	// Actor is who caused it.
	Actor Actor `json:"actor"`
	// RequestID is the ULID of the request that caused it, or empty.
	RequestID string `json:"request_id,omitempty"`
	// Data is the type's own structure, such as SiteCreated.
	Data json.RawMessage `json:"data"`
}

// Actor is who caused an event.
type Actor struct {
	// Kind is one of the Actor… constants.
	Kind string `json:"kind"`
	// ID names the actor within its kind: a key id, a member id, a hub id; empty for the operator
	// and the service itself.
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

// Fact is the data of an event: one of the structures of facts.go.
type Fact interface {
	// EventType is the type under which the fact is recorded.
	EventType() string
}

// Origin is what a command brings beside its content: when, who, and in which request. Decide
// functions copy it into the events.
type Origin struct {
	At        time.Time
	Actor     Actor
	RequestID string
}
