package once

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
)

// Reservation is the record of an idempotency key in the bucket.
type Reservation struct {
	// ID identifies the request for as long as the key stands for it: a ULID. Hubs know commands by
	// it.
	ID          string    `json:"id"`
	Fingerprint string    `json:"fingerprint"`
	ReservedAt  time.Time `json:"reserved_at"`
	// Process and Attempt name the holder, who runs the request until Deadline at the latest. They
	// are empty when no attempt holds the reservation.
	Process  string    `json:"process,omitempty"`
	Attempt  string    `json:"attempt,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Answer is the final answer, encoded by the package that reserved the key; empty until then.
	Answer json.RawMessage `json:"answer,omitempty"`

	name     string
	revision uint64
}

// isNew reports whether the key has no record yet.
func (r *Reservation) isNew() bool { return r.revision == 0 }

// begin makes the record a new reservation of a request, with a new ID and no answer.
func (r *Reservation) begin(fingerprint string, now time.Time) {
	r.ID, r.Fingerprint, r.ReservedAt = ulid.Make().String(), fingerprint, now
	r.Answer = nil
}

// UUID returns the UUIDv7 of what the request makes. It is the same for each run of the request.
func (r *Reservation) UUID() (string, error) {
	id, err := ulid.ParseStrict(r.ID)
	if err != nil {
		return "", fmt.Errorf("once: id of a reservation: %w", err)
	}
	return domain.NewUUIDv7(id.Timestamp(), [10]byte(id.Entropy())), nil
}
