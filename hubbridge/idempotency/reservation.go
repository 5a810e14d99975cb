package idempotency

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
)

// Reservation is what the bucket holds of an idempotency key. It is read by other versions of the
// service, within the window.
type Reservation struct {
	// ID is that of what is done under the key, for as long as the key stands for it: a ULID. Hubs
	// know commands by it.
	ID string `json:"command_id"`
	// Request is the fingerprint of the request.
	Request    string    `json:"request"`
	ReservedAt time.Time `json:"reserved_at"`
	// Process and Flight name who does what was asked, and Deadline is when that is over at the
	// latest; empty when nobody does.
	Process  string    `json:"process,omitempty"`
	Flight   string    `json:"flight,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Answer is what settled the matter, in the form of who reserved; empty while nothing has.
	Answer json.RawMessage `json:"answer,omitempty"`

	name     string
	revision uint64
}

// UUID returns the UUIDv7 of what is made under the key. It is the same each time that is tried.
func (r *Reservation) UUID() (string, error) {
	id, err := ulid.ParseStrict(r.ID)
	if err != nil {
		return "", fmt.Errorf("idempotency: id of a reservation: %w", err)
	}
	return domain.NewUUIDv7(id.Timestamp(), [10]byte(id.Entropy())), nil
}
