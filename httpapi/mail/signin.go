package mail

import (
	"context"

	"hubcloud/domain"
)

func (s *queuedSignIn) recipient(ctx context.Context, cfg Config) (_ string, err error) {
	s.To, err = cfg.SignInRecipient(ctx, s.To)
	return s.To, err
}

func (s *queuedSignIn) render(string) (content, error) {
	org := domain.PlainLine(s.OrgName)
	view := struct{ To, Org, Link, Expires string }{
		domain.PlainLine(s.To), org, s.Link, formatExpiry(s.ExpiresAt),
	}
	subject := "Sign in"
	if org != "" {
		subject = "You own " + org
	}
	return render(subject, "sign-in", view)
}
