package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// HubStatus is the state of a hub's connection.
type HubStatus string

// The statuses of a hub.
const (
	HubOnline  HubStatus = "online"
	HubOffline HubStatus = "offline"
	// HubUnknown means that the hub has not connected since it was added.
	HubUnknown HubStatus = "unknown"
)

// ListedHub is a hub in a list.
type ListedHub struct {
	ID string `json:"id"`
	// Name is nil if the hub has none.
	Name         *string          `json:"name"`
	SiteID       string           `json:"site_id"`
	Connection   ListedConnection `json:"connection"`
	RegisteredAt time.Time        `json:"registered_at"`
}

// ListedConnection is the connection of a hub in a list.
type ListedConnection struct {
	Status HubStatus `json:"status"`
	// Since is when Status last changed.
	Since time.Time `json:"since"`
}

// Hub is a hub.
type Hub struct {
	ID string `json:"id"`
	// Name is nil if the hub has none.
	Name       *string    `json:"name"`
	SiteID     string     `json:"site_id"`
	Connection Connection `json:"connection"`
	// Firmware and Network are nil until the hub has connected once.
	Firmware     *Firmware `json:"firmware"`
	Network      *Network  `json:"network"`
	RegisteredAt time.Time `json:"registered_at"`
}

// Connection is the connection of a hub.
type Connection struct {
	ListedConnection
	PublicIP         *string `json:"public_ip"`
	DisconnectReason *string `json:"disconnect_reason"`
}

// Firmware describes the software of a hub.
type Firmware struct {
	Version string `json:"version"`
}

// Network is what a hub reported about its network when it last connected.
type Network struct {
	// Type is wifi, ethernet or cellular.
	Type        string  `json:"type"`
	Interface   string  `json:"interface"`
	IPAddress   *string `json:"ip_address"`
	IPv6Address *string `json:"ipv6_address"`
	MACAddress  *string `json:"mac_address"`
	SSID        *string `json:"ssid"`
	// SignalDBm is the strength of the radio signal, in dBm.
	SignalDBm  *int      `json:"signal_dbm"`
	Carrier    *string   `json:"carrier"`
	Radio      *string   `json:"radio"`
	Metered    bool      `json:"metered"`
	ReportedAt time.Time `json:"reported_at"`
}

// Hubs lists the organization's hubs by id; if siteID is not "", only those at that site. Scope
// hubs:read.
func (c *Client) Hubs(ctx context.Context, siteID string) iter.Seq2[ListedHub, error] {
	return all(func(after string) (Page[ListedHub], error) {
		return c.HubsPage(ctx, siteID, PageQuery{StartingAfter: after})
	}, func(h ListedHub) string { return h.ID })
}

// HubsPage reads one page of the list of hubs; siteID is as for Hubs. Scope hubs:read.
func (c *Client) HubsPage(ctx context.Context, siteID string, query PageQuery) (Page[ListedHub], error) {
	return page[ListedHub](ctx, c, route("hubs"), query.values().with(parameters{"site_id": siteID}))
}

// HubAddition is the input of Client.AddHub.
type HubAddition struct {
	// Serial is the one on the hub's label, in any case, with or without dashes.
	Serial string `json:"serial"`
	SiteID string `json:"site_id"`
	// Name is the hub's name; nil leaves it unchanged.
	Name *string `json:"name,omitempty"`
}

// AddHub adds a hub to a site, or moves a hub that the organization has already to the site. Scope
// hubs:write. Returns ErrNotFound for the site, and ErrHubNotAddable, after which a retry makes
// sense once the hub is online.
func (c *Client) AddHub(ctx context.Context, add HubAddition) (Hub, error) {
	return create[Hub](ctx, c, route("hubs"), add)
}

// Hub returns a hub. Scope hubs:read. Returns ErrNotFound.
func (c *Client) Hub(ctx context.Context, hubID string) (Hub, error) {
	return get[Hub](ctx, c, route("hubs", hubID))
}

// HubUpdate changes a hub's name, its site, or both.
type HubUpdate struct {
	Name Change `json:"name,omitzero"`
	// SiteID is the new site; "" leaves it unchanged.
	SiteID string `json:"site_id,omitempty"`
}

// UpdateHub renames or moves a hub. Scope hubs:write. Returns ErrNotFound for the hub and for the
// site.
func (c *Client) UpdateHub(ctx context.Context, hubID string, update HubUpdate) (Hub, error) {
	return change[Hub](ctx, c, route("hubs", hubID), update)
}

// ResetLink revokes the hub's certificate and disconnects the hub, which then gets a new
// certificate: within six hours, or at once after a restart of the hub. Scope hubs:write. Returns
// ErrNotFound. ResetLink is not retried once the service may have received it, unless the service
// asks for a retry: a second reset would revoke the new certificate.
func (c *Client) ResetLink(ctx context.Context, hubID string) error {
	_, err := c.do(
		ctx, call{method: http.MethodPost, path: route("hubs", hubID, "reset-link"), once: true},
		nil,
	)
	return err
}

// WaitOnline returns when the hub is online: at once if it is already, otherwise with its
// hub.connected event. Call it after ErrHubOffline if the hub must be reached. Scopes hubs:read and
// events:read. It returns ctx's error when ctx ends.
func (c *Client) WaitOnline(ctx context.Context, hubID string) error {
	position, err := c.Position(ctx, hubID) // before reading the state, so that no event is missed
	if err != nil {
		return err
	}
	hub, err := c.Hub(ctx, hubID)
	if err != nil || hub.Connection.Status == HubOnline {
		return err
	}
	for event, err := range c.Events(ctx, hubID, position) {
		switch {
		case IsGap(err):
		case err != nil:
			return err
		case event.Type == EventHubConnected:
			return nil
		}
	}
	return ctx.Err()
}
