package schema

import (
	"time"

	"hubcloud/domain"
)

// Org is a row of Orgs.
type Org struct {
	ID, Name string
	Created  time.Time
}

// Orgs has every organization.
var Orgs = newTable(
	Definition{Name: "orgs", Projection: Directory, Key: []string{"id"}},
	[]column[Org]{
		text("id", func(o *Org) string { return o.ID }),
		text("name", func(o *Org) string { return o.Name }),
		timestamp("created_at", func(o *Org) time.Time { return o.Created }),
	},
)

// Member is a row of Members and of People.
type Member struct {
	OrgID, ID, Email, Role string
	Joined                 time.Time
	// Sequence is the sequence of the event that added the member.
	Sequence uint64
}

// Members has the members of every organization.
var Members = newTable(
	Definition{
		Name: "members", Projection: Directory, Key: []string{"org_id", "id"},
		Indexes: []string{
			"CREATE UNIQUE INDEX members_owners_first ON members " +
				"(org_id, (role <> 'owner'), joined_sequence)",
		},
	},
	[]column[Member]{
		text("org_id", func(m *Member) string { return m.OrgID }),
		text("id", func(m *Member) string { return m.ID }),
		text("email", func(m *Member) string { return m.Email }),
		text("role", func(m *Member) string { return m.Role }),
		timestamp("joined_at", func(m *Member) time.Time { return m.Joined }),
		bigint("joined_sequence", func(m *Member) int64 { return int64(m.Sequence) }),
	},
)

// People has every present and former member: activity shows the addresses of former members.
var People = newTable(
	Definition{Name: "people", Projection: Directory, Key: []string{"org_id", "id"}},
	[]column[Member]{
		text("org_id", func(m *Member) string { return m.OrgID }),
		text("id", func(m *Member) string { return m.ID }),
		text("email", func(m *Member) string { return m.Email }),
	},
)

// Invitation is a row of Invitations.
type Invitation struct {
	OrgID, ID, Email, Role string
	Created, Expires       time.Time
	// Sequence is the sequence of the event that created the invitation.
	Sequence uint64
}

// Invitations has every invitation, also those that have ended.
var Invitations = newTable(
	Definition{
		Name: "invitations", Projection: Directory, Key: []string{"org_id", "id"},
		Indexes: []string{
			"CREATE UNIQUE INDEX invitations_newest_first ON invitations " +
				"(org_id, created_sequence) WHERE status = 'pending'",
		},
	},
	[]column[Invitation]{
		text("org_id", func(i *Invitation) string { return i.OrgID }),
		text("id", func(i *Invitation) string { return i.ID }),
		text("email", func(i *Invitation) string { return i.Email }),
		text("role", func(i *Invitation) string { return i.Role }),
		timestamp("created_at", func(i *Invitation) time.Time { return i.Created }),
		timestamp("expires_at", func(i *Invitation) time.Time { return i.Expires }),
		bigint("created_sequence", func(i *Invitation) int64 { return int64(i.Sequence) }),
	},
	Column{Name: "status", Type: "text"},
)

// Site is a row of Sites.
type Site struct {
	ID, OrgID, Name string
	Created         time.Time
	// Sequence is the sequence of the event that created the site.
	Sequence uint64
}

// Sites has the sites of every organization.
var Sites = newTable(
	Definition{
		Name: "sites", Projection: Directory, Key: []string{"id"},
		Indexes: []string{
			"CREATE UNIQUE INDEX sites_oldest_first ON sites (org_id, created_sequence)",
		},
	},
	[]column[Site]{
		text("id", func(s *Site) string { return s.ID }),
		text("org_id", func(s *Site) string { return s.OrgID }),
		text("name", func(s *Site) string { return s.Name }),
		timestamp("created_at", func(s *Site) time.Time { return s.Created }),
		bigint("created_sequence", func(s *Site) int64 { return int64(s.Sequence) }),
	},
)

// Hub is a row of Hubs.
type Hub struct {
	ID            domain.HubID
	OrgID, SiteID string
	Name          *string
	AddedAt       time.Time
	// ConnectedWhenAdded means that the hub was connected when the organization added it.
	ConnectedWhenAdded bool
	Epoch              domain.Epoch
}

