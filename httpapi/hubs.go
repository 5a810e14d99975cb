package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"hubcloud/domain"
)

// hubItem is a hub in the contract's lists.
type hubItem struct {
	ID           domain.HubID   `json:"id"`
	Name         *string        `json:"name"`
	SiteID       string         `json:"site_id"`
	Connection   itemConnection `json:"connection"`
	RegisteredAt string         `json:"registered_at"`
}

type itemConnection struct {
	Status domain.HubStatus `json:"status"`
	Since  string           `json:"since"`
}

// hubBody is the contract's Hub.
type hubBody struct {
	ID           domain.HubID    `json:"id"`
	Name         *string         `json:"name"`
	SiteID       string          `json:"site_id"`
	Connection   hubConnection   `json:"connection"`
	Firmware     json.RawMessage `json:"firmware"`
	Network      json.RawMessage `json:"network"`
	RegisteredAt string          `json:"registered_at"`
}

type hubConnection struct {
	Status           domain.HubStatus `json:"status"`
	Since            string           `json:"since"`
	PublicIP         *string          `json:"public_ip"`
	DisconnectReason *string          `json:"disconnect_reason"`
}

func newHubItem(h domain.Hub) hubItem {
	return hubItem{
		ID: h.ID, Name: h.Name, SiteID: h.SiteID,
		Connection:   itemConnection{Status: h.Status, Since: domain.FormatTime(h.Since)},
		RegisteredAt: domain.FormatTime(h.AddedAt),
	}
}

func newHubBody(h domain.Hub) hubBody {
	return hubBody{
		ID: h.ID, Name: h.Name, SiteID: h.SiteID,
		Connection: hubConnection{
			Status: h.Status, Since: domain.FormatTime(h.Since), PublicIP: h.PublicIP,
			DisconnectReason: h.DisconnectReason,
		},
		Firmware: h.Firmware, Network: h.Network, RegisteredAt: domain.FormatTime(h.AddedAt),
	}
}

func (a *api) listHubs(req *request) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", 1, maxListPage, maxListPage)
	if err != nil {
		return err
	}
	after, given := q.get("starting_after")
	if _, ok := domain.ParseHubID(after); given && !ok {
		return invalid("starting_after: must be an id from the list of hubs")
	}
	var site *string
	if id, given := q.get("site_id"); given {
		if !domain.IsUUID(id) { // no site has this id, so no hub is there
			return req.writeJSON(http.StatusOK, listOf(domain.Page[domain.Hub]{}, newHubItem))
		}
		site = &id
	}
	page, err := a.ReadModels.Hubs(req.ctx, req.key.Reach, site, limit, after)
	return req.answer(http.StatusOK, listOf(page, newHubItem), err)
}

func (a *api) addHub(req *request) error {
	key, err := req.idempotencyKey()
	if err != nil {
		return err
	}
	body := req.readFields("serial", "site_id", "name")
	hub, ok := domain.ParseSerial(body.text("serial"))
	body.require(ok, errBadSerial)
	add := domain.AddHub{
		OrgID: req.key.Reach.OrgID, HubID: hub, SiteID: req.key.Reach.Site(body.text("site_id")),
		Reach: req.key.Reach,
	}
	if body.has("name") {
		name := read(body, "name", body.name)
		add.Name = &name
	}
	body.require(domain.IsUUID(add.SiteID), domain.ErrSiteNotFound())
	if body.err != nil {
		return body.err
	}
	return req.answerOnce(
		http.StatusOK,
		key,
		add,
		func(ctx context.Context, _ string) (any, error) {
			state, err := a.Directory.AddHub(ctx, req.origin(), add)
			if err != nil {
				return nil, err
			}
			return a.changedHub(ctx, req.key.Reach.OrgID, state)
		},
	)
}

var errBadSerial = invalid(
	"serial: must be the one on the hub's label, such as HUB-7K2M-Q4XD-93TA, in any case, with or " +
		"without dashes and spaces",
)

func (a *api) getHub(req *request, id domain.HubID) error {
	hub, err := a.ReadModels.Hub(req.ctx, req.key.Reach.OrgID, id)
	return req.answer(http.StatusOK, newHubBody(hub), err)
}

func (a *api) updateHub(req *request, hub domain.HubID) error {
	body := req.readFields("name", "site_id")
	change := domain.UpdateHub{OrgID: req.key.Reach.OrgID, HubID: hub, SetName: body.has("name")}
	change.Name = read(body, "name", body.nullableName)
	if body.has("site_id") {
		site := req.key.Reach.Site(body.text("site_id"))
		body.require(domain.IsUUID(site), domain.ErrSiteNotFound())
		change.SiteID = &site
	}
	body.require(
		change.SetName || change.SiteID != nil, invalid("body: must have name, site_id, or both"),
	)
	if body.err != nil {
		return body.err
	}
	state, err := a.Directory.UpdateHub(req.ctx, req.origin(), change)
	if err != nil {
		return err
	}
	changed, err := a.changedHub(req.ctx, req.key.Reach.OrgID, state)
	return req.answer(http.StatusOK, changed, err)
}

func (a *api) resetLink(req *request, hub domain.HubID) error {
	return req.answerNothing(a.Directory.ResetLink(req.ctx, req.origin(), req.key.Reach.OrgID, hub))
}
