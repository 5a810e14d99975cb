package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// Invitations accepts invitations.
type Invitations interface {
	// AcceptInvitation makes the invited person a member. Accepting again changes nothing and
	// returns Already. The error is not_found for an unknown or revoked token, and
	// domain.ErrInvitationExpired for an expired one. The implementation sets the origin's actor.
	AcceptInvitation(ctx context.Context, o domain.Origin, token string) (domain.Acceptance, error)
}

// People looks up memberships. It is called on every request and must answer from memory. Addresses
// are compared as domain.NormalizeEmail does.
type People interface {
	// Memberships returns the memberships of an address, ordered by the organizations' names.
	Memberships(email string) []domain.MemberAccess
	// Membership returns the membership of an address in an organization.
	Membership(org, email string) (domain.MemberAccess, bool)
}

// SignIn stores sign-in links and sessions. Tokens are secrets: only their hashes are stored.
type SignIn interface {
	// NewLink stores a link until it expires and returns its token.
	NewLink(ctx context.Context, link domain.SignInLink) (token string, err error)
	// Link returns a link without using it. A used, expired or unknown link is
	// domain.ErrSignInLink.
	Link(ctx context.Context, token string, now time.Time) (domain.SignInLink, error)
	// UseLink uses a link and returns it. Of several concurrent calls one succeeds; the others get
	// domain.ErrSignInLink.
	UseLink(ctx context.Context, token string, now time.Time) (domain.SignInLink, error)
	// Begin stores a session and returns its token, which is new.
	Begin(ctx context.Context, session domain.PortalSession) (token string, err error)
	// Session returns a session. An ended, expired or unknown session is domain.ErrNotSignedIn.
	Session(ctx context.Context, token string, now time.Time) (domain.PortalSession, error)
	// End ends a session. An unknown session is no error.
	End(ctx context.Context, token string) error
	// ClaimForm reports whether the session's form with this submission id is submitted for the
	// first time.
	ClaimForm(ctx context.Context, token, form string) (first bool, err error)
	// ReleaseForm makes the next ClaimForm for the form return true again.
	ReleaseForm(ctx context.Context, token, form string) error
	// UseInvitation reports whether the link of an invitation, which ends at expires, signs in for
	// the first time.
	UseInvitation(ctx context.Context, token string, expires, now time.Time) (first bool, err error)
	// Allow counts one more action with that name, of which perHour are allowed within an hour and
	// burst at once, on all replicas together. It returns 0 if the action is allowed, and otherwise
	// how long to wait.
	Allow(
		ctx context.Context, name string, burst, perHour int, now time.Time,
	) (wait time.Duration, err error)
	// Ended returns a channel that is closed when the session ends, on whichever replica. The
	// channel of a session that ended before the call stays open: call Session afterwards. The
	// caller must call forget in the end.
	Ended(token string) (ended <-chan struct{}, forget func())
}

