package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// Invitations accepts invitations.
type Invitations interface {
	// AcceptInvitation makes whoever has the token a member, or says that it was accepted before. A
	// domain.Error not_found says that the token is none (any more), domain.ErrInvitationExpired
	// that it came too late. It gives the request an actor of its own.
	AcceptInvitation(ctx context.Context, o domain.Origin, token string) (domain.Acceptance, error)
}

// People says who is a member of what. It is asked on every request and must answer from memory; an
// address is found however it is written.
type People interface {
	// Memberships gives the organizations that an address is a member of, by their names.
	Memberships(email string) []domain.MemberAccess
	// Membership gives what an address is in an organization.
	Membership(org, email string) (domain.MemberAccess, bool)
}

// SignIn keeps sessions and the links that begin them. Tokens are secrets: it keeps their hashes
// alone.
type SignIn interface {
	// NewLink keeps a link until it expires and gives its token.
	NewLink(ctx context.Context, link domain.SignInLink) (token string, err error)
	// Link looks at a link without using it, TakeLink uses it: of several who do, one gets it. One
	// that is used, expired or none is domain.ErrSignInLink.
	Link(ctx context.Context, token string, now time.Time) (domain.SignInLink, error)
	TakeLink(ctx context.Context, token string, now time.Time) (domain.SignInLink, error)
	// Begin keeps a session and gives its token, a new one always.
	Begin(ctx context.Context, session domain.PortalSession) (token string, err error)
	// Session gives a session that has neither ended nor expired: domain.ErrNotSignedIn for any
	// other.
	Session(ctx context.Context, token string, now time.Time) (domain.PortalSession, error)
	// End ends a session; one that there is not has ended.
	End(ctx context.Context, token string) error
	// Once says whether a form of the session is sent for the first time, by the mark that it has.
	Once(ctx context.Context, token, mark string) (first bool, err error)
	// Unsent has a form taken for one that was not sent.
	Unsent(ctx context.Context, token, mark string) error
	// Allow counts one more of what may be done perHour times within an hour, burst of them at
	// once, on all replicas together; it returns for how long it may not be done, 0 when it may.
	Allow(
		ctx context.Context, name string, burst, perHour int, now time.Time,
	) (wait time.Duration, err error)
	// Ended gives what is closed when the session ends, on whatever replica. One that has ended
	// before is found out by asking for it afterwards. forget must be called in the end.
	Ended(token string) (ended <-chan struct{}, forget func())
}

// ReadModels answers what an organization has. Errors are domain.Errors: not_found for what is not
// the organization's, invalid_request for a startingAfter that is not (any more).
type ReadModels interface {
	Sites(
		ctx context.Context, org string, limit int, startingAfter string,
	) (domain.Page[domain.Site], error)
	Hubs(
		ctx context.Context, org string, site *string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	// FindHubs gives the hubs of a site with a text in their name, id or serial; "" stands for
	// every site, and is in all.
	FindHubs(
		ctx context.Context, org, site, text string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
	Site(ctx context.Context, org, site string) (domain.Site, error)
	// FindMembers gives the members with a text in their address, owners first; "" is in all.
	FindMembers(
		ctx context.Context, org, text string, limit int, startingAfter string,
	) (domain.Page[domain.Member], error)
	Member(ctx context.Context, org, member string) (domain.Member, error)
	Invitations(
		ctx context.Context, org string, limit int, startingAfter string, now time.Time,
	) (domain.Page[domain.Invitation], error)
	// Keys gives the organization's API keys, those in force first, newest first; Key gives one,
	// revoked or not.
	Keys(
		ctx context.Context, org string, limit int, startingAfter string,
	) (domain.Page[domain.KeyView], error)
	Key(ctx context.Context, org, key string) (domain.KeyView, error)
	// Activity gives what happened before a sequence, newest first; 0 begins with the newest.
	Activity(
		ctx context.Context, org string, limit int, before uint64,
	) (domain.Page[domain.Activity], error)
}

// Directory decides and records what people change. A method returns once ReadModels and People
// have it. Errors are domain.Errors, with messages that may be shown.
type Directory interface {
	// CreateOrg begins an organization with its first owner, who does it when the origin is of a
	// member without an id.
	CreateOrg(
		ctx context.Context, o domain.Origin, name, ownerEmail string,
	) (orgID, ownerID string, err error)
	// Account gives the account of an address: the zero state when there is none. EnsureAccount
	// makes one then.
	Account(ctx context.Context, email string) (domain.AccountState, error)
	EnsureAccount(ctx context.Context, o domain.Origin, email string) (domain.AccountState, error)

	Invite(
		ctx context.Context, o domain.Origin, org, email string, role domain.Role,
	) (domain.Invitation, error)
	RevokeInvitation(ctx context.Context, o domain.Origin, org, invitation string) error
	ChangeRole(
		ctx context.Context, o domain.Origin, org, member string, role domain.Role,
	) (domain.Member, error)
	RemoveMember(ctx context.Context, o domain.Origin, org, member string) error

	// CreateKey makes an API key and gives the key itself, which is kept nowhere.
	CreateKey(
		ctx context.Context, o domain.Origin, org, label string, scopes []domain.Scope,
	) (keyID, key string, err error)
	RevokeKey(ctx context.Context, o domain.Origin, key, org string) error

	CreateSite(ctx context.Context, o domain.Origin, org, name string) (domain.SiteState, error)
	RenameSite(
		ctx context.Context, o domain.Origin, org, site, name string,
	) (domain.SiteState, error)
	// AddHub gives the hub to the organization, or moves it there; whether it was ever connected it
	// finds out itself.
	AddHub(ctx context.Context, o domain.Origin, add domain.AddHub) (domain.HubState, error)
	UpdateHub(
		ctx context.Context, o domain.Origin, change domain.UpdateHub,
	) (domain.HubState, error)
	// ResetLink revokes the hub's certificate and then cuts its connection.
	ResetLink(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error
}

// KeyUse says when API keys were used.
type KeyUse interface {
	// LastUsed gives when each of the keys was used last, to some minutes; those that never were
	// are absent.
	LastUsed(ctx context.Context, keys []string) (map[string]time.Time, error)
}

// Mails sends what the portal writes.
type Mails interface {
	// SendSignIn puts a mail with a link into the queue, for whatever address: whether that may
	// have one is asked when it goes out.
	SendSignIn(ctx context.Context, email, link string, expires time.Time) error
}
