package commands

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// firstLook and lastLook bound how often a reservation that another replica holds is looked at; the pause doubles in between.
	firstLook = 10 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	// presenceTime is how long a process may take to say that it is there.
	presenceTime = 500 * time.Millisecond
	// maxUnsure is how often a write is tried whose answer was lost.
	maxUnsure = 3
)

// reservation is what the bucket holds of an idempotency key. It is read by other versions of the service, within the window.
type reservation struct {
	// CommandID is the id under which the hub knows the command, for as long as the key stands for it.
	CommandID string `json:"command_id"`
	// Request is the fingerprint of what the command asks.
	Request    string    `json:"request"`
	ReservedAt time.Time `json:"reserved_at"`
	// Process and Flight name who sees the command through, and Deadline is when that is over at the latest; empty when nobody does.
	Process  string    `json:"process,omitempty"`
	Flight   string    `json:"flight,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Answer is what settled the matter; nil while nothing has.
	Answer *answer `json:"answer,omitempty"`

	name     string
	revision uint64
}

// reservationName is the key in the bucket; empty for a command without an idempotency key, which may be any text. It is short, because the broker
// keeps all of them in memory.
func reservationName(c domain.Command) string {
	if c.IdempotencyKey == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.IdempotencyKey))
	return c.OrgID + "." + base64.RawURLEncoding.EncodeToString(sum[:])
}

// fingerprint is the same for commands that ask the same: of the same channel, with the same value once decoded.
func fingerprint(c domain.Command) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%d\n%s", c.HubID, c.DeviceID, c.Key, c.Endpoint, c.Value))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// reserve gives the reservation of a key, held by this flight, or with the answer that it has already. Offline hubs are refused unless there is an
// answer.
func (c *Commands) reserve(ctx context.Context, key flightKey, hub domain.HubID) (*reservation, error) {
	flight := ulid.Make().String()
	r := &reservation{name: key.name}
	unsure, pause := 0, firstLook
	// Most keys are new: the first time round nothing is read, and the write shows whether there is something.
	for first := true; ; first = false {
		if !first {
			*r = reservation{name: key.name}
			var err error
			if r.revision, err = c.reserved.Get(ctx, key.name, r); err != nil {
				return nil, err
			}
		}
		now := c.cfg.Now()
		switch {
		case r.revision > 0 && r.Flight == flight:
			return r, nil // the answer to the write was lost
		case r.revision == 0 || now.Sub(r.ReservedAt) >= c.cfg.Window:
			r.CommandID, r.Request, r.ReservedAt, r.Answer = ulid.Make().String(), key.request, now, nil
		case r.Request != key.request:
			return nil, domain.Errorf(domain.CodeIdempotencyConflict, "Idempotency-Key: stands for another command; use a new key for this one")
		case r.Answer != nil:
			return r, nil
		case now.Before(r.Deadline) && c.others(ctx, r.Process):
			if err := sleep(ctx, min(pause, r.Deadline.Sub(now))); err != nil {
				return nil, err
			}
			pause = min(2*pause, lastLook)
			continue
		}
		if err := c.hubs.MustBeOnline(ctx, hub); err != nil {
			if first {
				continue // there may be an answer
			}
			return nil, err
		}
		r.Process, r.Flight, r.Deadline = c.process, flight, now.Add(c.cfg.HubTimeout+holdSlack)
		revision, err := c.reserved.Put(ctx, key.name, r, r.revision)
		switch {
		case err == nil:
			r.revision = revision
			return r, nil
		case errors.Is(err, streams.ErrConflict):
		case errors.Is(err, streams.ErrUnsure) && unsure < maxUnsure:
			unsure++
		default:
			return nil, err
		}
	}
}

// others says whether a holder is another process that is still there. A process that is gone leaves the broker at once, unless its machine or its
// network went first: then the deadline ends the wait. What this process itself holds and has no flight for, it could not let go of.
func (c *Commands) others(ctx context.Context, process string) bool {
	if process == c.process {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTime)
	defer cancel()
	_, err := c.cloud.RequestWithContext(ctx, streams.CommandsSubject(process), nil)
	return !errors.Is(err, nats.ErrNoResponders)
}

// settle writes what has become of a reservation that this flight holds: the answer that settled the matter, or that nobody holds it now. When another
// flight has taken over and got an answer, that is given; otherwise nil.
func (c *Commands) settle(r *reservation, a *answer) *answer {
	ctx, cancel := c.aftermath()
	defer cancel()
	mine := *r
	mine.Answer, mine.Process, mine.Flight, mine.Deadline = a, "", "", time.Time{}
	revision := r.revision
	for unsure := 0; ; {
		_, err := c.reserved.Put(ctx, r.name, &mine, revision)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, streams.ErrConflict):
		case errors.Is(err, streams.ErrUnsure) && unsure < maxUnsure:
			unsure++
		default:
			c.cfg.Log.Warn("what became of a command is not remembered; sent again it goes to the hub again", "command_id", r.CommandID, "error", err)
			return nil
		}
		there := reservation{}
		if revision, err = c.reserved.Get(ctx, r.name, &there); err != nil {
			c.cfg.Log.Warn("what became of a command cannot be read", "command_id", r.CommandID, "error", err)
			return nil
		}
		switch {
		case revision == 0 || there.CommandID != r.CommandID:
			return nil // its time is over
		case there.Answer != nil:
			return there.Answer
		case a == nil && there.Flight != r.Flight:
			return nil // somebody else holds it, or has let go of it
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
