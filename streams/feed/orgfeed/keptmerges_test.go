package orgfeed

import (
	"fmt"
	"testing"

	"hubcloud/streams/shares"
)

// Regression: an organization that read many pages at a time closed the readers of all others, which
// then read their hubs' logs from the beginning of each page.
func TestKeptMergesOfOthers(t *testing.T) {
	t.Parallel()
	kept := newKeptMerges(new(shares.Registry))
	reader := func(logs int) *Reader {
		return &Reader{closed: true, merge: &merge{logs: make([]*mergedLog, logs)}}
	}
	quiet := keptMergeKey{org: "quiet"}
	kept.put(quiet, reader(1000))
	for n := range 1000 {
		kept.put(keptMergeKey{org: "busy", after: fmt.Sprint(n)}, reader(n))
	}
	if _, held, share := kept.logs.Held(shares.Spender{Org: "busy"}); held < share/2 || held > share {
		t.Errorf("the busy organization holds %d logs, want nearly its share of %d", held, share)
	}
	if kept.take(keptMergeKey{org: "busy", after: "999"}) == nil {
		t.Error("the newest reader of the busy organization is gone")
	}
	if kept.take(quiet) == nil {
		t.Error("the reader of the quiet organization is gone")
	}
}
