package installation

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/mail"
	"hubcloud/streams/outbox"
	"hubcloud/streams/signin"
)

// MailOwner queues a mail to the first owner of a new organization, with a link that signs in, once
// and as long as an invitation's link works.
func (s *Session) MailOwner(ctx context.Context, service Service, org, name, email string) error {
	bound, err := service.Dir().Endpoints()
	if err != nil {
		return err
	}
	if email, err = domain.CleanEmail("owner-email", email); err != nil {
		return err
	}
	queue, err := outbox.Open(ctx, s.Conns, outbox.Config{Replicas: AnyReplicas})
	if err != nil {
		return err
	}
	now := time.Now()
	link := domain.SignInLink{
		Email: email, Next: "/portal/" + org,
		CreatedAt: now, ExpiresAt: now.Add(domain.DefaultInvitationTTL),
	}
	token, err := signin.New(s.Conns.Cloud, s.Buckets.SignIn, nil).NewLink(ctx, link)
	if err != nil {
		return err
	}
	return mail.SendOwner(ctx, func(ctx context.Context, e mail.Envelope) error {
		return queue.Put(ctx, outbox.Mail(e))
	}, mail.Owner{
		Email: email, OrgID: org, OrgName: name,
		Link: bound.PublicURL + "/portal/sign-in/" + token, ExpiresAt: link.ExpiresAt,
	})
}
