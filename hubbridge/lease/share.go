package lease

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// acquiring is the reason of a missing shard whose lease is free.
const acquiring = "its lease is being acquired"

// missing is why this replica lacks a shard of its share, and since when.
type missing struct {
	since  time.Time
	reason string
}

// divide computes this replica's share, begins to acquire the free shards of the share, and hands
// over the held shards of other shares.
func (l *loop) divide(ctx context.Context) {
	replicas := []string{l.replica}
	for key, k := range l.keys {
		if id, ok := strings.CutPrefix(key, replicaPrefix); ok && id != l.replica && k.alive() {
			replicas = append(replicas, id)
		}
	}
	share := []int{} // an empty share is known, unlike nil
	for shard := range l.shards {
		t := l.tenures[shard]
		if owner(shard, replicas) != l.replica {
			delete(l.missing, shard)
			if t != nil {
				t.cancel(ErrHandedOver)
			}
			continue
		}
		share = append(share, shard)
		current := l.keys[shardKey(shard)]
		switch {
		case t != nil && t.acquired.Load():
			delete(l.missing, shard)
		case t != nil:
			l.noteMissing(shard, acquiring)
		case current.alive() && current.Replica != l.replica:
			l.noteMissing(shard, "replica "+current.Replica+" holds it")
		default:
			l.noteMissing(shard, acquiring)
			l.startTenure(ctx, shard, current.revision)
		}
	}
	l.metrics.wanted.Set(float64(len(share)))
	l.mu.Lock()
	l.share = share
	l.mu.Unlock()
}

// noteMissing records why this replica lacks a shard of its share.
func (l *loop) noteMissing(shard int, reason string) {
	m := l.missing[shard]
	if m == nil {
		m = &missing{since: time.Now()}
		l.missing[shard] = m
	}
	// The error of the last attempt is more useful than the note that the next one runs.
	if reason != acquiring || m.reason == "" {
		m.reason = reason
	}
}

// lacksShard reports whether this replica has lacked a shard for longer than a handover takes.
func (l *loop) lacksShard() bool {
	for _, m := range l.missing {
		if time.Since(m.since) > readSoon {
			return true
		}
	}
	return false
}

// logMissing logs the shards that this replica has lacked for logAfter, one line for each reason.
func (l *loop) logMissing() {
	byReason := map[string][]int{}
	for shard, m := range l.missing {
		if time.Since(m.since) > logAfter {
			byReason[m.reason] = append(byReason[m.reason], shard)
		}
	}
	for reason, shards := range byReason {
		slices.Sort(shards)
		l.logger.Warn("lease not acquired", "shards", shards, "reason", reason)
	}
}

// owner returns the replica whose share a shard belongs to: the one whose hash with the shard is
// highest.
func owner(shard int, replicas []string) (best string) {
	var highest uint64
	for _, id := range replicas {
		h := fnv.New64a()
		_, _ = h.Write([]byte(id + "/" + strconv.Itoa(shard))) // never fails
		if sum := mix(h.Sum64()); best == "" || sum > highest || sum == highest && id < best {
			best, highest = id, sum
		}
	}
	return best
}

// mix spreads the bits of an FNV hash, whose high bits hardly depend on the last bytes hashed (the
// finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
