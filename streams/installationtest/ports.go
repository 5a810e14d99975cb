package installationtest

import (
	"context"
	"strings"
	"sync"

	"hubcloud/domain"
)

// Presence is a directory.Presence for which every hub has connected.
type Presence struct {
	// Online is whether every hub is connected now.
	Online bool
}

// Fetch returns the same presence for every hub.
func (p Presence) Fetch(_ context.Context, hub domain.HubID) (domain.Presence, bool, error) {
	return domain.Presence{HubID: hub, Online: p.Online}, true, nil
}

// Mailbox is a directory.Mailer that keeps every mail. The zero value is ready to use.
type Mailbox struct {
	mu    sync.Mutex
	mails []domain.InvitationMail
}

// HasSpace returns nil.
func (*Mailbox) HasSpace(context.Context, string, string) error { return nil }

// SendInvitation keeps the mail.
func (m *Mailbox) SendInvitation(_ context.Context, mail domain.InvitationMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(m.mails, mail)
	return nil
}

// Mail returns the mail of an invitation; the zero value when there is none.
func (m *Mailbox) Mail(invitationID string) domain.InvitationMail {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mail := range m.mails {
		if mail.Invitation.ID == invitationID {
			return mail
		}
	}
	return domain.InvitationMail{}
}

// Connections is a directory.Connections for hubs without connections. It records the calls. The
// zero value is ready to use.
type Connections struct {
	// Err is returned by every call.
	Err error

	mu    sync.Mutex
	calls []string
}

// DisconnectRevoked records "revoked", the hub and the certificates.
func (c *Connections) DisconnectRevoked(
	_ context.Context, hub domain.HubID, certificates []string,
) error {
	return c.record("revoked " + string(hub) + " " + strings.Join(certificates, ","))
}

// DisconnectBlocked records "blocked" and the hub.
func (c *Connections) DisconnectBlocked(_ context.Context, hub domain.HubID) (int, error) {
	return 0, c.record("blocked " + string(hub))
}

// Disconnect records "disconnect" and the hub.
func (c *Connections) Disconnect(_ context.Context, hub domain.HubID) error {
	return c.record("disconnect " + string(hub))
}

func (c *Connections) record(call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	return c.Err
}

// Calls returns the recorded calls and forgets them.
func (c *Connections) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// LastSequence is a directory.HubLogs for which every hub's stream ends at one sequence.
type LastSequence uint64

// LastSequence returns the sequence.
func (l LastSequence) LastSequence(context.Context, domain.HubID) (uint64, error) {
	return uint64(l), nil
}
