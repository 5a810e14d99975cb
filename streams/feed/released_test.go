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
	r, err := f.Follow(t.Context(), hubA, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
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
	if _, err := f.Page(t.Context(), hubA, former, 10); codeOf(err) != domain.CodeNotFound {
		t.Errorf("Page: %v, want not_found", err)
	}
	// The next organization that adds the hub sees none of these events and accepts none of these
	// cursors.
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last})
	if page := f.page(hubA, "", 10); len(page.Events) != 0 {
		t.Errorf("the next organization reads %v, want nothing", numbers(t, page.Events))
	}
	if _, err := f.Page(t.Context(), hubA, former, 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("Page after the former cursor: %v, want cursor_expired", err)
	}
}
