package mail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/domain"
)

// Why a mail was not delivered.
var (
	// ErrRejected means that the mail can never be delivered: the server rejects the recipient or
	// the content permanently, or the mail cannot be composed.
	ErrRejected = errors.New("the mail is rejected")
	// ErrObsolete means that the mail has no recipient any more: its invitation is over, or the
	// person may not sign in.
	ErrObsolete = errors.New("the mail is obsolete")
	// ErrUnreachable means that no mail can be delivered now: the server is away, or rejects the
	// service.
	ErrUnreachable = errors.New("the mail server is unreachable")
)

// Queue stores mails until they are delivered.
type Queue interface {
	// Put returns once the mail is stored durably. Two mails with one ID are one.
	Put(ctx context.Context, e Envelope) error
	// HasSpace returns nil when Put would accept a mail of the sender to the recipient, and a
	// domain.Error otherwise.
	HasSpace(ctx context.Context, sender, recipient string) error
}

// Envelope is a mail with what the queue needs to know about it.
type Envelope struct {
	ID string
	// Sender is the id of the organization that the mail is from; empty for the service's own
	// mails.
	Sender string
	// Recipient is the domain.NormalizeEmail of the address. The mail replaces a waiting mail of
	// the same sender to the same recipient.
	Recipient string
	// Topic, if not empty, limits this to mails of the same topic.
	Topic string
	// Urgent mails do not wait for ordinary ones: a person is waiting for them. Alarms wait for
	// neither, and have a part of the queue of their own.
	Urgent, Alarm bool
	// Expires is when a mail that is still undelivered is dropped.
	Expires time.Time
	Content []byte
}

// Transport sends mails.
type Transport interface {
	// Send delivers one mail. The name is the same at every try and consists of letters, digits and
	// `-`. The error may be ErrRejected or ErrUnreachable.
	Send(ctx context.Context, name string, m *gomail.Msg) error
	// Plain reports whether mails may contain any byte unencoded. Otherwise text that is not ASCII
	// is encoded.
	Plain() bool
}

// Mailer queues and delivers the service's mails.
type Mailer struct{ cfg Config }

// New returns a Mailer.
func New(cfg Config) (*Mailer, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Mailer{cfg}, nil
}

// queued is a mail as the queue stores it. It is small: the mail is composed when it goes out.
// Exactly one of Invitation, SignIn, Alarm, Webhook and Key is set.
type queued struct {
	// QueuedAt becomes the mail's date.
	QueuedAt   time.Time         `json:"queued_at"`
	Invitation *queuedInvitation `json:"invitation,omitempty"`
	SignIn     *queuedSignIn     `json:"sign_in,omitempty"`
	Alarm      *queuedAlarm      `json:"alarm,omitempty"`
	Webhook    *queuedWebhook    `json:"webhook,omitempty"`
	Key        *queuedKey        `json:"key,omitempty"`
	// ID is the id of a mail that is no invitation.
	ID string `json:"id,omitempty"`
}

type queuedInvitation struct {
	// ID is the invitation's, and the mail's.
	ID    string `json:"id"`
	OrgID string `json:"org_id"`
	// To is one bare address, as it was typed.
	To      string `json:"to"`
	OrgName string `json:"org_name"`
	// InvitedBy is the address of the member who invites; "" if none did.
	InvitedBy string        `json:"invited_by,omitempty"`
	Access    domain.Access `json:"access"`
	// Link accepts the invitation. It is a secret.
	Link      string    `json:"link"`
	ExpiresAt time.Time `json:"expires_at"`
}

type queuedSignIn struct {
	// To is one bare address, as it was typed.
	To string `json:"to"`
	// OrgName is the new organization whose first owner the mail goes to; "" in other mails.
	OrgName string `json:"org_name,omitempty"`
	// Link signs in, once. It is a secret.
	Link      string    `json:"link"`
	ExpiresAt time.Time `json:"expires_at"`
}

// id returns the mail's id, the same at every try.
func (q queued) id() string {
	if q.Invitation != nil {
		return q.Invitation.ID
	}
	return q.ID
}

// HasSpace returns nil when the queue would accept an invitation of the organization to the
// recipient, which must be a domain.NormalizeEmail.
func (m *Mailer) HasSpace(ctx context.Context, orgID, recipient string) error {
	return m.cfg.HasSpace(ctx, orgID, recipient)
}

