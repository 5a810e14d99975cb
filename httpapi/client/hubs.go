package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// HubStatus is how the cloud sees a hub.
type HubStatus string

// The statuses of a hub.
const (
	HubOnline  HubStatus = "online"
	HubOffline HubStatus = "offline"
	// HubUnknown: it has not connected since it was added.
	HubUnknown HubStatus = "unknown"
)

// ListedHub is a hub as lists have it.
type ListedHub struct {
	ID string `json:"id"`
	// Name is nil when the hub has none.
	Name         *string          `json:"name"`
	SiteID       string           `json:"site_id"`
	Connection   ListedConnection `json:"connection"`
	RegisteredAt time.Time        `json:"registered_at"`
}

// ListedConnection is the connection of a hub as lists have it.
type ListedConnection struct {
	Status HubStatus `json:"status"`
	// Since is when Status last changed.
	Since time.Time `json:"since"`
}

// Hub is a hub.
type Hub struct {
	ID string `json:"id"`
	// Name is nil when the hub has none.
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

// Firmware is what runs on a hub.
type Firmware struct {
	Version string `json:"version"`
}

// Network is what a hub reported of its network when it last connected.
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

// Hubs lists the organization's hubs by id; siteID, when not "", leaves only those at that site.
// Scope hubs:read.
func (c *Client) Hubs(ctx context.Context, siteID string) iter.Seq2[ListedHub, error] {
	return all(func(after string) (Page[ListedHub], error) {
		return c.HubsPage(ctx, siteID, PageQuery{StartingAfter: after})
	}, func(h ListedHub) string { return h.ID })
}

// HubsPage reads one page of the list of hubs; siteID is as for Hubs. Scope hubs:read.
func (c *Client) HubsPage(
	ctx context.Context, siteID string, query PageQuery,
) (Page[ListedHub], error) {
	values := query.values()
	if siteID != "" {
		values.Set("site_id", siteID)
	}
	return page[ListedHub](ctx, c, route("hubs"), values)
}

// HubAddition is what adding a hub takes.
type HubAddition struct {
	// Serial is as printed on the hub, in any case, with or without dashes.
	Serial string `json:"serial"`
	SiteID string `json:"site_id"`
	// Name is the hub's name; nil leaves it as it is.
	Name *string `json:"name,omitempty"`
}

// AddHub puts a hub at a site, or moves one there that the organization has already. Scope
// hubs:write. ErrNotFound for the site; ErrHubNotAddable, which is worth another call once the hub
// is online.
func (c *Client) AddHub(ctx context.Context, add HubAddition) (Hub, error) {
	var h Hub
	_, err := c.do(
		ctx,
		call{
			method:         http.MethodPost,
			path:           route("hubs"),
			body:           add,
			idempotencyKey: NewIdempotencyKey(),
		},
		&h,
	)
	return h, err
}

// Hub reads a hub. Scope hubs:read. ErrNotFound.
func (c *Client) Hub(ctx context.Context, hubID string) (Hub, error) {
	var h Hub
	_, err := c.do(ctx, call{method: http.MethodGet, path: route("hubs", hubID)}, &h)
	return h, err
}

// HubUpdate is what changes about a hub: its name, its site, or both.
type HubUpdate struct {
	Name Change `json:"name,omitzero"`
	// SiteID is where the hub goes; "" leaves it where it is.
	SiteID string `json:"site_id,omitempty"`
}

// UpdateHub names or moves a hub. Scope hubs:write. ErrNotFound for the hub and for the site.
func (c *Client) UpdateHub(ctx context.Context, hubID string, update HubUpdate) (Hub, error) {
	var h Hub
	_, err := c.do(
		ctx, call{method: http.MethodPatch, path: route("hubs", hubID), body: update}, &h,
	)
	return h, err
}

// ResetLink revokes the hub's certificate and disconnects it, so that it can be issued a new one:
// within six hours, or at once when it is restarted. Scope hubs:write. ErrNotFound. It is not
// repeated once the service may have got it, unless the service asks for that: a second reset would
// end the certificate that the hub got after the first.
func (c *Client) ResetLink(ctx context.Context, hubID string) error {
	_, err := c.do(
		ctx, call{method: http.MethodPost, path: route("hubs", hubID, "reset-link"), once: true},
		nil,
	)
	return err
}

// WaitOnline waits until the hub is online: at once when it is, otherwise for its hub.connected
// event. It is what to do about ErrHubOffline when there is something that must reach the hub.
// Scopes hubs:read and events:read. It ends with ctx.
func (c *Client) WaitOnline(ctx context.Context, hubID string) error {
	position, err := c.Position(ctx, hubID) // before the look, so that nothing falls between
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
