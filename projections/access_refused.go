package projections

import (
	"strings"

	"hubcloud/domain"
	"hubcloud/streams"
)

// refusedKeys are keys about which an event says something that cannot be read: it might be that
// they are revoked. Its methods are called under Access's lock.
type refusedKeys struct {
	keys map[string]domain.KeyAccess
	// by is the key that each of the events is about, by their sequences.
	by map[uint64]string
}

// forget forgets a key that is revoked for good.
func (r *refusedKeys) forget(id string) { delete(r.keys, id) }

// refuse lets a key in no more, if that is what the subject names.
func (a *Access) refuse(seq uint64, subject string) {
	id, ok := strings.CutPrefix(subject, streams.KeySubject(""))
	if !ok {
		return
	}
	if a.refused.by == nil {
		a.refused = refusedKeys{keys: map[string]domain.KeyAccess{}, by: map[uint64]string{}}
	}
	a.refused.by[seq] = id
	if key, ok := a.keys[id]; ok {
		a.refused.keys[id] = key.KeyAccess
		delete(a.keys, id)
		close(key.revoke)
	}
}

// readmit lets a key in again, once an operator has skipped every event about it that cannot be
// read.
func (a *Access) readmit(seq uint64) {
	id, ok := a.refused.by[seq]
	if !ok {
		return
	}
	delete(a.refused.by, seq)
	for _, other := range a.refused.by {
		if other == id {
			return
		}
	}
	if key, ok := a.refused.keys[id]; ok {
		delete(a.refused.keys, id)
		a.putKey(id, key.OrgID, key.Environment, key.Scopes, key.SecretHash[:])
	}
}
