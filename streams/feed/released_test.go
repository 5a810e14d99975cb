package feed

import (
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// Readers of a hub that its organization had released ended like readers of a reset hub: with
// cursor_expired, and only after a while.
func TestAReleasedHubEndsItsReaders(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 5)
	r := f.follow(hubA, "")
	former := r.Cursor()
	polled := make(chan error, 1)
	go func() {
		_, err := f.Part(t.Context(), hubA, former, 10, unbounded, time.Minute)
		polled <- err
	}()
	streamstest.Eventually(t, "both readers wait", func() bool { return waiting(f, hubA) == 2 })
	f.mu.Lock()
	delete(f.epochs, hubA)
	f.mu.Unlock()
	f.Released(hubA)
	if _, err := r.Next(t.Context(), 10); codeOf(err) != domain.CodeNotFound {
		t.Errorf("Next: %v, want not_found", err)
	}
	if err := <-polled; codeOf(err) != domain.CodeNotFound {
		t.Errorf("Part: %v, want not_found", err)
	}
	f.wantError("the former cursor", former, domain.CodeNotFound)
	// The next organization that adds the hub sees none of these events and accepts none of these
	// cursors.
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last})
	f.want("the next organization", "", nil)
	f.wantError("the former cursor", former, domain.CodeCursorExpired)
}
