package live

import (
	"context"
	"time"

	"hubcloud/domain"
)

// Bounds of the events from before the stream that a page without positions receives.
const (
	recentHubs   = 50  // with more hubs the stream begins at the end of the logs
	recentEvents = 100 // of one hub
)

// begin follows all hubs and buffers positions and states. It reads the states again after the
// positions, so that a change in between is sent twice rather than not at all.
func (s *stream) begin(ctx context.Context, request StreamRequest) error {
	states, err := s.States(ctx, s.viewer.OrgID, s.only)
	if err != nil {
		return err
	}
	s.nextRefresh = time.Now().Add(s.cfg.StateInterval)
	recent := time.Duration(0)
	if request.Recent > 0 && len(states) <= recentHubs {
		recent = min(time.Duration(request.Recent)*time.Second, s.cfg.Retention)
	}
	positions := make(map[domain.HubID]string, len(states))
	for _, state := range states {
		err := s.followFirst(ctx, state.ID, request.Positions[state.ID], recent)
		if s.unowned(err) {
			s.refreshSoon()
			continue
		}
		if err != nil {
			return err
		}
		positions[state.ID] = s.group.Cursor(state.ID)
	}
	if states, err = s.States(ctx, s.viewer.OrgID, s.only); err != nil {
		return err
	}
	s.appendEvent("hub.portal_positions", positions)
	s.appendStates(true, s.updateSent(s.followed(states)))
	return nil
}

// followFirst follows a hub from a cursor. Without a cursor the stream begins recent before now; 0
// stands for the log's end.
func (s *stream) followFirst(
	ctx context.Context, hub domain.HubID, after string, recent time.Duration,
) (err error) {
	if after == "" && recent > 0 {
		if after, err = s.recentCursor(ctx, hub, recent); err != nil {
			return err
		}
	}
	return s.follow(ctx, hub, after)
}

// recentCursor returns the cursor of the time ago before now. If more than recentEvents follow it,
// a tenth and a hundredth of ago are tried; then the result is "", the log's end.
func (s *stream) recentCursor(
	ctx context.Context, hub domain.HubID, ago time.Duration,
) (string, error) {
	for range 3 {
		after, err := s.cfg.Events.At(ctx, hub, s.cfg.Now().Add(-ago))
		if err != nil {
			return "", err
		}
		page, err := s.cfg.Events.Page(ctx, hub, after, recentEvents)
		if err != nil && codeOf(err) != domain.CodeCursorExpired {
			return "", err
		}
		if err == nil && !page.HasMore {
			return after, nil
		}
		ago /= 10
	}
	return "", nil
}

// follow follows a hub from a cursor. If the cursor has expired or is invalid, follow reports a gap
// to the page and begins at the log's end.
func (s *stream) follow(ctx context.Context, hub domain.HubID, after string) error {
	err := s.group.Follow(ctx, hub, after)
	if code := codeOf(err); after != "" &&
		(code == domain.CodeCursorExpired || code == domain.CodeInvalidRequest) {
		s.appendGap(hub)
		return s.group.Follow(ctx, hub, "")
	}
	return err
}

// unowned reports whether an error means that one of the organization's hubs was released, or was
// added so recently that this process does not know its owner. The read models may be ahead of this
// process, or behind.
func (s *stream) unowned(err error) bool {
	return s.only == "" && codeOf(err) == domain.CodeNotFound
}