// ReadModels reads what an organization has. Errors are domain.Errors: not_found for an item that
// the organization does not have, invalid_request for a startingAfter that does not exist (any
// more). Lists return up to limit items after the item startingAfter, or the first if that is "".
type ReadModels interface {
	// Sites returns sites in the order of their creation.
	Sites(
		ctx context.Context, reach domain.Reach, limit int, startingAfter string,
	) (domain.Page[domain.Site], error)
	// Hubs returns hubs in the order of their ids, only those at the site unless site is nil.
	Hubs(
		ctx context.Context, reach domain.Reach, site *string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	// FindHubs returns the hubs at a site whose name, id or serial contains text. An empty site
	// means every site, an empty text every hub.
	FindHubs(
		ctx context.Context, org, site, text string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	// Hub returns a hub with all details.
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
	// DeviceLabels returns the names and rooms that members set for a hub's devices, by device id.
	DeviceLabels(
		ctx context.Context, org string, hub domain.HubID,
	) (map[int64]domain.DeviceLabel, error)
	Site(ctx context.Context, org, site string) (domain.Site, error)
	// FindMembers returns the members whose address contains text, owners first. An empty text
	// means every member.
	FindMembers(
		ctx context.Context, org, text string, limit int, startingAfter string,
	) (domain.Page[domain.Member], error)
	Member(ctx context.Context, org, member string) (domain.Member, error)
	// Invitations returns the invitations that are pending at now.
	Invitations(
		ctx context.Context, org string, limit int, startingAfter string, now time.Time,
	) (domain.Page[domain.Invitation], error)
	// Keys returns API keys: keys in force before revoked ones, newest first.
	Keys(
		ctx context.Context, org string, limit int, startingAfter string,
	) (domain.Page[domain.KeyView], error)
	// Key returns an API key, revoked or not.
	Key(ctx context.Context, org, key string) (domain.KeyView, error)
	// Activity returns the organization's activity before a sequence, newest first; 0 means the
	// newest.
	Activity(
		ctx context.Context, org string, limit int, before uint64,
	) (domain.Page[domain.Activity], error)
}

// Directory decides about and records changes. A method returns once ReadModels and People show the
// change. Errors are domain.Errors whose messages may be shown.
type Directory interface {
	WebhookDirectory
	// CreateOrg creates an organization and its first owner. An origin with the actor kind member
	// and no actor id gets the owner's id.
	CreateOrg(
		ctx context.Context, o domain.Origin, name, ownerEmail string,
	) (orgID, ownerID string, err error)
	// Org returns an organization with every event that was acknowledged before the call.
	Org(ctx context.Context, org string) (domain.OrgState, error)
	// SeeConditions records that a member has seen occurrences of conditions of hubs or, if undo is
	// set, takes back that they were seen.
	SeeConditions(
		ctx context.Context, o domain.Origin, org string, occurrences []domain.Occurrence, undo bool,
	) error
	// SetMailPreferences sets which conditions a member gets mails about.
	SetMailPreferences(
		ctx context.Context, o domain.Origin, org, member string, p domain.MailPreferences,
	) error
	// StopMails ends all mails about conditions to a member, who becomes the actor.
	StopMails(ctx context.Context, o domain.Origin, org, member string) error
	// SetBook chooses what an organization keeps of its events.
	SetBook(ctx context.Context, o domain.Origin, org string, want domain.BookSettings) error
	// Undo sets back what a request of the actor changed within domain.UndoTime at sites and hubs or,
	// without any, at the organization itself. What was changed again meanwhile stays. It returns
	// domain.ErrCannotUndo for any other request.
	Undo(
		ctx context.Context, o domain.Origin, org, request string, sites []string, hubs []domain.HubID,
	) (domain.Undone, error)
	// RenameOrg renames an organization.
	RenameOrg(ctx context.Context, o domain.Origin, org, name string) error
	// Account returns the account of an address, or the zero state if there is none.
	Account(ctx context.Context, email string) (domain.AccountState, error)
	// EnsureAccount returns the account of an address, and creates it if there is none.
	EnsureAccount(ctx context.Context, o domain.Origin, email string) (domain.AccountState, error)
	// IdentifiedAccount returns the account that is bound to an identity, or the zero state.
	IdentifiedAccount(ctx context.Context, identity domain.Identity) (domain.AccountState, error)
	// BindIdentity binds the account of an address to an identity, and creates it if there is none.
	// An account that is bound to another identity is forbidden, unless replace is set.
	BindIdentity(
		ctx context.Context, o domain.Origin, email string, identity domain.Identity, replace bool,
	) (domain.AccountState, error)
	// SetGroupAccess makes the membership of an address what groups allow: access, "" for nothing.
	SetGroupAccess(
		ctx context.Context, o domain.Origin, org, email string, access domain.Access,
	) error

	Invite(
		ctx context.Context, o domain.Origin, org, email string, access domain.Access,
	) (domain.Invitation, error)
	RevokeInvitation(ctx context.Context, o domain.Origin, org, invitation string) error
	// ChangeAccess changes what a member may do.
	ChangeAccess(
		ctx context.Context, o domain.Origin, org, member string, access domain.Access,
	) (domain.Member, error)
	// NameMember sets the name that pages show for the actor; "" removes it.
	NameMember(ctx context.Context, o domain.Origin, org, name string) error
	RemoveMember(ctx context.Context, o domain.Origin, org, member string) error

	// CreateKey creates an API key and returns its id and the key, which is not stored.
	CreateKey(
		ctx context.Context, o domain.Origin, org, label string, scopes []domain.Scope,
		limits domain.KeyLimits,
	) (keyID, key string, err error)
	// ChangeKey sets the limits of an API key.
	ChangeKey(
		ctx context.Context, o domain.Origin, key, org string, limits domain.KeyLimits,
	) error
	// RotateKey replaces the secret of an API key and returns the key with the new one, which is not stored.
	// The former secret works for the time overlap.
	RotateKey(
		ctx context.Context, o domain.Origin, key, org string, overlap time.Duration,
	) (secret string, err error)
	RevokeKey(ctx context.Context, o domain.Origin, key, org string) error

	CreateSite(ctx context.Context, o domain.Origin, org, name string) (domain.SiteState, error)
	RenameSite(
		ctx context.Context, o domain.Origin, org, site, name string,
	) (domain.SiteState, error)
	// AddVirtualHub adds the organization's virtual hub at a site; one that it has stays where it is.
	AddVirtualHub(
		ctx context.Context, o domain.Origin, org, site string,
	) (domain.HubState, error)
	// AddHub adds a hub to the organization, or moves a hub of the organization to another site. A
	// hub that has never connected is hub_not_addable.
	AddHub(ctx context.Context, o domain.Origin, add domain.AddHub) (domain.HubState, error)
	UpdateHub(
		ctx context.Context, o domain.Origin, change domain.UpdateHub,
	) (domain.HubState, error)
	// RemoveHub takes a hub away from the organization, and then cuts its connection.
	RemoveHub(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error
	// ResetLink revokes the hub's certificate and then cuts its connection.
	ResetLink(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error
}

// Unsubscribe has the key of the links that end mails about alarms.
type Unsubscribe interface {
	// UnsubscribeKey returns the key. A temporary fault is a domain.Error with
	// service_unavailable.
	UnsubscribeKey(ctx context.Context) (domain.UnsubscribeKey, error)
}

// KeyUse reads when API keys were last used.
type KeyUse interface {
	// LastUsed returns when each of the keys was last used, to a few minutes. Keys that were never
	// used are absent.
	LastUsed(ctx context.Context, keys []string) (map[string]time.Time, error)
}

// Mails queues the portal's mails.
type Mails interface {
	// SendSignIn queues a mail with a sign-in link. Whether the address may have a link is decided
	// when the mail is sent.
	SendSignIn(ctx context.Context, email, link string, expires time.Time) error
	// SendTest queues a mail to a member like those about alarms.
	SendTest(ctx context.Context, org domain.OrgState, member string) error
}

// Freshness reports whether what this replica has in memory is up to date: keys, the owners of hubs,
// members and sessions. A replica that loses the broker does not learn that a key was revoked.
type Freshness interface {
	// Fresh reports whether they are up to date now.
	Fresh() bool
	// Confirm waits until they are up to date, and returns service_unavailable if that takes too
	// long.
	Confirm(ctx context.Context) error
	// Lost returns a channel that is closed when the replica loses the broker.
	Lost() <-chan struct{}
}
