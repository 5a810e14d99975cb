package server

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/httpapi/mail"
	"hubcloud/httpapi/portal"
	"hubcloud/hubbridge/ingest"
	"hubcloud/projections/alarms"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/outbox"
)

// startMail opens the queue of mails, creates mailer and portal, and starts the deliveries. It
// needs the public URL.
func (s *web) startMail(ctx context.Context) error {
	s.alarmState = outbox.OpenAlarmRecords(s.conns.Cloud)
	var queue *outbox.Outbox
	err := s.retry(ctx, brokerStorage, func(ctx context.Context) (err error) {
		queue, err = outbox.Open(ctx, s.conns, outbox.Config{
			Replicas: s.cfg.LogReplicas, Logger: s.logger,
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
	portalConfig := s.portalConfig()
	s.mailer, err = mail.New(mail.Config{
		From: from, Queue: mailQueue{queue}, Transport: transport, PublicURL: s.bound.PublicURL,
		InvitationRecipient: s.directory.InvitationRecipient,
		SignInRecipient:     portalConfig.SignInAddress,
		AlarmRecipient:      s.directory.MailRecipient,
		ManagerRecipient:    s.directory.ManagerRecipient,
		UnsubscribeToken: func(ctx context.Context, org, member string) (string, error) {
			key, err := s.alarmState.UnsubscribeKey(ctx)
			return domain.UnsubscribeToken{OrgID: org, MemberID: member}.Seal(key), err
		},
	})
	if err != nil {
		return err
	}
	s.invitations.Mailer, portalConfig.Mails = s.mailer, s.mailer
	s.portal = portal.New(portalConfig)
	s.run(stopLoops, "mail", func(ctx context.Context) error {
		return queue.Run(ctx, func(ctx context.Context, content []byte) error {
			return deliveryError(s.mailer.Deliver(ctx, content))
		})
	})
	s.run(stopLoops, "mails about keys", s.mailKeyExpiries)
	return s.startNotifier()
}

// mailKeyExpiries mails owners and admins about API keys that expire soon, until ctx ends. Every
// replica does: the queue takes a mail once, and the directory records which were queued.
func (s *web) mailKeyExpiries(ctx context.Context) error {
	for {
		now := time.Now()
		for _, key := range s.access.Expiring(now, now.Add(domain.KeyExpiryNotice)) {
			if err := s.mailKeyExpiry(ctx, key.ID); err != nil && ctx.Err() == nil {
				s.logger.Warn(
					"mail about a key not queued; trying again", "key_id", key.ID, "error", err,
				)
			}
		}
		if !streams.Sleep(ctx, time.Minute) {
			return nil
		}
	}
}

// mailKeyExpiry mails about one key, unless that was done.
func (s *web) mailKeyExpiry(ctx context.Context, id string) error {
	key, err := s.directory.Key(ctx, id)
	if err != nil || key.Revoked() || key.ExpiryMailed.Equal(key.ExpiresAt) {
		return err
	}
	org, err := s.directory.Org(ctx, key.OrgID)
	if err == nil {
		err = s.mailer.SendKeyExpires(ctx, org, key)
	}
	if err == nil {
		err = s.directory.MailKeyExpiry(ctx, id)
	}
	return err
}

// startNotifier starts the mails about alarms. Of all replicas with the role api one sends them.
func (s *web) startNotifier() error {
	n, err := alarms.New(alarms.Config{
		Database: s.store.ConnConfig(), Hubs: s.store,
		SilentHubs: portalFaults{ingest.NewFaultReader(s.conns)}.SilentHubs,
		Org:        s.directory.Org, Records: s.alarmState, Send: s.mailer.SendAlarm,
		Rules: attention.MailRules{
			MailsPerHour: alarmMailsPerHour, Title: portal.ConditionTitle,
		},
		Shares: s.shares, Logger: s.logger, Metrics: s.registry,
	})
	if err != nil {
		return err
	}
	s.runClaimed("alarm mails", n.Run)
	return nil
}

// mailTransport returns the mail server of --smtp-url, or a folder in the data directory.
func (s *web) mailTransport() (mail.Transport, error) {
	if s.cfg.SMTPURL == "" {
		dir := s.dir.Path("outbox")
		s.logger.Info(
			"no mail server (--smtp-url): mails are only written to a folder",
			"folder", dir,
		)
		return mail.NewFolder(dir)
	}
	server, err := mail.ParseServer(s.cfg.SMTPURL)
	if err != nil {
		return nil, err
	}
	s.logger.Info("mails are sent by SMTP", "smtp_server", server.String())
	return mail.NewSMTP(server, nil), nil
}

// invitationMailer is the directory's Mailer. The directory is opened before the mailer, which
// needs the public URL and looks up recipients in the directory.
type invitationMailer struct{ *mail.Mailer }

// mailQueue is the outbox as a mail.Queue.
type mailQueue struct{ outbox *outbox.Outbox }

// Put stores a mail.
func (q mailQueue) Put(ctx context.Context, e mail.Envelope) error {
	return queueError(q.outbox.Put(ctx, outbox.Mail(e)))
}

// HasSpace returns nil when Put would store a mail of the sender.
func (q mailQueue) HasSpace(ctx context.Context, sender, recipient string) error {
	return queueError(q.outbox.HasSpace(ctx, sender, recipient))
}

// queueError returns an error of the outbox as a domain.Error.
func queueError(err error) error {
	switch {
	case errors.Is(err, outbox.ErrSenderFull):
		return domain.RateLimited(
			time.Minute,
			"too many mails of the organization are waiting for the mail server; try again later",
		)
	case errors.Is(err, outbox.ErrFull):
		return domain.Unavailable(
			"the mail cannot be sent at the moment: too many mails are waiting for the mail server",
		)
	}
	return jsapi.Unavailable(
		err, "the mail queue did not answer: the mail may not be sent; the request can be repeated",
	)
}

// deliveryError returns an error of a delivery as one of the outbox.
func deliveryError(err error) error {
	switch {
	case errors.Is(err, mail.ErrRejected):
		return fmt.Errorf("%w: %w", outbox.ErrRejected, err)
	case errors.Is(err, mail.ErrObsolete):
		return fmt.Errorf("%w: %w", outbox.ErrObsolete, err)
	case errors.Is(err, mail.ErrUnreachable):
		return fmt.Errorf("%w: %w", outbox.ErrUnreachable, err)
	default:
		return err
	}
}

// validateMail checks the flags about mail. Its errors never contain --smtp-url, which may have a
// password.
func (c Config) validateMail() error {
	if c.SMTPURL != "" {
		if _, err := mail.ParseServer(c.SMTPURL); err != nil {
			return fmt.Errorf("--smtp-url: %w", err)
		}
	}
	if c.MailFrom != "" {
		if _, err := mail.ParseSender(c.MailFrom); err != nil {
			return fmt.Errorf("--mail-from: %w", err)
		}
	}
	return nil
}

// sender returns the sender of mails: --mail-from, or no-reply at the public URL's host.
func (c Config) sender(publicURL string) (netmail.Address, error) {
	if c.MailFrom != "" {
		return mail.ParseSender(c.MailFrom)
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
