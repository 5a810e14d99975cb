package directory

import (
	"context"
	"time"

	"hubcloud/domain"
)

// The ports of a Service: what a few of its commands need besides the log. Each command's doc
// comment names the port that it uses. A command whose port is missing returns an error.

// Presence looks up whether hubs have connected.
type Presence interface {
	// Fetch returns the hub's latest presence, not a cached one, and false for a hub that has never
	// connected.
	Fetch(ctx context.Context, hub domain.HubID) (domain.Presence, bool, error)
}

// Connections cuts the connections of hubs. A hub without a connection is no error.
type Connections interface {
	// DisconnectRevoked cuts the connections that the hub made with one of the certificates, given
	// by at least one fingerprint. It repeats this in the background for some seconds: a connection
	// may be accepted just before a revocation takes effect.
	DisconnectRevoked(ctx context.Context, hub domain.HubID, certificates []string) error
	// DisconnectBlocked cuts every connection of a hub that may not connect again, until none is
	// left, and returns how many it cut.
	DisconnectBlocked(ctx context.Context, hub domain.HubID) (cut int, err error)
	// Disconnect cuts every connection of the hub once. The hub may connect again at once.
	Disconnect(ctx context.Context, hub domain.HubID) error
}

// HubLogs reads the streams of hub logs.
type HubLogs interface {
	// LastSequence returns the last sequence of the hub's stream; 0 for a hub without one.
	LastSequence(ctx context.Context, hub domain.HubID) (uint64, error)
}

// Mailer sends invitations.
type Mailer interface {
	// HasSpace returns nil when the mail queue would accept a mail of the organization to the
	// recipient, and a domain.Error otherwise.
	HasSpace(ctx context.Context, orgID, recipient string) error
	// SendInvitation returns once the mail is stored durably in the mail queue.
	SendInvitation(ctx context.Context, mail domain.InvitationMail) error
}

// RateLimiter counts actions over all replicas.
type RateLimiter interface {
	// Allow counts one more action with that name, of which perHour are allowed within an hour and
	// burst at once. It returns 0 when the action is allowed, and otherwise how long to wait.
	Allow(
		ctx context.Context, name string, burst, perHour int, now time.Time,
	) (wait time.Duration, err error)
}
