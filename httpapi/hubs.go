package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"hubcloud/domain"
)

// hubItem is the contract's list form of a hub.
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

// appendJSON writes the hub as encoding/json does.
func (h hubItem) appendJSON(dst []byte) []byte {
	dst = appendText(append(dst, `{"id":`...), string(h.ID))
	dst = appendNullableText(append(dst, `,"name":`...), h.Name)
	dst = appendText(append(dst, `,"site_id":`...), h.SiteID)
	dst = appendText(append(dst, `,"connection":{"status":`...), string(h.Connection.Status))
	dst = appendText(append(dst, `,"since":`...), h.Connection.Since)
	dst = appendText(append(dst, `},"registered_at":`...), h.RegisteredAt)
	return append(dst, '}')
}

// hubBody is the contract's single form of a hub.
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

func itemOfHub(h domain.Hub) hubItem {
	return hubItem{
		ID: h.ID, Name: h.Name, SiteID: h.SiteID,
		Connection:   itemConnection{Status: h.Status, Since: domain.FormatTime(h.Since)},
		RegisteredAt: domain.FormatTime(h.RegisteredAt),
	}
}

func formOfHub(h domain.Hub) hubBody {
	return hubBody{
		ID: h.ID, Name: h.Name, SiteID: h.SiteID,
		Connection: hubConnection{
			Status: h.Status, Since: domain.FormatTime(h.Since), PublicIP: h.PublicIP,
			DisconnectReason: h.DisconnectReason,
		},
		Firmware: h.Firmware, Network: h.Network, RegisteredAt: domain.FormatTime(h.RegisteredAt),
	}
}

func (a *api) listHubs(x *exchange) error {
	q, err := readQuery(x.r.URL.RawQuery, "limit", "starting_after", "site_id")
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", 1, maxListPage, maxListPage)
	if err != nil {
		return err
	}
	after, given := q.get("starting_after")
	if _, ok := domain.ParseHubID(after); given && !ok {
		return invalid("starting_after: must be the id of a hub of the list")
	}
	var site *string
	if id, given := q.get("site_id"); given {
		if !domain.IsUUID(id) {
			// there are no hubs at no site
			return writeList(x, domain.Page[domain.Hub]{}, itemOfHub)
		}
		site = &id
	}
	page, err := a.ReadModels.Hubs(x.ctx, x.key.OrgID, site, limit, after)
	if err != nil {
		return err
	}
	return writeList(x, page, itemOfHub)
}

func (a *api) addHub(x *exchange) error {
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return err
	}
	body, err := x.readObject("serial", "site_id", "name")
	if err != nil {
		return err
	}
	add := HubAddition{OrgID: x.key.OrgID}
	serial, err := body.text("serial")
	if err != nil {
		return err
	}
	var ok bool
	if add.HubID, ok = domain.ParseSerial(serial); !ok {
		return invalid(
			"serial: must be as printed on the hub's label, such as HUB-7K2M-Q4XD-93TA, in any " +
				"case, with or without dashes",
		)
	}
	if add.SiteID, err = body.text("site_id"); err != nil {
		return err
	}
	if body.has("name") {
		name, err := body.text("name")
		if err != nil {
			return err
		}
		if name, err = domain.CleanName("name", name); err != nil {
			return err
		}
		add.Name = &name
	}
	if !domain.IsUUID(add.SiteID) {
		return domain.ErrSiteNotFound()
	}
	return x.answerOnce(http.StatusOK, key, add, func(ctx context.Context, _ string) (any, error) {
		state, err := a.Directory.AddHub(ctx, x.origin(), add)
		if err != nil {
			return nil, err
		}
		return a.changedHub(ctx, x.key.OrgID, state)
	})
}

func (a *api) getHub(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	return a.answerHub(x, hub)
}

func (a *api) updateHub(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	body, err := x.readObject("name", "site_id")
	if err != nil {
		return err
	}
	change := HubChange{OrgID: x.key.OrgID, HubID: hub, SetName: body.has("name")}
	if change.SetName {
		if change.Name, err = body.nullableName("name"); err != nil {
			return err
		}
	}
	if body.has("site_id") {
		site, err := body.text("site_id")
		if err != nil {
			return err
		}
		if !domain.IsUUID(site) {
			return domain.ErrSiteNotFound()
		}
		change.SiteID = &site
	}
	if !change.SetName && change.SiteID == nil {
		return invalid("body: must have name, site_id, or both")
	}
	state, err := a.Directory.UpdateHub(x.ctx, x.origin(), change)
	if err != nil {
		return err
	}
	changed, err := a.changedHub(x.ctx, x.key.OrgID, state)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, changed)
}

func (a *api) resetLink(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	if err := a.Directory.ResetLink(x.ctx, x.origin(), x.key.OrgID, hub); err != nil {
		return err
	}
	x.writeNothing()
	return nil
}

// changedHub returns the form of the hub as it is after a change: what the change is about as it
// was decided, the rest as the read models have it. They have the change too, unless they stand
// still or lag far behind.
func (a *api) changedHub(ctx context.Context, org string, state domain.HubState) (hubBody, error) {
	ctx, cancel := context.WithTimeout(ctx, changedReadTimeout)
	defer cancel()
	hub, err := a.ReadModels.Hub(ctx, org, state.ID)
	var refused *domain.Error
	switch {
	case errors.As(err, &refused) && refused.Code == domain.CodeNotFound:
		hub = domain.Hub{Status: domain.HubUnknown, Since: state.RegisteredAt}
		if state.ConnectedAtAdd {
			hub.Status = domain.HubOnline
		}
	case err != nil:
		return hubBody{}, changedUnread("hub", err)
	}
	hub.ID, hub.Name, hub.SiteID, hub.RegisteredAt = state.ID, state.Name, state.SiteID, state.RegisteredAt
	return formOfHub(hub), nil
}

// answerHub answers with the hub as the read models have it now.
func (a *api) answerHub(x *exchange, id domain.HubID) error {
	hub, err := a.ReadModels.Hub(x.ctx, x.key.OrgID, id)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, formOfHub(hub))
}
