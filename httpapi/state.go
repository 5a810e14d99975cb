package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
)

const (
	// maxStates is the most items of a page of states, and defaultStates the default.
	maxStates     = 500
	defaultStates = 100
)

// statesBody is a page of states.
type statesBody struct {
	listBody[stateBody]
	// Next is given if HasMore is set and the page is not full: it may have no item of which to take
	// the id.
	Next string `json:"next_starting_after,omitempty"`
}

// stateBody is the last reported state of a channel.
type stateBody struct {
	ID         string         `json:"id"`
	HubID      domain.HubID   `json:"hub_id"`
	SiteID     string         `json:"site_id"`
	Connection itemConnection `json:"connection"`
	Device     stateDevice    `json:"device"`
	Channel    fullChannel    `json:"channel"`
	ChangedAt  *string        `json:"changed_at"`
	Basis      string         `json:"basis"`
	Certain    bool           `json:"certain"`
}

// stateDevice is the device of a channel.
type stateDevice struct {
	ID             int64   `json:"id"`
	Name           *string `json:"name"`
	Manufacturer   string  `json:"manufacturer"`
	Model          string  `json:"model"`
	Room           *string `json:"room"`
	AvailableSince *string `json:"available_since"`
}

func newStateBody(s domain.ReportedState) stateBody {
	if s.Channel.Capabilities == nil {
		s.Channel.Capabilities = json.RawMessage("{}")
	}
	return stateBody{
		ID: stateID(s.Position()), HubID: s.HubID, SiteID: s.SiteID,
		Connection: itemConnection{Status: s.HubStatus, Since: domain.FormatTime(s.HubSince)},
		Device: stateDevice{
			ID: s.DeviceID, Name: s.Name, Manufacturer: s.Manufacturer, Model: s.Model,
			Room: s.Room, AvailableSince: optionalTime(s.AvailableSince),
		},
		Channel: newFullChannel(s.Channel), ChangedAt: optionalTime(s.ChangedAt), Basis: s.Basis,
		Certain: s.Certain,
	}
}

func optionalTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := domain.FormatTime(*t)
	return &text
}

// stateID returns the id of a state: the hub, the device, the endpoint and the key. The key is last
// because it may contain any character.
func stateID(at domain.StatePosition) string {
	return string(at.HubID) + "/" + strconv.FormatInt(at.DeviceID, 10) + "/" +
		strconv.FormatInt(at.Endpoint, 10) + "/" + at.Key
}

// parseStateID reads the id of a state, or a position between hubs, which has no key; false if it
// is none.
func parseStateID(id string) (at domain.StatePosition, ok bool) {
	parts := strings.SplitN(id, "/", 4)
	if len(parts) != 4 {
		return at, false
	}
	hub, ok := domain.ParseHubID(parts[0])
	device, err := strconv.ParseInt(parts[1], 10, 64)
	endpoint, endpointErr := strconv.ParseInt(parts[2], 10, 64)
	if !ok || err != nil || endpointErr != nil {
		return at, false
	}
	return domain.StatePosition{
		HubID: hub, DeviceID: device, Key: parts[3], Endpoint: endpoint,
	}, true
}

// listStates answers with the last reported states of channels of the whole organization.
func (a *api) listStates(req *request) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", 1, maxStates, defaultStates)
	if err != nil {
		return err
	}
	var after domain.StatePosition
	if id, given := q.get("starting_after"); given {
		if after, given = parseStateID(id); !given {
			return invalid("starting_after: must be an id from the list of states")
		}
	}
	filter, err := q.stateFilter()
	if err != nil {
		return err
	}
	position, err := a.OrgEvents.StatesPosition(req.ctx, req.key.Reach.OrgID)
	if err != nil {
		return err
	}
	page, err := a.ReadModels.States(req.ctx, req.key.Reach, filter, limit, after)
	if err != nil {
		return err
	}
	req.w.Header()["Event-Cursor"] = []string{position}
	body := statesBody{listBody: listOf(page.Page, newStateBody)}
	if page.HasMore && len(page.Data) < limit {
		body.Next = stateID(page.Next)
	}
	return req.writeJSON(http.StatusOK, body)
}

// stateFilter reads the parameters that select states.
func (q query) stateFilter() (filter domain.StateFilter, err error) {
	if site, given := q.get("site_id"); given {
		filter.SiteID = &site
	}
	if text, given := q.get("hub_id"); given {
		hub := domain.HubID(text)
		filter.HubID = &hub
	}
	if key, given := q.get("key"); given {
		filter.Key = &key
	}
	if filter.Value, err = q.boolean("value"); err != nil {
		return filter, err
	}
	if filter.Available, err = q.boolean("available"); err != nil {
		return filter, err
	}
	if text, given := q.get("status"); given {
		status, ok := domain.ParseChannelStatus(text)
		if !ok {
			return filter, invalid(
				"status: must be one of unknown, synchronized, pending, diverged, failed",
			)
		}
		filter.Status = &status
	}
	before, given, err := q.timestamp("observed_before")
	if err != nil {
		return filter, err
	}
	if given {
		filter.ObservedBefore = &before
	}
	return filter, nil
}

// boolean returns a parameter that must be true or false; nil if it was not given.
func (q query) boolean(name string) (*bool, error) {
	switch value, given := q.get(name); {
	case !given:
		return nil, nil
	case value == "true", value == "false":
		set := value == "true"
		return &set, nil
	default:
		return nil, invalid("%s: must be true or false", name)
	}
}
