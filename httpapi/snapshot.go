package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// Types of what a stream sends beside events, if the client has asked for it.
const (
	// typeCaughtUp follows the events that were stored when the client connected.
	typeCaughtUp = "stream.caught_up"
	// typeState is a last reported state, and typeSnapshotEnd follows all of them.
	typeState       = "snapshot.state"
	typeSnapshotEnd = "snapshot.complete"
)

// snapshotPage is how many states of a snapshot are read at once. Together they are about as large
// as response.BatchBytes.
const snapshotPage = 40

// mark is the data of a message that is no event of a hub. It has the members of an event.
type mark struct {
	Cursor       *string         `json:"cursor"`
	Type         string          `json:"type"`
	HubID        *domain.HubID   `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// appendMark appends a message with the stream's position to frames.
func (s *stream) appendMark(frames []byte, typ string) []byte {
	cursor := s.reader.Cursor()
	m := mark{
		Cursor: &cursor, Type: typ, Time: domain.FormatTime(s.req.api.Now()),
		Data: json.RawMessage("{}"),
	}
	if s.hub != "" {
		m.HubID = &s.hub
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // texts only
	}
	frames = append(frames, "id: "...)
	frames = append(frames, cursor...)
	frames = append(frames, '\n')
	return response.AppendEvent(frames, typ, data)
}

// snapshot reads the last reported states that a stream sends before its events, page by page.
type snapshot struct {
	req    *request
	filter domain.EventFilter
	// position is from before the first page: every change that a page lacks is after it.
	position string
	// parts select the states that are left, from the state after on in the first of them.
	parts []domain.StateFilter
	after domain.StatePosition
	// page was read and not sent yet.
	page []domain.ReportedState
}

// newSnapshot returns the snapshot that a request asks for with snapshot=true, nil for none.
func (a *api) newSnapshot(
	req *request, q query, filter domain.EventFilter,
) (*snapshot, error) {
	asked, err := q.boolean("snapshot")
	if err != nil || asked == nil || !*asked {
		return nil, err
	}
	for _, name := range []string{"after", "since", "last"} {
		if _, given := q.get(name); given {
			return nil, invalid("snapshot: cannot be combined with %s: events begin after it", name)
		}
	}
	if err := requireScope(req.key, domain.ScopeHubsRead); err != nil {
		return nil, err
	}
	return &snapshot{req: req, filter: filter, parts: statesOf(filter)}, nil
}

// statesOf returns filters that together select the states of the hubs that a filter of events
// chooses, and possibly more.
func statesOf(filter domain.EventFilter) (parts []domain.StateFilter) {
	hubs := slices.Compact(slices.Sorted(slices.Values(filter.Hubs)))
	for i := range hubs {
		parts = append(parts, domain.StateFilter{HubID: &hubs[i]})
	}
	sites := slices.Compact(slices.Sorted(slices.Values(filter.Sites)))
	for i := range sites {
		if len(hubs) == 0 {
			parts = append(parts, domain.StateFilter{SiteID: &sites[i]})
		}
	}
	if len(parts) == 0 {
		parts = []domain.StateFilter{{}}
	}
	return parts
}

// begin reads the position and the first page, so that a failure is an ordinary answer. It does
// nothing without a snapshot.
func (s *snapshot) begin() (err error) {
	if s == nil {
		return nil
	}
	if s.position, err = s.req.api.OrgEvents.StatesPosition(s.req.ctx, s.req.key.Reach.OrgID); err != nil {
		return err
	}
	_, err = s.read()
	return err
}

// read reads the next page. It returns false if there is none.
func (s *snapshot) read() (bool, error) {
	if len(s.parts) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(s.req.ctx, managementTimeout)
	defer cancel()
	page, err := s.req.api.ReadModels.States(
		ctx, s.req.key.Reach, s.parts[0], snapshotPage, s.after,
	)
	if err != nil {
		return false, err
	}
	s.page, s.after = page.Data, page.Next
	if !page.HasMore {
		s.parts, s.after = s.parts[1:], domain.StatePosition{}
	}
	return true, nil
}

// appendPage appends the messages of the page to frames. They have no id: a client that reconnects
// before the end of the snapshot begins anew.
func (s *snapshot) appendPage(frames []byte) ([]byte, error) {
	for i := range s.page {
		state := &s.page[i]
		if !s.filter.HasHub(state.HubID, state.SiteID) {
			continue
		}
		body, err := json.Marshal(newStateBody(*state))
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(mark{
			Type: typeState, HubID: &state.HubID, DeviceID: &state.DeviceID,
			Time: domain.FormatTime(s.req.api.Now()), Data: body,
		})
		if err != nil {
			return nil, err
		}
		frames = response.AppendEvent(frames, typeState, data)
	}
	return frames, nil
}

// sendSnapshot sends the states and the message that follows them. If the stream is to end, it
// returns why. The stream's lifetime does not end it before the last state, since the client would
// begin anew.
func (s *stream) sendSnapshot() (ended string, cause error) {
	a := s.req.api
	for more := true; more; {
		began := time.Now()
		// A process that was suspended may send states from after the key was revoked.
		if err := a.awaitFresh(s.req.ctx); err != nil {
			return s.readerEnded(err)
		}
		switch {
		case s.req.keyEnded():
			return endedByRevoking, nil
		case isClosed(a.Draining):
			return endedByDraining, nil
		}
		frames, err := s.states.appendPage(nil)
		if err != nil {
			return endedByFault, err
		}
		if s.out.TakeKeepalive(time.Now()) {
			frames = response.AppendKeepalive(frames)
		}
		if s.out.Send(frames) != nil {
			return endedByClient, nil
		}
		s.took += time.Since(began)
		s.pace()
		if more, err = s.states.read(); err != nil {
			return s.readerEnded(err)
		}
	}
	s.states = nil
	if s.out.Send(s.appendMark(nil, typeSnapshotEnd)) != nil {
		return endedByClient, nil
	}
	return "", nil
}
