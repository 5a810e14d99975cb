package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"hubcloud/domain"
)

// maxSubject is the longest subject in bytes that the standard allows.
const maxSubject = 255

// Begin begins an attempt to sign in, which the browser must keep. address is the provider's page
// that the browser goes to. The error is service_unavailable while the provider is not known.
func (p *Provider) Begin() (address string, attempt domain.SignInAttempt, err error) {
	found := p.found.Load()
	if found == nil {
		return "", attempt, p.unavailable(errors.New("no discovery document yet"))
	}
	attempt = domain.SignInAttempt{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
	}
	return found.client.AuthCodeURL(
		attempt.State, oidc.Nonce(attempt.Nonce), oauth2.S256ChallengeOption(attempt.Verifier),
	), attempt, nil
}

// Finish returns the person whom the provider has signed in. query is what it sent the browser back
// with. Errors are domain.Errors whose messages may be shown: unauthenticated when the provider or
// its token says no, forbidden when the person may not sign in with it, and service_unavailable
// when the provider does not answer.
func (p *Provider) Finish(
	ctx context.Context, attempt domain.SignInAttempt, query url.Values,
) (domain.ProvenPerson, error) {
	found := p.found.Load()
	issuer, denied := query.Get("iss"), query.Get("error")
	switch {
	case found == nil:
		return domain.ProvenPerson{}, p.unavailable(errors.New("no discovery document yet"))
	case attempt.State == "" ||
		subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(attempt.State)) != 1:
		return domain.ProvenPerson{}, rejected(
			errors.New("another state"), "this sign-in was interrupted, or began in another window",
		)
	case issuer != "" && issuer != p.cfg.Issuer: // RFC 9207
		return domain.ProvenPerson{}, rejected(
			fmt.Errorf("the answer is of issuer %q", issuer), "the answer is of another provider",
		)
	case denied != "":
		return domain.ProvenPerson{}, rejected(
			fmt.Errorf("error %q, %q", denied, query.Get("error_description")),
			"%s has not signed you in", p.cfg.Name,
		)
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.redeem(ctx, found.client, query.Get("code"), attempt.Verifier)
	if err != nil {
		return domain.ProvenPerson{}, err
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := found.verifier.Verify(ctx, raw)
	if err == nil && subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(attempt.Nonce)) != 1 {
		err = errors.New("another nonce")
	}
	if err == nil && (verified.Subject == "" || len(verified.Subject) > maxSubject) {
		err = fmt.Errorf("subject of %d bytes", len(verified.Subject))
	}
	if err != nil {
		return domain.ProvenPerson{}, rejected(
			fmt.Errorf("ID token: %w", err), "the answer of %s is not valid", p.cfg.Name,
		)
	}
	claims, err := p.claims(ctx, found.provider, verified, token)
	if err != nil {
		return domain.ProvenPerson{}, err
	}
	return p.person(domain.Identity{Issuer: verified.Issuer, Subject: verified.Subject}, claims)
}

// redeem requests the tokens of a code.
func (p *Provider) redeem(
	ctx context.Context, client oauth2.Config, code, verifier string,
) (*oauth2.Token, error) {
	var err error
	if client.ClientSecret, err = p.cfg.secret(); err != nil {
		return nil, err
	}
	token, err := client.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer) && answer.Response.StatusCode < 500:
		// Not the error itself: it has the body of the answer.
		err = fmt.Errorf("code: status %d, error %q", answer.Response.StatusCode, answer.ErrorCode)
		return nil, rejected(err, "%s has not signed you in", p.cfg.Name)
	case errors.As(err, &answer):
		return nil, p.unavailable(fmt.Errorf("code: status %d", answer.Response.StatusCode))
	case err != nil:
		return nil, p.unavailable(err)
	}
	return token, nil
}

// claims returns the claims of an ID token and, if it lacks some, of the user info.
func (p *Provider) claims(
	ctx context.Context, provider *oidc.Provider, verified *oidc.IDToken, token *oauth2.Token,
) (map[string]any, error) {
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return nil, rejected(err, "the answer of %s is not valid", p.cfg.Name)
	}
	wanted := []string{"email", p.cfg.VerifiedClaim}
	if len(p.cfg.Groups) > 0 {
		wanted = append(wanted, p.cfg.GroupsClaim)
	}
	complete := !slices.ContainsFunc(wanted, func(name string) bool { return claims[name] == nil })
	if complete || provider.UserInfoEndpoint() == "" {
		return claims, nil
	}
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, p.unavailable(fmt.Errorf("user info: %w", err))
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil || info.Subject != verified.Subject {
		return nil, rejected(
			errors.Join(err, fmt.Errorf("user info of subject %q", info.Subject)),
			"the answer of %s is not valid", p.cfg.Name,
		)
	}
	for name, value := range more {
		if claims[name] == nil {
			claims[name] = value
		}
	}
	return claims, nil
}

// person returns the person that claims describe.
func (p *Provider) person(
	identity domain.Identity, claims map[string]any,
) (domain.ProvenPerson, error) {
	text, _ := claims["email"].(string)
	email, err := domain.CleanEmail("email", text)
	// Some providers send true as text, or as 1.
	verified := fmt.Sprint(claims[p.cfg.VerifiedClaim])
	switch {
	case err != nil:
		return domain.ProvenPerson{}, forbidden(
			errors.New("no email claim"), "%s has told no email address of yours", p.cfg.Name,
		)
	case verified != "true" && verified != "1":
		return domain.ProvenPerson{}, forbidden(
			fmt.Errorf("claim %s is %s", p.cfg.VerifiedClaim, verified),
			"%s has not verified your email address", p.cfg.Name,
		)
	case !p.cfg.vouchesFor(email):
		return domain.ProvenPerson{}, forbidden(
			errors.New("domain not in email_domains"),
			"people with an address like %s do not sign in with %s", email, p.cfg.Name,
		)
	}
	groups, err := p.groups(claims)
	if err != nil {
		return domain.ProvenPerson{}, err
	}
	return domain.ProvenPerson{Identity: identity, Email: email, Access: p.cfg.access(groups)}, nil
}

// groups returns the person's groups. A provider that leaves them out because they are too many,
// and names another place instead, must not end the person's access.
func (p *Provider) groups(claims map[string]any) (groups []string, err error) {
	elsewhere, _ := claims["_claim_names"].(map[string]any)
	if len(p.cfg.Groups) > 0 && elsewhere[p.cfg.GroupsClaim] != nil {
		return nil, forbidden(
			fmt.Errorf("claim %s is distributed", p.cfg.GroupsClaim),
			"%s has not told your groups, since you are in too many", p.cfg.Name,
		)
	}
	switch value := claims[p.cfg.GroupsClaim].(type) {
	case string:
		groups = []string{value}
	case []any:
		for _, item := range value {
			if name, ok := item.(string); ok {
				groups = append(groups, name)
			}
		}
	}
	return groups, nil
}

// unavailable remembers that the provider does not answer, and returns the error for people.
func (p *Provider) unavailable(err error) error {
	p.noteAnswer(err)
	return domain.UnavailableBecause(
		fmt.Errorf("identity provider: %w", err), "%s does not answer at the moment", p.cfg.Name,
	)
}

func rejected(cause error, format string, args ...any) error {
	return because(cause, domain.Errorf(domain.CodeUnauthenticated, format, args...))
}

func forbidden(cause error, format string, args ...any) error {
	return because(cause, domain.Errorf(domain.CodeForbidden, format, args...))
}

func because(cause error, shown *domain.Error) error {
	return fmt.Errorf("identity provider: %w: %w", cause, shown)
}
