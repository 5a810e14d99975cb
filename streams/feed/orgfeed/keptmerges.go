package orgfeed

import (
	"sync"
	"time"
)

const (
	// maxKeptMerges is how many readers wait for the next page, and maxKeptLogs how many logs they
	// may have together.
	maxKeptMerges = 256
	maxKeptLogs   = 100_000
	// keptMergeAge is how long a reader waits for the next page.
	keptMergeAge = 20 * time.Second
)

// keptMerges are readers in the middle of a merge, which wait for the request for the next page.
type keptMerges struct {
	mu   sync.Mutex
	kept map[keptMergeKey]keptMerge
	logs int
}

// keptMergeKey identifies the request for a page.
type keptMergeKey struct{ org, filter, after string }

type keptMerge struct {
	reader *Reader
	logs   int
	since  time.Time
}

func newKeptMerges() keptMerges {
	return keptMerges{kept: map[keptMergeKey]keptMerge{}}
}

// take removes the reader for a page and returns it; nil if there is none.
func (k *keptMerges) take(key keptMergeKey) *Reader {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.takeLocked(key)
}

func (k *keptMerges) takeLocked(key keptMergeKey) *Reader {
	kept, ok := k.kept[key]
	if !ok {
		return nil
	}
	delete(k.kept, key)
	k.logs -= kept.logs
	return kept.reader
}

// put keeps a reader, and closes others if there are too many.
func (k *keptMerges) put(key keptMergeKey, r *Reader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if former := k.takeLocked(key); former != nil {
		former.Close()
	}
	logs := len(r.merge.logs)
	for other := range k.kept {
		if len(k.kept) < maxKeptMerges && k.logs+logs <= maxKeptLogs {
			break
		}
		k.takeLocked(other).Close()
	}
	k.kept[key] = keptMerge{r, logs, time.Now()}
	k.logs += logs
}

// drop closes the readers that have waited since before.
func (k *keptMerges) drop(before time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, kept := range k.kept {
		if kept.since.Before(before) {
			k.takeLocked(key).Close()
		}
	}
}
