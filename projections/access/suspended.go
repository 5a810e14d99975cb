package access

import (
	"strings"

	"hubcloud/domain"
	"hubcloud/streams"
)

// suspendedKeys are the keys that are not in force because an unreadable event about them might be
// a revocation. Its methods are called under the lock of the Index.
type suspendedKeys struct {
	keys map[string]domain.KeyAccess
	// byEvent has the id of the key that an unreadable event is about, by the event's sequence.
	byEvent map[uint64]string
}

func newSuspendedKeys() suspendedKeys {
	return suspendedKeys{keys: map[string]domain.KeyAccess{}, byEvent: map[uint64]string{}}
}

// revoke removes a key that was revoked while it was suspended.
func (s *suspendedKeys) revoke(id string) { delete(s.keys, id) }

// suspendKey suspends the key that an event's subject names, if it names one.
func (a *Index) suspendKey(seq uint64, subject string) {
	id, ok := strings.CutPrefix(subject, streams.KeySubject(""))
	if !ok {
		return
	}
	a.suspended.byEvent[seq] = id
	if key, ok := a.keys[id]; ok {
		a.suspended.keys[id] = key.KeyAccess
		delete(a.keys, id)
		close(key.revoke)
	}
}

// resumeKey puts a suspended key in force again, once an operator has skipped every event that
// suspends it.
func (a *Index) resumeKey(seq uint64) {
	id, ok := a.suspended.byEvent[seq]
	if !ok {
		return
	}
	delete(a.suspended.byEvent, seq)
	for _, other := range a.suspended.byEvent {
		if other == id {
			return
		}
	}
	if key, ok := a.suspended.keys[id]; ok {
		delete(a.suspended.keys, id)
		a.putKey(key)
	}
}
