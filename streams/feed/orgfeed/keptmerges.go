package orgfeed

import (
	"sync"
	"time"

	"hubcloud/streams/shares"
)

const (
	// maxKeptLogs is how many logs the readers that wait for the next page may have together, and
	// keptMergeLogs for how many more each counts.
	maxKeptLogs   = 100_000
	keptMergeLogs = 400
	// keptMergeAge is how long a reader waits for the next page.
	keptMergeAge = 20 * time.Second
)

// keptMerges are readers in the middle of a merge, which wait for the request for the next page.
type keptMerges struct {
	logs *shares.Pool

	mu   sync.Mutex
	kept map[keptMergeKey]keptMerge
}

// keptMergeKey identifies the request for a page.
type keptMergeKey struct{ org, filter, after string }

type keptMerge struct {
	reader  *Reader
	release func()
	since   time.Time
}

func newKeptMerges(registry *shares.Registry) keptMerges {
	return keptMerges{kept: map[keptMergeKey]keptMerge{}, logs: shares.NewPool(
		registry, shares.PoolConfig{
			Name: "logs_between_pages", What: "pages of events are kept",
			Limits: shares.Limits{Total: maxKeptLogs},
		},
	)}
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
	kept.release()
	return kept.reader
}

// put keeps a reader. Beyond the share of its organization it closes others of the organization, or
// else the reader.
func (k *keptMerges) put(key keptMergeKey, r *Reader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if former := k.takeLocked(key); former != nil {
		former.Close()
	}
	spender, logs := shares.Spender{Org: key.org}, int64(len(r.merge.logs)+keptMergeLogs)
	release, err := k.logs.Take(spender, logs)
	for other := range k.kept {
		if err == nil {
			break
		}
		if other.org == key.org {
			k.takeLocked(other).Close()
			release, err = k.logs.Take(spender, logs)
		}
	}
	if err != nil {
		r.Close()
		return
	}
	k.kept[key] = keptMerge{r, release, time.Now()}
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
