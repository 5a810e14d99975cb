package httpapi

import (
	"encoding/json"
	"net/http"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/httpapi/portal"
)

// maxAttention is the most items of a list of what needs attention, and defaultAttention the default.
const maxAttention, defaultAttention = 1000, 100

// attentionBody is something that needs attention. The fields of a device are null for a condition of
// a hub, and those of a channel for a condition of a device.
type attentionBody struct {
	ID       string          `json:"id"`
	Kind     attention.Kind  `json:"kind"`
	Severity domain.Severity `json:"severity"`
	Title    string          `json:"title"`
	HubID    domain.HubID    `json:"hub_id"`
	SiteID   string          `json:"site_id"`
	DeviceID *int64          `json:"device_id"`
	Device   *string         `json:"device_name"`
	Room     *string         `json:"room"`
	Key      *string         `json:"key"`
	Endpoint *int64          `json:"endpoint"`
	Value    json.RawMessage `json:"value"`
	Desired  json.RawMessage `json:"desired"`
	// Event is what a channel that reports alarms in words reports.
	Event  *string `json:"event"`
	Since  *string `json:"since"`
	SeenAt *string `json:"seen_at"`
}

func newAttentionBody(c portal.Attention) attentionBody {
	body := attentionBody{
		ID: string(c.Hub) + "/" + c.ID, Kind: c.Kind, Severity: c.Severity, Title: c.Title,
		HubID: c.Hub, SiteID: c.SiteID, Device: nonEmpty(c.Name), Room: nonEmpty(c.Room),
		Key: nonEmpty(c.Key), Value: orNull(c.Value), Desired: orNull(c.Wanted),
		Event: nonEmpty(c.Event), Since: timeOrNull(c.Since), SeenAt: timeOrNull(c.SeenAt),
	}
	if !c.Kind.OfHub() {
		body.DeviceID = &c.DeviceID
	}
	if c.Key != "" {
		body.Endpoint = &c.Endpoint
	}
	return body
}

// orNull returns JSON null for nothing.
func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// listAttention answers with what needs attention in the caller's reach.
func (a *api) listAttention(req *request) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", 1, maxAttention, defaultAttention)
	if err != nil {
		return err
	}
	site, ofSite := q.get("site_id")
	id, ofHub := q.get("hub_id")
	hub, isHub := domain.ParseHubID(id)
	var page domain.Page[portal.Attention]
	if (!ofSite || domain.IsUUID(site)) && (!ofHub || isHub) {
		page.Data, err = a.Attention.Attention(
			req.ctx, req.key.Reach, site, hub, req.portalRequestInfo(),
		)
		page.HasMore = len(page.Data) > limit
		page.Data = page.Data[:min(limit, len(page.Data))]
	}
	return req.answer(http.StatusOK, listOf(page, newAttentionBody), err)
}
