package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// Bounds of the events from before the stream that a page without a position receives.
const (
	recentHubs   = 50   // in an organization with more hubs the stream begins at the feed's end
	recentEvents = 1000 // of all hubs of the stream
)

// begin follows the feed and buffers the position and the states. It reads the states after it has
// the position, so that a change in between is sent twice rather than not at all.
func (s *stream) begin(ctx context.Context, request streamRequest) error {
	anew, err := s.follow(ctx, request)
	if err != nil {
		return err
	}
	states, err := s.currentStates(ctx)
	if err != nil {
		return err
	}
	s.appendPosition()
	s.appendEvent("hub.portal_begin", struct {
		Anew bool `json:"anew"`
	}{anew})
	s.appendStates(true, s.updateSent(states))
	return nil
}

// follow follows the feed from the position of the request. If the position has expired or is
// invalid, it begins at the feed's end, and anew is true.
func (s *stream) follow(ctx context.Context, request streamRequest) (anew bool, err error) {
	if request.Position == "" && request.Recent > 0 {
		ago := min(time.Duration(request.Recent)*time.Second, s.Retention)
		return false, s.followRecent(ctx, ago)
	}
	org := s.viewer.OrgID
	s.reader, err = s.Feed.Follow(ctx, org, s.filter, request.Position)
	if code := codeOf(err); request.Position != "" &&
		(code == domain.CodeCursorExpired || code == domain.CodeInvalidRequest) {
		s.metrics.gaps.Inc()
		s.reader, err = s.Feed.Follow(ctx, org, s.filter, "")
		anew = true
	}
	return anew, err
}

// followRecent follows the feed from the time ago before now. If more than recentEvents follow it,
// a tenth and a hundredth of ago are tried, and then the feed's end.
func (s *stream) followRecent(ctx context.Context, ago time.Duration) (err error) {
	org := s.viewer.OrgID
	if len(s.filter.Hubs) == 0 && len(s.Hubs.HubsOf(org)) > recentHubs {
		ago = 0
	}
	for try := 0; ago > 0 && try < 3; try++ {
		since := s.Now().Add(-ago)
		few, err := s.fewSince(ctx, since)
		if err != nil {
			return err
		}
		if few {
			s.reader, err = s.Feed.FollowSince(ctx, org, s.filter, since)
			return err
		}
		ago /= 10
	}
	s.reader, err = s.Feed.Follow(ctx, org, s.filter, "")
	return err
}

// fewSince reports whether at most recentEvents were stored since a time.
func (s *stream) fewSince(ctx context.Context, since time.Time) (bool, error) {
	reader, err := s.Feed.FollowSince(ctx, s.viewer.OrgID, s.filter, since)
	if err != nil {
		return false, err
	}
	defer reader.Close()
	for count := 0; count <= recentEvents; {
		events, err := reader.Next(ctx, streamBatch)
		if err != nil {
			return false, err
		}
		if len(events) == 0 && !isReady(reader) {
			return true, nil
		}
		count += len(events)
	}
	return false, nil
}

// isReady reports whether a reader may have events now. Without any, it may have left many events
// out that the filter does not choose.
func isReady(reader EventReader) bool {
	select {
	case <-reader.Ready():
		return true
	default:
		return false
	}
}
