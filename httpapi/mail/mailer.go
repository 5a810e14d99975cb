package mail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"time"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/domain"
)

// Why a mail was not delivered.
var (
	// ErrRefused says that this mail will never be delivered: the server refuses the recipient or
	// the content for good, or it cannot be composed.
	ErrRefused = errors.New("the mail is refused")
	// ErrObsolete says that what the mail is about is over (Config.Invited): it is not sent.
	ErrObsolete = errors.New("what the mail is about is over")
	// ErrUnreachable says that no mail can be delivered now: the server is away, or does not take
	// ours.
	ErrUnreachable = errors.New("the mail server is not to be had")
)

// Queue keeps what is to be delivered.
type Queue interface {
	// Put returns once a mail is stored durably. Two with one ID are one.
	Put(ctx context.Context, e Envelope) error
}

// Envelope is what the queue must know of a mail.
type Envelope struct {
	ID string
	// Sender is the organization that the mail is from; empty for a mail of the service.
	Sender string
	// Recipient is the address in the form by which addresses are compared. A mail of the same
	// sender to the recipient that still waits is replaced.
	Recipient string
	// Urgent mails wait behind no others but urgent ones: somebody looks into the mailbox for them.
	Urgent bool
	// Expires is when a mail that is not delivered is dropped.
	Expires time.Time
	Content []byte
}

// Transport gets mails out.
type Transport interface {
	// Send delivers one mail. name is the same at every try, and has only letters, digits and `-`.
	// Errors may be ErrRefused or ErrUnreachable.
	Send(ctx context.Context, name string, m *gomail.Msg) error
	// Plain says that mails may hold any byte as it is. Otherwise what is not ASCII is encoded.
	Plain() bool
}

// Config is what a Mailer needs. Everything but Invited, MaySignIn and Now must be given.
type Config struct {
	// From is the sender of every mail.
	From netmail.Address
	Queue
	Transport
	// Invited returns the address that an invitation's mail goes to: the one stored with the
	// account of the address that was typed, or that address itself; "" when the invitation does
	// not stand any more. It is asked before each try: while a mail waited, its invitation may have
	// been revoked, or replaced by a newer one, and its link would only lead astray. nil: every one
	// stands.
	Invited func(ctx context.Context, inv Invitation) (to string, err error)
	// MaySignIn returns the address that a link to sign in goes to: the one stored with the account
	// of the address that was typed; "" for nobody. It is asked before each try, and not before the
	// mail is queued: whoever asks for a link can tell from nothing whether the address is known.
	// nil: everybody may, and the address is as it was typed.
	MaySignIn func(ctx context.Context, s SignIn) (to string, err error)
	// Now is the clock of the mails' dates; nil stands for time.Now.
	Now func() time.Time
}

// Mailer writes the service's mails.
type Mailer struct{ cfg Config }

// New makes a Mailer.
func New(cfg Config) *Mailer {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Mailer{cfg}
}

// SignIn is a mail with a link that signs in to the portal.
type SignIn struct {
	// To is one bare address, as it was typed.
	To string `json:"to"`
	// Link signs in, once. It is a secret.
	Link string `json:"link"`
	// ExpiresAt is when the link stops to work, and the service to try to deliver the mail.
	ExpiresAt time.Time `json:"expires_at"`
}

// Invitation is a mail that invites somebody to an organization.
type Invitation struct {
	// ID is the invitation's. Two mails with the same one are one; without it each is its own.
	ID string `json:"id"`
	// OrgID is the organization.
	OrgID string `json:"org_id"`
	// To is one bare address, as it was typed.
	To      string      `json:"to"`
	OrgName string      `json:"org_name"`
	Role    domain.Role `json:"role"`
	// Link accepts the invitation. It is a secret.
	Link string `json:"link"`
	// ExpiresAt is when the link stops to work, and the service to try to deliver the mail.
	ExpiresAt time.Time `json:"expires_at"`
}

// queued is what is put into the queue: what a mail says, so that it is small, and written only
// when it goes out.
type queued struct {
	// QueuedAt becomes the mail's date.
	QueuedAt time.Time `json:"queued_at"`
	// One of them is there.
	Invitation *Invitation `json:"invitation,omitempty"`
	SignIn     *SignIn     `json:"sign_in,omitempty"`
	// ID makes the Message-ID of a sign-in.
	ID string `json:"id,omitempty"`
}

// id names the mail, the same at every try.
func (q queued) id() string {
	if q.Invitation != nil {
		return q.Invitation.ID
	}
	return q.ID
}

// SendInvitation puts a mail into the queue, and returns once it is stored durably. The error is
// the queue's.
func (m *Mailer) SendInvitation(ctx context.Context, inv Invitation) error {
	if inv.ID == "" {
		inv.ID = rand.Text()
	}
	return m.put(
		ctx,
		queued{Invitation: &inv},
		Envelope{
			Sender:    inv.OrgID,
			Recipient: domain.NormalizeEmail(inv.To),
			Expires:   inv.ExpiresAt,
		},
	)
}

// SendSignIn puts a mail into the queue, and returns once it is stored durably. The error is the
// queue's.
func (m *Mailer) SendSignIn(ctx context.Context, s SignIn) error {
	e := Envelope{Recipient: domain.NormalizeEmail(s.To), Urgent: true, Expires: s.ExpiresAt}
	return m.put(ctx, queued{SignIn: &s, ID: rand.Text()}, e)
}

func (m *Mailer) put(ctx context.Context, q queued, e Envelope) (err error) {
	q.QueuedAt = m.cfg.Now().UTC()
	e.ID = q.id()
	if e.Content, err = json.Marshal(q); err == nil {
		err = m.cfg.Put(ctx, e)
	}
	if err != nil {
		return fmt.Errorf("mail: queue a mail: %w", err)
	}
	return nil
}

// Deliver composes what a Send… put into the queue and sends it. The error may be ErrRefused,
// ErrObsolete or ErrUnreachable; any other one says that the same mail may be taken later.
func (m *Mailer) Deliver(ctx context.Context, content []byte) error {
	var q queued
	if err := json.Unmarshal(content, &q); err != nil {
		return fmt.Errorf("mail: %w: the queue holds something else: %w", ErrRefused, err)
	}
	switch err := m.address(ctx, &q); {
	case errors.Is(err, ErrObsolete):
		return fmt.Errorf("mail: %w", err)
	case err != nil:
		return fmt.Errorf("mail: ask for the recipient's address: %w", err)
	}
	msg, err := m.compose(q)
	if err != nil {
		return fmt.Errorf("mail: %w: %w", ErrRefused, err)
	}
	if err := m.cfg.Send(ctx, fileName(q), msg); err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	return nil
}

// address has the mail go to the address stored with its recipient's account. ErrObsolete says that
// nobody may have it any more.
func (m *Mailer) address(ctx context.Context, q *queued) error {
	var stored string
	var err error
	switch {
	case q.Invitation != nil && m.cfg.Invited != nil:
		stored, err = m.cfg.Invited(ctx, *q.Invitation)
		q.Invitation.To = stored
	case q.SignIn != nil && m.cfg.MaySignIn != nil:
		stored, err = m.cfg.MaySignIn(ctx, *q.SignIn)
		q.SignIn.To = stored
	default:
		return nil
	}
	if err == nil && stored == "" {
		return ErrObsolete
	}
	return err
}
