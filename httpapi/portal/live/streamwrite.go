package live

import (
	"encoding/json"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
)

func (s *stream) tellGap(hub domain.HubID) {
	s.metrics.gaps.Inc()
	s.tell("hub.portal_gap", map[string]domain.HubID{"hub_id": hub})
}

func (s *stream) tellStates(whole bool, states []HubState) {
	s.tell("hub.portal_states", struct {
		Whole bool       `json:"whole"`
		Hubs  []HubState `json:"hubs"`
	}{whole, append([]HubState{}, states...)})
}

// tell puts an event of the portal's own into the buffer. It has no id: those are the hubs'.
func (s *stream) tell(eventType string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings and times can be marshalled
	}
	s.buffer = sse.AppendEvent(s.buffer, eventType, text)
}

// flush sends the buffer. It returns false if the page is gone or does not read.
func (s *stream) flush() bool {
	err := s.out.Send(s.buffer)
	if s.buffer = s.buffer[:0]; cap(s.buffer) > 2*sse.BatchBytes {
		s.buffer = nil // a long stream must not keep the memory of one large write
	}
	return err == nil
}
