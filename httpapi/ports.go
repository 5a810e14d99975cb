package httpapi

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
)

// What the portal uses in the same way is declared there.
type (
	Devices   = portal.Devices
	Freshness = portal.Freshness
	Webhooks  = portal.Webhooks
)

// Keys looks up API keys. It is called for each request and must answer from memory.
type Keys interface {
	// Key returns the key with that id, and false if there is none or it was revoked. It may have
	// expired.
	Key(id string) (domain.KeyAccess, bool)
}

// Hubs looks up the organizations of hubs. It must answer from memory, so that the time of an
// answer does not reveal whether another organization has a hub.
type Hubs interface {
	// Hub returns the hub with that id, and false if no organization has added it.
	Hub(id domain.HubID) (domain.HubAccess, bool)
}

// KeyUse records when API keys are used. It is called for each request and must not block.
type KeyUse interface {
	Used(key string, at time.Time)
}

// ReadModels returns the resources of an organization. Errors are domain.Errors: not_found for what
// is not the organization's, and invalid_request for a startingAfter that is not in the list. Lists
// of what is at sites have only what is within the reach.
type ReadModels interface {
	// Sites lists sites, oldest first, after the site startingAfter; "" is the beginning.
	Sites(
		ctx context.Context, reach domain.Reach, limit int, startingAfter string,
	) (domain.Page[domain.Site], error)
	Site(ctx context.Context, org, site string) (domain.Site, error)
	// Hubs lists hubs by id; if site is not nil, only those at that site.
	Hubs(
		ctx context.Context, reach domain.Reach, site *string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
	// States lists the last reported states of the channels that a filter selects, ordered by hub,
	// device, key and endpoint, after a position. A page may have few or none although more follow.
	States(
		ctx context.Context, reach domain.Reach, filter domain.StateFilter, limit int,
		after domain.StatePosition,
	) (domain.StatesPage, error)
	// Members lists members, owners first, then by the time of joining.
	Members(
		ctx context.Context, org string, limit int, startingAfter string,
	) (domain.Page[domain.Member], error)
	Member(ctx context.Context, org, member string) (domain.Member, error)
	// Invitations lists the invitations that are pending at now, newest first.
	Invitations(
		ctx context.Context, org string, limit int, startingAfter string, now time.Time,
	) (domain.Page[domain.Invitation], error)
	// DeviceLabels returns the names and rooms that were set through the API, by device id. Devices
	// without either are absent.
	DeviceLabels(
		ctx context.Context, org string, hub domain.HubID,
	) (map[int64]domain.DeviceLabel, error)
}

// Directory makes the changes that callers request. A method returns once ReadModels, Keys and Hubs
// have the change, or after a limited wait for ReadModels that lag; its result is up to date in any
// case. Methods that take access away return service_unavailable if the change is stored but is not
// known to be in force; the call can be repeated. Errors are domain.Errors: not_found for a site,
// hub, member or invitation that is not the organization's.
type Directory interface {
	// CreateSiteWithID creates a site with that id, a UUIDv7, or with a new id if id is empty. If
	// the site exists already, it is returned unchanged.
	CreateSiteWithID(
		ctx context.Context, o domain.Origin, org, id, name string,
	) (domain.SiteState, error)
	RenameSite(
		ctx context.Context, o domain.Origin, org, site, name string,
	) (domain.SiteState, error)
	// AddHub adds a hub to the organization, or moves a hub that the organization has to another
	// site. It returns hub_not_addable for a hub that is unknown, has never connected, or is
	// another organization's.
	AddHub(ctx context.Context, o domain.Origin, add domain.AddHub) (domain.HubState, error)
	UpdateHub(
		ctx context.Context, o domain.Origin, change domain.UpdateHub,
	) (domain.HubState, error)
	// ResetLink revokes the hub's certificate and closes the hub's connection.
	ResetLink(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error
	// LabelDevice sets the name and the room of a device and returns the new label. The caller must
	// have checked that the hub has the device.
	LabelDevice(
		ctx context.Context, o domain.Origin, change domain.LabelDevice,
	) (domain.DeviceLabel, error)

	// Invite invites a person and has the invitation mailed. It replaces a pending invitation of
	// the same address. It returns invalid_request for a malformed address or a member's, and
	// forbidden for the role owner.
	Invite(
		ctx context.Context, o domain.Origin, org, email string, access domain.Access,
	) (domain.Invitation, error)
	// RevokeInvitation revokes a pending invitation.
	RevokeInvitation(ctx context.Context, o domain.Origin, org, invitation string) error
	// Org returns an organization with every event that was acknowledged before the call.
	Org(ctx context.Context, org string) (domain.OrgState, error)
	// ChangeRole changes a member's role. It returns forbidden for an owner and for the role owner.
	ChangeRole(
		ctx context.Context, o domain.Origin, org, member string, role domain.Role,
	) (domain.Member, error)
	// ChangeAccess is ChangeRole that also decides whether the member may only look.
	ChangeAccess(
		ctx context.Context, o domain.Origin, org, member string, access domain.Access,
	) (domain.Member, error)
	// RemoveMember removes a member. It returns forbidden for an owner.
	RemoveMember(ctx context.Context, o domain.Origin, org, member string) error

	portal.WebhookDirectory
	// ReplayWebhook moves a webhook to a position, or to a time if after is empty.
	ReplayWebhook(
		ctx context.Context, o domain.Origin, org, id, after string, since time.Time,
	) (domain.Webhook, error)
}

// Audit reads the activity of organizations. Errors are as in ReadModels.
type Audit interface {
	// Activity lists the newest activity before a sequence, newest first; 0 is the end.
	Activity(
		ctx context.Context, org string, limit int, before uint64,
	) (domain.Page[domain.Activity], error)
	// ActivityAfter lists the oldest activity after a sequence, and since a time if it is not zero,
	// oldest first.
	ActivityAfter(
		ctx context.Context, org string, limit int, after uint64, since time.Time,
	) (domain.Page[domain.Activity], error)
	// ActivityChanged returns a channel that is closed when the organization has new activity after
	// the call, and AwaitActivity waits until the lists have what was signalled.
	ActivityChanged(org string) <-chan struct{}
	AwaitActivity(ctx context.Context) error
}

// Attention returns what needs attention.
type Attention interface {
	// Attention returns what needs attention at the hubs within a reach, the most urgent first. site
	// and hub restrict it; "" does not. Errors are domain.Errors.
	Attention(
		ctx context.Context, reach domain.Reach, site string, hub domain.HubID,
		info portal.RequestInfo,
	) ([]portal.Attention, error)
}

// PastStates returns what the devices of a hub had last reported.
type PastStates interface {
	// StateAt returns what was known at an instant to a key. Errors are domain.Errors: invalid_request,
	// which names the parameter `at`, for an instant in the future or before the retention of
	// events; and service_unavailable.
	StateAt(
		ctx context.Context, key string, hub domain.HubID, at time.Time,
	) (domain.PastHubState, error)
}

// Commands sends commands to hubs.
type Commands interface {
	portal.Commands
	// Find returns a command that was sent to a hub, as long as the hub's events are kept. The error
	// is not_found or service_unavailable.
	Find(ctx context.Context, hub domain.HubID, id string) (domain.CommandRecord, error)
}

// Codes sets the codes of locks. Errors are domain.Errors: not_found for a hub or a code that the
// organization does not have, invalid_request for a slot that is taken.
type Codes interface {
	portal.Codes
	// MAC returns what stands for a code where requests are compared.
	MAC(code string) []byte
	// Set is SetAll for one lock.
	Set(
		ctx context.Context, o domain.Origin, set domain.SetCredential, code string,
	) (domain.Credential, error)
	// Slots asks a lock which of its slots have a code.
	Slots(
		ctx context.Context, hub domain.HubID, device int64,
	) (protocol.CredentialSlots, error)
}

// Idempotency runs requests that have an Idempotency-Key once.
type Idempotency interface {
	// Once calls do and returns its JSON; for a repeated request with the organization's key it
	// returns the stored JSON. A different request with the key is idempotency_conflict. Concurrent
	// duplicates wait for the first. do gets the id of the resource to create, which is the same
	// each time. Successes, and the errors not_found, invalid_request and forbidden, are stored
	// before they are returned. replayed reports that the answer was stored before.
	Once(
		ctx context.Context, org, key string, request []byte,
		do func(ctx context.Context, id string) ([]byte, error),
	) (answer []byte, replayed bool, err error)
	// Answer returns the JSON that is stored under an organization's key. The error is not_found,
	// or service_unavailable.
	Answer(ctx context.Context, org, key string) ([]byte, error)
}

// Events reads hubs' event logs. Errors are domain.Errors: invalid_request for a malformed cursor,
// cursor_expired for one that cannot be resumed from.
type Events interface {
	// Part returns the first events after the cursor, or the oldest if after is "": at most limit
	// of them, of about bytes bytes in all, and at least one. If there is none, Part waits for one
	// and returns an empty page when wait has passed or ctx ends. The caller must not keep the
	// slice.
	Part(
		ctx context.Context, hub domain.HubID, after string, limit, bytes int, wait time.Duration,
	) (domain.EventPage, error)
	// Follow returns a reader of the events after the cursor, or of new events if after is "".
	Follow(ctx context.Context, hub domain.HubID, after string) (EventReader, error)
	// EndCursor returns a cursor of the log's end: events stored before the call are before it,
	// events stored after the call returns are after it.
	EndCursor(ctx context.Context, hub domain.HubID) (string, error)
	// Since returns a cursor before the events that were stored at t or later, as far as they are
	// kept, and Last one before the newest n events, or before all if there are fewer.
	Since(ctx context.Context, hub domain.HubID, t time.Time) (string, error)
	Last(ctx context.Context, hub domain.HubID, n int) (string, error)
}

// OrgEvents reads the feeds of organizations: the events of all their hubs within a reach. Errors
// are as in Events.
type OrgEvents interface {
	// Part returns the events that the filter chooses, as Events.Part does. A page without events
	// may have more, if many were filtered out.
	Part(
		ctx context.Context, reach domain.Reach, filter domain.EventFilter, after string,
		limit, bytes int, wait time.Duration,
	) (domain.EventPage, error)
	// Follow returns a reader of the events that the filter chooses, as Events.Follow does.
	Follow(
		ctx context.Context, reach domain.Reach, filter domain.EventFilter, after string,
	) (EventReader, error)
	// Since and Last return positions as the methods of Events do. If the filter chooses few of the
	// newest events, Last may find fewer than n.
	Since(t time.Time) string
	Last(
		ctx context.Context, reach domain.Reach, filter domain.EventFilter, n int,
	) (string, error)
	// StatesPosition returns a position from before ReadModels.States: every event that a later
	// call of States lacks is after it. It also fails like States.
	StatesPosition(ctx context.Context, org string) (string, error)
}

// EventReader follows one hub's event log, or the feed of an organization. It is used by one
// goroutine.
type EventReader interface {
	// Next returns not much more than sse.BatchBytes at once. cursor_expired is also for a log that
	// was reset.
	streams.EventReader
	// CaughtUp returns a function that reports whether Next has returned every event that was
	// stored before the call. The function is for the goroutine of the reader.
	CaughtUp(ctx context.Context) (reached func() bool, err error)
	// Lag returns how far Cursor is behind.
	Lag(ctx context.Context) domain.FeedLag
}

// FeedReaders keeps the readers of events that name themselves.
type FeedReaders interface {
	// Saw records that a reader of an organization was given everything up to a position, and how
	// far that is behind. It must not block.
	Saw(org string, id domain.FeedReaderID, position string, lag domain.FeedLag)
	portal.Readers
}

// Enrolment issues certificates to hubs. Errors are domain.Errors: invalid_request and
// unauthenticated.
type Enrolment interface {
	Issue(ctx context.Context, req protocol.CertificateRequest) (protocol.Certificate, error)
}

// Component is the state of one part of the service, as operators see it at /readyz.
type Component struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Degraded reports that the component is not OK but the process can serve all the same.
	Degraded bool `json:"degraded"`
	// Detail describes the fault, or the normal state.
	Detail string `json:"detail"`
	// Action is what an operator can do about the fault; empty if nothing.
	Action string `json:"action"`
}
