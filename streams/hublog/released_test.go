package hublog

import (
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// A hub that was taken away from its organization ended its readers as one that was reset, with
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
	streamstest.Eventually(t, "it waits", func() bool { return waiting(f, hubA) == 2 })
	f.mu.Lock()
	delete(f.epochs, hubA)
	f.mu.Unlock()
	f.Released(hubA)
	if _, err := r.Next(t.Context(), 10); codeOf(err) != domain.CodeNotFound {
		t.Errorf("a stream ends with %v", err)
	}
	if err := <-polled; codeOf(err) != domain.CodeNotFound {
		t.Errorf("a long-poll ends with %v", err)
	}
	if _, err := f.Page(t.Context(), hubA, former, 10); codeOf(err) != domain.CodeNotFound {
		t.Errorf("a page: %v", err)
	}
	// Whoever adds the hub next begins with nothing, and the former cursor is none of its log.
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last})
	if page := f.page(hubA, "", 10); len(page.Events) != 0 {
		t.Errorf("the next organization reads %v", numbers(t, page.Events))
	}
	if _, err := f.Page(t.Context(), hubA, former, 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("the former cursor: %v", err)
	}
}
