package httpapi

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/link"
)

// Keys finds API keys. It is asked on every request and must answer from memory.
type Keys interface {
	// Key gives the key with that id; revoked keys are absent.
	Key(id string) (domain.KeyAccess, bool)
}

// Hubs says whose hubs are. It must answer from memory: a hub of another organization and one that does not exist are told
// apart by nobody, also not by a clock.
type Hubs interface {
	// Hub gives the hub with that id; hubs that no organization has added are absent.
	Hub(id domain.HubID) (domain.HubAccess, bool)
}

// ReadModels answers what an organization has. Errors are domain.Errors: not_found for what is not the organization's, and
// invalid_request for a startingAfter that names no item of the list.
type ReadModels interface {
	// Sites lists sites, oldest first, after the one named by startingAfter; "" begins the list.
	Sites(ctx context.Context, org string, limit int, startingAfter string) (domain.Page[domain.Site], error)
	Site(ctx context.Context, org, site string) (domain.Site, error)
	// Hubs lists hubs by id; site, when not nil, leaves only those at that site.
	Hubs(ctx context.Context, org string, site *string, limit int, startingAfter string) (domain.Page[domain.Hub], error)
	Hub(ctx context.Context, org string, hub domain.HubID) (domain.Hub, error)
}

// Directory decides and records what callers change. A method returns once ReadModels, Keys and Hubs have it. Errors are
// domain.Errors: not_found for a site or hub that is not the organization's.
type Directory interface {
	CreateSite(ctx context.Context, o domain.Origin, org, name string) (domain.SiteState, error)
	RenameSite(ctx context.Context, o domain.Origin, org, site, name string) (domain.SiteState, error)
	// AddHub gives the hub to the organization, or moves it there when the organization has it. It answers hub_not_addable for
	// a hub that is unknown, has never connected, or is another organization's.
	AddHub(ctx context.Context, o domain.Origin, add HubAddition) error
	UpdateHub(ctx context.Context, o domain.Origin, change HubChange) error
	// ResetLink revokes the hub's certificate and then cuts its connection.
	ResetLink(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error
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

// Events reads hubs' event logs. Errors are domain.Errors: invalid_request for a cursor that does not decode, cursor_expired for
// one that cannot be resumed at.
type Events interface {
	// Page gives the first limit events after the cursor, or the oldest when after is "".
	Page(ctx context.Context, hub domain.HubID, after string, limit int) (domain.EventPage, error)
	// Wait is Page, but waits for an event while there is none. It answers an empty page when wait has passed or ctx is done.
	Wait(ctx context.Context, hub domain.HubID, after string, limit int, wait time.Duration) (domain.EventPage, error)
	// Follow reads what follows the cursor, as it comes; after "" begins with the next new event.
	Follow(ctx context.Context, hub domain.HubID, after string) (EventReader, error)
}

// EventReader follows one hub's event log. It is used by one goroutine.
type EventReader interface {
	// Next gives at most limit events that are there now, in order; none when there are none yet. It may give fewer than there are. A log
	// that was begun anew, and events that expired before they were given, are a domain.Error cursor_expired.
	Next(limit int) ([]domain.EncodedEvent, error)
	// Ready gives a channel that is closed once there is more than Next has given: already, when there is more now. It is good for one wait.
	Ready() <-chan struct{}
	// Position is the cursor from which another reader would go on.
	Position() string
	Close()
}

// Enrolment issues hubs their certificates. Errors are domain.Errors: invalid_request and unauthenticated.
type Enrolment interface {
	Issue(ctx context.Context, req link.CertificateRequest) (link.Certificate, error)
}

// Component is one part of the service as /readyz shows it.
type Component struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Detail says what is wrong, or how it is doing. Anyone can read it.
	Detail string `json:"detail"`
}
