package lease

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// acquiring is the reason of a missing group whose lease is free.
const acquiring = "its lease is being acquired"

// missing is why this replica lacks a group of its share, and since when.
type missing struct {
	since  time.Time
	reason string
}

// divide computes this replica's share, begins to acquire the free groups of the share, and hands
// over the held groups of other shares.
func (l *loop) divide(ctx context.Context) {
	replicas := []string{l.replica}
	for key, k := range l.keys {
		if id, ok := strings.CutPrefix(key, replicaPrefix); ok && id != l.replica && k.alive() {
			replicas = append(replicas, id)
		}
	}
	share := []int{} // an empty share is known, unlike nil
	for group := range l.groups {
		t := l.tenures[group]
		if owner(group, replicas) != l.replica {
			delete(l.missing, group)
			if t != nil {
				t.cancel(ErrHandedOver)
			}
			continue
		}
		share = append(share, group)
		current := l.keys[groupKey(group)]
		switch {
		case t != nil && t.acquired.Load():
			delete(l.missing, group)
		case t != nil:
			l.noteMissing(group, acquiring)
		case current.alive() && current.Replica != l.replica:
			l.noteMissing(group, "replica "+current.Replica+" holds it")
		default:
			l.noteMissing(group, acquiring)
			l.startTenure(ctx, group, current.revision)
		}
	}
	l.metrics.wanted.Set(float64(len(share)))
	l.mu.Lock()
	l.share = share
	l.mu.Unlock()
}

// noteMissing records why this replica lacks a group of its share.
func (l *loop) noteMissing(group int, reason string) {
	m := l.missing[group]
	if m == nil {
		m = &missing{since: time.Now()}
		l.missing[group] = m
	}
	// The error of the last attempt is more useful than the note that the next one runs.
	if reason != acquiring || m.reason == "" {
		m.reason = reason
	}
}

// lacksGroup reports whether this replica has lacked a group for longer than a handover takes.
func (l *loop) lacksGroup() bool {
	for _, m := range l.missing {
		if time.Since(m.since) > l.times.readSoon {
			return true
		}
	}
	return false
}

// logMissing logs the groups that this replica has lacked for logAfter, one line for each reason.
func (l *loop) logMissing() {
	byReason := map[string][]int{}
	for group, m := range l.missing {
		if time.Since(m.since) > logAfter {
			byReason[m.reason] = append(byReason[m.reason], group)
		}
	}
	for reason, groups := range byReason {
		slices.Sort(groups)
		l.logger.Warn("lease not acquired", "groups", groups, "reason", reason)
	}
}

// owner returns the replica whose share a group belongs to: the one whose hash with the group is
// highest.
func owner(group int, replicas []string) (best string) {
	var highest uint64
	for _, id := range replicas {
		h := fnv.New64a()
		_, _ = h.Write([]byte(id + "/" + strconv.Itoa(group))) // never fails
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
