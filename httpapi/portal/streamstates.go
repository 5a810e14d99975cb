package portal

import (
	"context"
	"slices"
	"time"

	"hubcloud/domain"
)

// refreshDelay is the time from an event, or from a change of the organization's hubs, to the
// refresh of the states. The read models have the change by then.
const refreshDelay = time.Second

// refreshSoon schedules a refresh of the states, at the latest after refreshDelay.
func (s *stream) refreshSoon() {
	s.nextRefresh = earlier(s.nextRefresh, time.Now().Add(refreshDelay))
}

// refreshStates reads the states, and buffers those that changed, or all of them if the page has a
// hub that the stream no longer has.
func (s *stream) refreshStates(ctx context.Context) error {
	states, err := s.currentStates(ctx)
	if err != nil {
		return err
	}
	changed := s.updateSent(states)
	switch {
	case len(s.sent) > len(states):
		clear(s.sent)
		s.appendStates(true, s.updateSent(states))
	case len(changed) > 0:
		s.appendStates(false, changed)
	}
	return nil
}

// currentStates returns the states of the stream's hubs, and schedules the next refresh. It leaves
// out hubs that the organization does not have: the read models may be behind this process, or
// ahead. If the stream's only hub is among them, the error is not_found.
func (s *stream) currentStates(ctx context.Context) ([]hubState, error) {
	s.nextRefresh = time.Now().Add(s.StateInterval)
	s.hubsChanged = s.Hubs.Changed(s.viewer.OrgID)
	states, err := s.statesOf(ctx)
	if err != nil {
		return nil, err
	}
	states = slices.DeleteFunc(states, func(state hubState) bool {
		access, ok := s.Hubs.Hub(state.ID)
		return !ok || access.OrgID != s.viewer.OrgID
	})
	if len(s.filter.Hubs) > 0 && len(states) == 0 {
		return nil, domain.ErrHubNotFound()
	}
	return states, nil
}

// statesOf returns the states of the stream's hubs, as the read models have them.
func (s *stream) statesOf(ctx context.Context) ([]hubState, error) {
	switch {
	case len(s.filter.Hubs) > 0:
		return s.hubStates(ctx, s.viewer.OrgID, s.filter.Hubs[0])
	case len(s.filter.Sites) > 0:
		return s.statesAt(ctx, s.viewer.OrgID, s.filter.Sites[0], "")
	}
	return s.hubStates(ctx, s.viewer.OrgID, "")
}

// updateSent returns the states that differ from those that the page has, and adds them to s.sent.
func (s *stream) updateSent(states []hubState) []hubState {
	var changed []hubState
	for _, state := range states {
		if before, ok := s.sent[state.ID]; !ok || before != state {
			s.sent[state.ID] = state
			changed = append(changed, state)
		}
	}
	return changed
}
