package mail

import (
	"context"
	"errors"
	"fmt"
	"hubcloud/domain"
	netmail "net/mail"
	"strings"
	"time"
)

// Config configures a Mailer. From, Queue, Transport and PublicURL are required.
type Config struct {
	// From is the sender of every mail.
	From netmail.Address
	// Queue stores the mails until they are delivered.
	Queue `check:"set"`
	// Transport delivers the mails.
	Transport `check:"set"`
	// PublicURL is the address of the service that links begin with, without a slash at the end.
	PublicURL string
	// InvitationRecipient returns the address that an invitation's mail goes to, "" when the
	// invitation of the token is over. It is called before each try: the invitation may have been
	// revoked or replaced while the mail waited. Defaults to the address that was typed.
	InvitationRecipient func(ctx context.Context, token, email string) (recipient string, err error)
	// SignInRecipient returns the address that a sign-in link goes to, "" when no account may sign
	// in with the address that was typed. It is called before each try, and not before the mail is
	// queued: the time of an answer must not reveal whether an address is known. Defaults to the
	// address that was typed.
	SignInRecipient func(ctx context.Context, email string) (recipient string, err error)
	// AlarmRecipient returns the address that a mail about alarms goes to, "" when the member has
	// left the organization or gets no such mails any more. It is called before each try. It is
	// required for SendAlarm.
	AlarmRecipient func(ctx context.Context, org, member string) (recipient string, err error)
	// ManagerRecipient returns the address of an owner or admin, "" when the member is neither any
	// more. It is called before each try. It is required for SendWebhookDisabled.
	ManagerRecipient func(ctx context.Context, org, member string) (recipient string, err error)
	// UnsubscribeToken returns the token of the link that ends the member's mails about alarms. It
	// is required for SendAlarm.
	UnsubscribeToken func(ctx context.Context, org, member string) (token string, err error)
	// Now is the clock for the dates of mails. Defaults to time.Now.
	Now func() time.Time
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	if c.InvitationRecipient == nil {
		c.InvitationRecipient = func(_ context.Context, _, email string) (string, error) {
			return email, nil
		}
	}
	if c.SignInRecipient == nil {
		c.SignInRecipient = func(_ context.Context, email string) (string, error) {
			return email, nil
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that names the first invalid field. It expects the result of
// WithDefaults.
func (c Config) Validate() error {
	switch {
	case c.From.Address == "":
		return errors.New("mail: From: must have an address")
	case c.PublicURL == "" || strings.HasSuffix(c.PublicURL, "/"):
		return fmt.Errorf(
			"mail: PublicURL is %q: must be a URL without a slash at the end", c.PublicURL,
		)
	}
	return domain.CheckFields("mail", c)
}
