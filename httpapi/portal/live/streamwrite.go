package live

import (
	"encoding/json"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
)

func (s *stream) appendGap(hub domain.HubID) {
	s.metrics.gaps.Inc()
	s.appendEvent("hub.portal_gap", map[string]domain.HubID{"hub_id": hub})
}

// appendStates buffers hub states. whole reports that the organization has no other hubs.
func (s *stream) appendStates(whole bool, states []HubState) {
	s.appendEvent("hub.portal_states", struct {
		Whole bool       `json:"whole"`
		Hubs  []HubState `json:"hubs"`
	}{whole, append([]HubState{}, states...)})
}

// appendEvent buffers an event of the portal. It has no id, because it is in no hub's log.
func (s *stream) appendEvent(eventType string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings and times always marshal
	}
	s.buffer = sse.AppendEvent(s.buffer, eventType, text)
}

// flush writes the buffer. An error means that the client is gone or does not read.
func (s *stream) flush() error {
	err := s.out.Send(s.buffer)
	if s.buffer = s.buffer[:0]; cap(s.buffer) > 2*sse.BatchBytes {
		s.buffer = nil // do not keep the memory of one large write
	}
	return err
}
