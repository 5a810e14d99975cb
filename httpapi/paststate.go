package httpapi

import (
	"net/http"
	"time"

	"hubcloud/domain"
)

// pastStateBody is what the devices of a hub had last reported at an instant.
type pastStateBody struct {
	HubID     domain.HubID      `json:"hub_id"`
	At        string            `json:"at"`
	KnownFrom *string           `json:"known_from"`
	Certain   bool              `json:"certain"`
	Data      []pastChannelBody `json:"data"`
}

// pastChannelBody is what a channel had last reported at an instant.
type pastChannelBody struct {
	Device    stateDevice `json:"device"`
	Channel   fullChannel `json:"channel"`
	ChangedAt *string     `json:"changed_at"`
	Basis     string      `json:"basis"`
	Certain   bool        `json:"certain"`
}

// getPastState answers with what the devices of a hub had last reported at an instant, with the
// names and rooms that are set now.
func (a *api) getPastState(req *request, hub domain.HubID) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	at, given, err := q.timestamp("at")
	if err != nil {
		return err
	}
	if !given {
		at = time.Now().UTC().Truncate(time.Microsecond)
	}
	waitForLabels := a.readLabels(req, hub)
	past, err := a.PastStates.StateAt(req.ctx, hub, at)
	labels, err := waitForLabels(err)
	if err != nil {
		return err
	}
	body := pastStateBody{
		HubID: hub, At: domain.FormatTime(past.At), KnownFrom: optionalTime(past.KnownFrom),
		Certain: past.Certain, Data: make([]pastChannelBody, 0, len(past.Channels)),
	}
	for i := range past.Channels {
		c := &past.Channels[i]
		body.Data = append(body.Data, newPastChannelBody(c, labels[c.DeviceID]))
	}
	return req.writeJSON(http.StatusOK, body)
}

func newPastChannelBody(c *domain.PastChannel, label domain.DeviceLabel) pastChannelBody {
	if c.Channel.Capabilities == nil {
		c.Channel.Capabilities = []byte("{}")
	}
	name := c.Name
	if label.Name != nil {
		name = label.Name
	}
	return pastChannelBody{
		Device: stateDevice{
			ID: c.DeviceID, Name: name, Manufacturer: c.Manufacturer, Model: c.Model,
			Room: label.Room, AvailableSince: optionalTime(c.AvailableSince),
		},
		Channel: newFullChannel(c.Channel), ChangedAt: optionalTime(c.ChangedAt), Basis: c.Basis,
		Certain: c.Certain,
	}
}
