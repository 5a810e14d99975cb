package httpapi

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Keys finds API keys. It is asked on every request and must answer from memory.
type Keys interface {
	// Key gives the key with that id; revoked keys are absent.
	Key(id string) (domain.KeyAccess, bool)
}

// Hubs says whose hubs are. It must answer from memory: a hub of another organization and one that
// does not exist are told apart by nobody, also not by a clock.
type Hubs interface {
	// Hub gives the hub with that id; hubs that no organization has added are absent.
	Hub(id domain.HubID) (domain.HubAccess, bool)
}

// KeyUse hears which API keys are used. It is told of every request and must not wait for anything.
type KeyUse interface {
	Used(key string, at time.Time)
}

// ReadModels answers what an organization has. Errors are domain.Errors: not_found for what is not
// the organization's, and invalid_request for a startingAfter that names no item of the list.
type ReadModels interface {
	// Sites lists sites, oldest first, after the one named by startingAfter; "" begins the list.
	Sites(
		ctx context.Context, org string, limit int, startingAfter string,
	) (domain.Page[domain.Site], error)
	Site(ctx context.Context, org, site string) (domain.Site, error)
	// Hubs lists hubs by id; site, when not nil, leaves only those at that site.
	Hubs(
		ctx context.Context, org string, site *string, limit int, startingAfter string,
	) (domain.Page[domain.Hub], error)
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
	// Members lists members, owners first, then by joining.
	Members(
		ctx context.Context, org string, limit int, startingAfter string,
	) (domain.Page[domain.Member], error)
	Member(ctx context.Context, org, member string) (domain.Member, error)
	// Invitations lists those that are pending at now, newest first.
	Invitations(
		ctx context.Context, org string, limit int, startingAfter string, now time.Time,
	) (domain.Page[domain.Invitation], error)
	// DeviceLabels gives what was set through the API for the hub's devices, by device id; devices
	// without are absent.
	DeviceLabels(
		ctx context.Context, org string, hub domain.HubID,
	) (map[int64]domain.DeviceLabel, error)
}

// Directory decides and records what callers change. A method returns once ReadModels, Keys and
// Hubs have it; ReadModels that stand still have it later, and what it returns is what is so.
// Errors are domain.Errors: not_found for a site or hub that is not the organization's.
type Directory interface {
	// CreateSiteAs makes a site with that id, a UUIDv7; an empty id makes one. A site that has the
	// id already is returned as it is.
	CreateSiteAs(
		ctx context.Context, o domain.Origin, org, id, name string,
	) (domain.SiteState, error)
	RenameSite(
		ctx context.Context, o domain.Origin, org, site, name string,
	) (domain.SiteState, error)
	// AddHub gives the hub to the organization, or moves it there when the organization has it. It
	// answers hub_not_addable for a hub that is unknown, has never connected, or is another
	// organization's.
	AddHub(ctx context.Context, o domain.Origin, add HubAddition) (domain.HubState, error)
	UpdateHub(ctx context.Context, o domain.Origin, change HubChange) (domain.HubState, error)
	// ResetLink revokes the hub's certificate and then cuts its connection.
	ResetLink(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error
	// LabelDevice names and places a device, and gives what is set for it then. That the hub has
	// the device has been asked before.
	LabelDevice(
		ctx context.Context, o domain.Origin, change domain.LabelDevice,
	) (domain.DeviceLabel, error)

	// Invite invites a person and sees to it that the link is mailed. A pending invitation of the
	// same address is replaced. It answers invalid_request for what is no address or a member's,
	// and forbidden for the role owner.
	Invite(
		ctx context.Context, o domain.Origin, org, email string, role domain.Role,
	) (domain.Invitation, error)
	// RevokeInvitation ends one that is pending; any other is not_found.
	RevokeInvitation(ctx context.Context, o domain.Origin, org, invitation string) error
	// ChangeRole and RemoveMember answer not_found for who is no member, and forbidden for an owner
	// and for the role owner.
	ChangeRole(
		ctx context.Context, o domain.Origin, org, member string, role domain.Role,
	) (domain.Member, error)
	RemoveMember(ctx context.Context, o domain.Origin, org, member string) error
}

// Devices asks hubs, live. Errors are domain.Errors: not_found for a device that the hub does not
// have, hub_offline at once for a hub that is not connected, hub_unavailable, hub_timeout and
// hub_error.
type Devices interface {
	// List gives the hub's devices, their channels without values and status.
	List(ctx context.Context, hub domain.HubID) ([]domain.Device, error)
	// Get gives one device, with everything.
	Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error)
	// Forget makes the hub forget a device that it can no longer reach; one that it can is an
	// invalid_request.
	Forget(ctx context.Context, hub domain.HubID, device int64) error
	// OpenPairing opens the pairing window; the setup code is the device's own, nil when there is
	// none. One that the hub cannot use is an invalid_request.
	OpenPairing(ctx context.Context, hub domain.HubID, setupCode *string) (domain.Window, error)
	ClosePairing(ctx context.Context, hub domain.HubID) error
	OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error)
	CloseRemoval(ctx context.Context, hub domain.HubID) error
}

