package client

import (
	"context"
	"iter"
	"time"
)

// Site is a building.
type Site struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	HubCount  int       `json:"hub_count"`
	CreatedAt time.Time `json:"created_at"`
}

// Sites lists the organization's sites, oldest first. Scope sites:read.
func (c *Client) Sites(ctx context.Context) iter.Seq2[Site, error] {
	return all(func(after string) (Page[Site], error) {
		return c.SitesPage(ctx, PageQuery{StartingAfter: after})
	}, func(s Site) string { return s.ID })
}

// SitesPage reads one page of the list of sites. Scope sites:read.
func (c *Client) SitesPage(ctx context.Context, query PageQuery) (Page[Site], error) {
	return page[Site](ctx, c, route("sites"), query.values())
}

// CreateSite creates a site. Scope sites:write. It sends an idempotency key, so that a retry does
// not create a second site.
func (c *Client) CreateSite(ctx context.Context, name string) (Site, error) {
	return create[Site](ctx, c, route("sites"), siteName{name})
}

// Site returns a site. Scope sites:read. Returns ErrNotFound.
func (c *Client) Site(ctx context.Context, siteID string) (Site, error) {
	return get[Site](ctx, c, route("sites", siteID))
}

// RenameSite renames a site. Scope sites:write. Returns ErrNotFound.
func (c *Client) RenameSite(ctx context.Context, siteID, name string) (Site, error) {
	return change[Site](ctx, c, route("sites", siteID), siteName{name})
}

type siteName struct {
	Name string `json:"name"`
}
