package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"hubcloud/domain"
)

// pastPageBytes is about how large a page of a past state is: some 4,000 channels. pastItemBytes is
// about how large an item is without its values.
const pastPageBytes, pastItemBytes = 2 << 20, 512

// pastStateBody is a page of what the devices of a hub had last reported at an instant.
type pastStateBody struct {
	HubID     domain.HubID      `json:"hub_id"`
	At        string            `json:"at"`
	KnownFrom *string           `json:"known_from"`
	Certain   bool              `json:"certain"`
	Data      []pastChannelBody `json:"data"`
	HasMore   bool              `json:"has_more"`
	Next      string            `json:"next_starting_after,omitempty"`
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
	var after domain.StatePosition
	if id, next := q.get("starting_after"); next {
		if after, next = parseStateID(id); !next || after.HubID != hub {
			return invalid("starting_after: must be next_starting_after of the previous page")
		}
		if !given {
			return invalid("at: must be that of the previous page, with starting_after")
		}
	}
	if !given {
		at = time.Now().UTC().Truncate(time.Microsecond)
	}
	waitForLabels := a.readLabels(req, hub)
	past, err := a.PastStates.StateAt(req.ctx, req.key.ID, hub, at)
	labels, err := waitForLabels(err)
	if err != nil {
		return err
	}
	begin, _ := slices.BinarySearchFunc(past.Channels, after, comparePast)
	body := pastStateBody{
		HubID: hub, At: domain.FormatTime(past.At), KnownFrom: optionalTime(past.KnownFrom),
		Certain: past.Certain, Data: []pastChannelBody{},
	}
	for i, size := begin, 0; i < len(past.Channels); i++ {
		c := &past.Channels[i]
		if size > pastPageBytes {
			last := &past.Channels[i-1]
			body.HasMore, body.Next = true, stateID(domain.StatePosition{
				HubID: hub, DeviceID: last.DeviceID, Key: last.Channel.Key,
				Endpoint: last.Channel.Endpoint,
			})
			break
		}
		size += pastItemBytes + len(c.Channel.Value) + len(c.Channel.Desired) +
			len(c.Channel.Capabilities)
		body.Data = append(body.Data, newPastChannelBody(c, labels[c.DeviceID]))
	}
	return req.writeJSON(http.StatusOK, body)
}

// comparePast compares a channel with the last one of the previous page, after which the page
// begins.
func comparePast(c domain.PastChannel, after domain.StatePosition) int {
	return cmp.Or(
		cmp.Compare(c.DeviceID, after.DeviceID), cmp.Compare(c.Channel.Key, after.Key),
		cmp.Compare(c.Channel.Endpoint, after.Endpoint), -1,
	)
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