// Commands has hubs run commands.
type Commands interface {
	// Send gives the channel once the hub has accepted the command, in the status pending. Under
	// one IdempotencyKey of an organization the hub runs one command once, however often and
	// wherever it is sent; another command under it is idempotency_conflict. The other errors are
	// those of Devices, and command_refused and invalid_request from the hub. A caller that is gone
	// does not end what it began.
	Send(ctx context.Context, o domain.Origin, command domain.Command) (domain.Channel, error)
}

// Once does what is asked under an Idempotency-Key once.
type Once interface {
	// Once returns the JSON that do returned, the first time that it was done under an
	// organization's key. Another request under the same key is idempotency_conflict. Twins wait
	// for one another. do gets the id of what it makes, the same each time; its success, and its
	// not_found, invalid_request and forbidden, are stored before they are returned.
	Once(
		ctx context.Context, org, key string, request []byte,
		do func(ctx context.Context, id string) ([]byte, error),
	) ([]byte, error)
}

// HubAddition is what POST /hubs asks for.
type HubAddition struct {
	OrgID string
	HubID domain.HubID
	// SiteID is a UUID in its canonical form; whether there is such a site is not known yet.
	SiteID string
	// Name is the hub's new name; nil leaves it as it is.
	Name *string
}

// HubChange is what PATCH /hubs/{hub_id} asks for.
type HubChange struct {
	OrgID string
	HubID domain.HubID
	// Name is the new name when SetName; nil clears it.
	SetName bool
	Name    *string
	// SiteID is where the hub goes; nil leaves it where it is.
	SiteID *string
}

// Events reads hubs' event logs. Errors are domain.Errors: invalid_request for a cursor that does
// not decode, cursor_expired for one that cannot be resumed at.
type Events interface {
	// Part returns the first events after the cursor, or the oldest when after is "": at most
	// limit, of at most about so many bytes, and one at least. While there is none it waits for
	// one: it answers an empty page when wait has passed or ctx is done. The slice must not be
	// kept.
	Part(
		ctx context.Context, hub domain.HubID, after string, limit, bytes int, wait time.Duration,
	) (domain.EventPage, error)
	// Follow reads what follows the cursor, as it comes; after "" begins with the next new event.
	Follow(ctx context.Context, hub domain.HubID, after string) (EventReader, error)
	// Position gives a cursor of the log's end: what is stored before the call lies before it, what
	// is stored afterwards behind it.
	Position(ctx context.Context, hub domain.HubID) (string, error)
}

// ErrEventsClosed is what an EventReader answers once the service has stopped reading event logs:
// no fault, and nothing is lost.
var ErrEventsClosed = errors.New("the event logs are closed")

// EventReader follows one hub's event log. It is used by one goroutine.
type EventReader interface {
	// Next returns at most limit events that are there now, in order, and not much more than 32 KiB
	// of them; none when there are none yet. It may give fewer than there are. The slice must not
	// be kept. A log that was begun anew, and events that expired before they were given, are a
	// domain.Error cursor_expired; ErrEventsClosed ends it for good.
	Next(limit int) ([]domain.EncodedEvent, error)
	// Ready gives a channel that is closed once there is more than Next has given: already, when
	// there is more now. It is good for one wait.
	Ready() <-chan struct{}
	// Position is the cursor from which another reader would go on.
	Position() string
	Close()
}

// Enrolment issues hubs their certificates. Errors are domain.Errors: invalid_request and
// unauthenticated.
type Enrolment interface {
	Issue(ctx context.Context, req protocol.CertificateRequest) (protocol.Certificate, error)
}

// Component is one part of the service as /readyz shows it to operators.
type Component struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Degraded says that it is not OK and that the process serves all the same: it should be asked,
	// and an operator should look.
	Degraded bool `json:"degraded"`
	// Detail says what is wrong, or how it is doing.
	Detail string `json:"detail"`
	// Action says what an operator can do about it; empty when there is nothing to do.
	Action string `json:"action"`
}
