package server

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"path"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/mail"
	"hubcloud/streams"
	"hubcloud/streams/outbox"
)

// startMail opens the queue of mails, delivers what is in it, and makes what writes them, with the
// portal, which says who gets a link to sign in. The public URL is known by then.
func (s *Server) startMail(ctx context.Context) error {
	var queue *outbox.Outbox
	err := s.retry(ctx, brokerStorage, func(ctx context.Context) (err error) {
		queue, err = outbox.Open(ctx, s.conns, outbox.Config{
			Replicas: s.cfg.LogReplicas, PerSender: s.cfg.WaitingMailsPerOrg, Log: s.logger,
			Metrics: s.registry, Tracer: s.traces.Tracer(),
		})
		return err
	})
	if err != nil {
		return err
	}
	transport, err := s.mailTransport()
	if err != nil {
		return err
	}
	from, err := s.cfg.sender(s.bound.PublicURL)
	if err != nil {
		return err
	}
	s.mailer = mail.New(
		mail.Config{
			From:      from,
			Queue:     mailQueue{queue},
			Transport: transport,
			Invited:   s.invitedAddress,
			MaySignIn: s.signInAddress,
		},
	)
	s.mails = queue
	s.portal = s.newPortal()
	s.foundation.run("mail", func(ctx context.Context) error {
		return queue.Run(ctx, func(ctx context.Context, content []byte) error {
			return outcome(s.mailer.Deliver(ctx, content))
		})
	})
	return nil
}

// mailTransport is the mail server of --smtp-url, or a folder in the data directory.
func (s *Server) mailTransport() (mail.Transport, error) {
	if s.cfg.SMTPURL == "" {
		dir := s.dir.Path("outbox")
		s.logger.Warn(
			"there is no mail server (--smtp-url): mails are written into a folder, and go no further",
			"folder", dir,
		)
		return mail.NewFolder(dir)
	}
	server, err := mail.ParseServer(s.cfg.SMTPURL)
	if err != nil {
		return nil, err
	}
	s.logger.Info("mails go out", "smtp_server", server.String())
	return mail.NewSMTP(server, nil), nil
}

// mailQueue is the outbox as mails need it.
type mailQueue struct{ *outbox.Outbox }

// Put stores a mail.
func (q mailQueue) Put(ctx context.Context, e mail.Envelope) error {
	return queueError(q.Outbox.Put(ctx, outbox.Mail(e)))
}

// queueError says in the API's words what keeps a mail from being stored.
func queueError(err error) error {
	switch {
	case errors.Is(err, outbox.ErrSenderFull):
		refused := domain.Errorf(
			domain.CodeRateLimited,
			"as many mails of the organization as are allowed wait for the mail server "+
				"(--waiting-mails-per-org); try again later",
		)
		refused.RetryAfter = time.Minute
		return refused
	case errors.Is(err, outbox.ErrFull):
		return domain.Unavailable(
			"no mail can be sent at the moment: as many as there may be wait for the mail server",
		)
	}
	return streams.Unavailable(
		err,
		"the queue of mails did not answer: the mail may not go out, and the request can be repeated",
	)
}

// mayInvite returns an error when no more invitations of an organization, or of all, may go to an
// address within the hour, or when there is no room for the mail: an invitation without one would
// be of no use. One organization gets half of what an address may get.
func (s *Server) mayInvite(ctx context.Context, org, email string, now time.Time) error {
	recipient := domain.NormalizeEmail(email)
	if err := s.mails.Room(ctx, org, recipient); err != nil {
		return queueError(err)
	}
	mailbox, most := domain.MailboxOf(email), s.cfg.InvitationsPerAddress
	for _, bound := range []struct {
		what string
		most int
	}{
		{"invitations of " + org + " to " + mailbox, (most + 1) / 2},
		{"invitations to " + mailbox, most},
	} {
		wait, err := s.signIn.Allow(ctx, bound.what, bound.most, bound.most, now)
		if err != nil {
			return err
		}
		if wait > 0 {
			refused := domain.Errorf(
				domain.CodeRateLimited,
				"email: this address has been invited %d times within an hour; no more are "+
					"allowed (--invitations-per-address)",
				bound.most,
			)
			refused.RetryAfter = wait
			return refused
		}
	}
	return nil
}

// invitedAddress returns the address that an invitation's mail goes to, "" when its link does not
// work any more.
func (s *Server) invitedAddress(ctx context.Context, inv mail.Invitation) (string, error) {
	pending, err := s.directory.InvitationPending(ctx, path.Base(inv.Link))
	if err != nil || !pending {
		return "", err
	}
	account, err := s.directory.Account(ctx, inv.To)
	if account.Exists() {
		return account.Email, err
	}
	return inv.To, err
}

// outcome says in the queue's words how a delivery went.
func outcome(err error) error {
	switch {
	case errors.Is(err, mail.ErrRefused):
		return fmt.Errorf("%w: %w", outbox.ErrRefused, err)
	case errors.Is(err, mail.ErrObsolete):
		return fmt.Errorf("%w: %w", outbox.ErrObsolete, err)
	case errors.Is(err, mail.ErrUnreachable):
		return fmt.Errorf("%w: %w", outbox.ErrUnreachable, err)
	default:
		return err
	}
}

// validateMail checks the flags about mail. What it says never repeats --smtp-url: a password is in
// it.
func (f Config) validateMail() error {
	if f.SMTPURL != "" {
		if _, err := mail.ParseServer(f.SMTPURL); err != nil {
			return fmt.Errorf("--smtp-url: %w", err)
		}
	}
	if f.MailFrom != "" {
		if _, err := mail.ParseSender(f.MailFrom); err != nil {
			return fmt.Errorf("--mail-from: %w", err)
		}
	}
	return nil
}

// sender is who mails come from: --mail-from, or no-reply at the public URL's host.
func (f Config) sender(publicURL string) (netmail.Address, error) {
	if f.MailFrom != "" {
		return mail.ParseSender(f.MailFrom)
	}
	public, err := url.Parse(publicURL)
	if err != nil {
		return netmail.Address{}, err
	}
	host := public.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil { // RFC 5321, section 4.1.3
		if host = "[" + host + "]"; addr.Is6() {
			host = "[IPv6:" + addr.WithZone("").String() + "]"
		}
	}
	return netmail.Address{Name: "hubcloud", Address: "no-reply@" + host}, nil
}
