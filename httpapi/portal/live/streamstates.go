package live

import (
	"context"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
)

// refreshDelay is the time from an event that may change a hub's state to the refresh. The read
// models have the new state by then.
const refreshDelay = time.Second

// refreshSoon schedules a refresh of the states, at the latest after refreshDelay.
func (s *stream) refreshSoon() {
	s.nextRefresh = earlier(s.nextRefresh, time.Now().Add(refreshDelay))
}

// refreshStates reads the states, follows hubs that were added, and buffers the states that
// changed, or all states if a hub was released.
func (s *stream) refreshStates(ctx context.Context) error {
	states, err := s.States(ctx, s.viewer.OrgID, s.only)
	if err != nil {
		return err
	}
	for _, state := range states {
		if s.group.Cursor(state.ID) != "" {
			continue
		}
		err := s.follow(ctx, state.ID, "")
		if s.unowned(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.appendEvent(
			"hub.portal_positions", map[domain.HubID]string{state.ID: s.group.Cursor(state.ID)},
		)
	}
	states = s.followed(states)
	if s.leaveReleased(states) {
		clear(s.sent)
		s.appendStates(true, s.updateSent(states))
		return nil
	}
	if changed := s.updateSent(states); len(changed) > 0 {
		s.appendStates(false, changed)
	}
	return nil
}

// followed returns the states of the hubs that the stream follows.
func (s *stream) followed(states []HubState) []HubState {
	return slices.DeleteFunc(
		states, func(state HubState) bool { return s.group.Cursor(state.ID) == "" },
	)
}

// updateSent returns the states that differ from those that the page has, and adds them to s.sent.
func (s *stream) updateSent(states []HubState) []HubState {
	var changed []HubState
	for _, state := range states {
		if before, ok := s.sent[state.ID]; !ok || before != state {
			s.sent[state.ID] = state
			changed = append(changed, state)
		}
	}
	return changed
}

// leaveReleased removes the hubs that the page has, and states does not have, from the group. It
// reports whether there were any.
func (s *stream) leaveReleased(states []HubState) bool {
	released := maps.Clone(s.sent)
	for _, state := range states {
		delete(released, state.ID)
	}
	for hub := range released {
		s.group.Leave(hub)
	}
	return len(released) > 0
}