// Hubs has the hubs that organizations have added.
var Hubs = newTable(
	Definition{
		Name: "hubs", Projection: Directory, Key: []string{"id"},
		Indexes: []string{
			"CREATE UNIQUE INDEX hubs_of_org ON hubs (org_id, id)",
			"CREATE UNIQUE INDEX hubs_of_site ON hubs (org_id, site_id, id)",
		},
	},
	[]column[Hub]{
		text("id", func(h *Hub) string { return string(h.ID) }),
		text("org_id", func(h *Hub) string { return h.OrgID }),
		text("site_id", func(h *Hub) string { return h.SiteID }),
		nullableText("name", func(h *Hub) *string { return h.Name }),
		timestamp("registered_at", func(h *Hub) time.Time { return h.AddedAt }),
		boolean("connected_when_added", func(h *Hub) bool { return h.ConnectedWhenAdded }),
		text("epoch", func(h *Hub) string { return h.Epoch.ID.String() }),
		bigint("log_after", func(h *Hub) int64 { return int64(h.Epoch.After) }),
		text("log_former", func(h *Hub) string { return h.Epoch.Former.String() }),
	},
)

// DeviceLabel is a row of DeviceLabels.
type DeviceLabel struct {
	OrgID    string
	HubID    domain.HubID
	DeviceID int64
	domain.DeviceLabel
}

// DeviceLabels has the names and rooms of devices. A device without a label has no row.
var DeviceLabels = newTable(
	Definition{
		Name: "device_labels", Projection: Directory,
		Key: []string{"hub_id", "device_id"},
	},
	[]column[DeviceLabel]{
		text("org_id", func(l *DeviceLabel) string { return l.OrgID }),
		text("hub_id", func(l *DeviceLabel) string { return string(l.HubID) }),
		bigint("device_id", func(l *DeviceLabel) int64 { return l.DeviceID }),
		nullableText("name", func(l *DeviceLabel) *string { return l.Name }),
		nullableText("room", func(l *DeviceLabel) *string { return l.Room }),
	},
).upserting()

// Key is a row of Keys.
type Key struct {
	ID, OrgID, Label, Environment string
	Scopes                        []domain.Scope
	domain.KeyLimits
	SecretHash []byte
	Created    time.Time
}

// Keys has every API key, also those that were revoked.
var Keys = newTable(
	Definition{Name: "api_keys", Projection: Directory, Key: []string{"id"}},
	[]column[Key]{
		text("id", func(k *Key) string { return k.ID }),
		text("org_id", func(k *Key) string { return k.OrgID }),
		text("label", func(k *Key) string { return k.Label }),
		text("environment", func(k *Key) string { return k.Environment }),
		words("scopes", func(k *Key) []string {
			return collect(k.Scopes, func(s *domain.Scope) string { return string(*s) })
		}),
		words("sites", func(k *Key) []string { return k.Sites }),
		nullableTime("expires_at", func(k *Key) time.Time { return k.ExpiresAt }),
		bytea("secret_hash", func(k *Key) []byte { return k.SecretHash }),
		timestamp("created_at", func(k *Key) time.Time { return k.Created }),
	},
	Column{Name: "former_secrets", Type: "text"},
	Column{Name: "revoked_at", Type: "timestamp with time zone"},
)

// Activity has the events of every organization, younger than domain.ActivityRetention.
var Activity = newTable(
	Definition{
		Name: "activity", Projection: Directory, Key: []string{"org_id", "sequence"},
		Indexes: []string{"CREATE INDEX activity_by_time ON activity (at)"},
	},
	[]column[domain.Activity]{
		text("org_id", func(a *domain.Activity) string { return a.OrgID }),
		bigint("sequence", func(a *domain.Activity) int64 { return int64(a.Sequence) }),
		timestamp("at", func(a *domain.Activity) time.Time { return a.At }),
		text("type", func(a *domain.Activity) string { return a.Type }),
		text("actor_kind", func(a *domain.Activity) string { return a.Actor.Kind }),
		text("actor_id", func(a *domain.Activity) string { return a.Actor.ID }),
		text("subject_id", func(a *domain.Activity) string { return a.SubjectID }),
		nullableText("hub_id", func(a *domain.Activity) *string {
			if a.Hub == "" {
				return nil
			}
			hub := string(a.Hub)
			return &hub
		}),
		text("detail", func(a *domain.Activity) string { return a.Detail }),
		text("request_id", func(a *domain.Activity) string { return a.RequestID }),
		text("address", func(a *domain.Activity) string { return a.Address }),
	},
)