// SendInvitation queues the mail of an invitation and returns once it is stored durably. The mail
// expires with the invitation. The error is the queue's.
func (m *Mailer) SendInvitation(ctx context.Context, mail domain.InvitationMail) error {
	inv := queuedInvitation{
		ID: mail.Invitation.ID, OrgID: mail.OrgID, To: mail.Invitation.Email, OrgName: mail.OrgName,
		Access: mail.Access, Link: m.cfg.PublicURL + "/portal/invitations/" + mail.Token,
		ExpiresAt: mail.Invitation.ExpiresAt, InvitedBy: mail.InvitedBy,
	}
	return m.put(ctx, queued{Invitation: &inv}, Envelope{
		Sender: inv.OrgID, Recipient: domain.NormalizeEmail(inv.To), Expires: inv.ExpiresAt,
	})
}

// SendSignIn queues a mail with a sign-in link, whether or not the address may sign in, and returns
// once it is stored durably. The error is the queue's.
func (m *Mailer) SendSignIn(ctx context.Context, email, link string, expires time.Time) error {
	s := queuedSignIn{To: email, Link: link, ExpiresAt: expires}
	return m.put(ctx, queued{SignIn: &s, ID: rand.Text()}, Envelope{
		Recipient: domain.NormalizeEmail(email), Urgent: true, Expires: expires,
	})
}

// Owner is the first owner of a new organization, with a link that signs in.
type Owner struct {
	Email, OrgID, OrgName, Link string
	ExpiresAt                   time.Time
}

// SendOwner queues the mail to an owner with put, which stores it durably.
func SendOwner(
	ctx context.Context, put func(ctx context.Context, e Envelope) error, o Owner,
) error {
	s := queuedSignIn{To: o.Email, OrgName: o.OrgName, Link: o.Link, ExpiresAt: o.ExpiresAt}
	return putIn(ctx, put, queued{SignIn: &s, ID: rand.Text(), QueuedAt: time.Now().UTC()}, Envelope{
		Sender: o.OrgID, Recipient: domain.NormalizeEmail(o.Email), Expires: o.ExpiresAt,
	})
}

// put queues a mail in its envelope, whose id and content it sets.
func (m *Mailer) put(ctx context.Context, q queued, e Envelope) error {
	if q.QueuedAt.IsZero() {
		q.QueuedAt = m.cfg.Now().UTC()
	}
	return putIn(ctx, m.cfg.Put, q, e)
}

func putIn(
	ctx context.Context, put func(ctx context.Context, e Envelope) error, q queued, e Envelope,
) error {
	content, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("mail: encode a mail: %w", err)
	}
	e.ID, e.Content = q.id(), content
	if err := put(ctx, e); err != nil {
		return fmt.Errorf("mail: queue a mail: %w", err)
	}
	return nil
}

// Deliver composes and sends a mail from the queue. After ErrRejected and ErrObsolete the mail must
// not be tried again; after any other error it may be delivered later.
func (m *Mailer) Deliver(ctx context.Context, content []byte) error {
	var q queued
	if err := json.Unmarshal(content, &q); err != nil {
		return fmt.Errorf("mail: %w: decode the queued mail: %w", ErrRejected, err)
	}
	kind := q.kind()
	if kind == nil {
		return fmt.Errorf("mail: %w: the queued mail is of no known kind", ErrRejected)
	}
	recipient, err := kind.recipient(ctx, m.cfg)
	if err != nil {
		return fmt.Errorf("mail: look up the recipient: %w", err)
	}
	if recipient == "" {
		return fmt.Errorf("mail: %w", ErrObsolete)
	}
	msg, err := m.compose(q, recipient)
	if err != nil {
		return fmt.Errorf("mail: %w: %w", ErrRejected, err)
	}
	if err := m.cfg.Send(ctx, fileName(q), msg); err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	return nil
}

// kind is a kind of mails, as the queue stores it.
type kind interface {
	// recipient returns the address that the mail goes to, "" if nobody gets it any more.
	recipient(ctx context.Context, cfg Config) (string, error)
	// render returns the mail. recipient must have been called.
	render(publicURL string) (content, error)
}

// kind returns what is set, nil if nothing is.
func (q *queued) kind() kind {
	switch {
	case q.Invitation != nil:
		return q.Invitation
	case q.SignIn != nil:
		return q.SignIn
	case q.Alarm != nil && len(q.Alarm.Notices) > 0:
		return q.Alarm
	case q.Webhook != nil:
		return q.Webhook
	case q.Key != nil:
		return q.Key
	}
	return nil
}
