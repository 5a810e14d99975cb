package orgfeed

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
)

// maxValue is about the most bytes of an organization's value. The oldest readers that do not fit
// are known to the replicas that saw them only. The broker accepts 1 MiB.
const maxValue = 512 << 10

// storedReader is a reader as it is in the bucket.
type storedReader struct {
	Name     string       `json:"name"`
	Hub      domain.HubID `json:"hub,omitempty"`
	Part     string       `json:"part,omitempty"`
	Key      string       `json:"key,omitempty"`
	Position string       `json:"position"`
	// At and Seen are milliseconds since 1970.
	At   int64 `json:"at"`
	Seen int64 `json:"seen"`
	// Behind is as of the write.
	Behind uint64 `json:"behind"`
}

// storedOrg is the value of an organization in the bucket. Readers are in the order of Seen, newest
// first.
type storedOrg struct {
	Readers []json.RawMessage `json:"readers"`
}

// marshal returns the value of an organization. The caller must hold r.mu.
func (r *Registry) marshal(o *org, now time.Time) ([]byte, error) {
	r.removeOld(o, now)
	value, size := storedOrg{Readers: []json.RawMessage{}}, 0
	for e := o.newest.Front(); e != nil; e = e.Next() {
		seen := e.Value.(*reader)
		behind := seen.behind
		if seen.Hub == "" && seen.Key == "" {
			behind += r.cfg.Counted(o.id) - seen.mark
		}
		text, err := json.Marshal(storedReader{
			Name: seen.Name, Hub: seen.Hub, Part: seen.Part, Key: seen.Key, Position: seen.Position,
			At: seen.At.UnixMilli(), Seen: seen.LastSeen.UnixMilli(), Behind: behind,
		})
		if err != nil {
			return nil, err
		}
		if size += len(text) + 1; size > maxValue {
			break
		}
		value.Readers = append(value.Readers, text)
	}
	return json.Marshal(value)
}

// merge adds what another replica has written about an organization. The newest read of a reader
// counts.
func (r *Registry) merge(orgID string, value []byte, revision uint64) error {
	var written storedOrg
	if err := json.Unmarshal(value, &written); err != nil {
		return fmt.Errorf("feed readers of %s: %w", orgID, err)
	}
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.org(orgID)
	if revision <= o.revision {
		return nil // this process has written it
	}
	o.revision, o.written = revision, now
	added := false
	for _, text := range written.Readers {
		var s storedReader
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("feed readers of %s: %w", orgID, err)
		}
		added = r.mergeReader(o, &s) || added
	}
	if added {
		r.sort(o)
		r.trim(o)
	}
	return nil
}

// mergeReader adds a reader at the end of the list, unless a read as new is known. The caller must
// hold r.mu.
func (r *Registry) mergeReader(o *org, s *storedReader) (added bool) {
	id := domain.FeedReaderID{Name: s.Name, Hub: s.Hub, Part: s.Part, Key: s.Key}
	read := reader{
		FeedReader: domain.FeedReader{
			FeedReaderID: id, Position: s.Position, At: time.UnixMilli(s.At),
			LastSeen: time.UnixMilli(s.Seen),
		},
		behind: s.Behind,
	}
	if id.Hub == "" {
		read.mark = r.cfg.Counted(o.id)
	}
	element, ok := o.readers[id]
	switch {
	case !ok:
		o.readers[id] = o.newest.PushBack(&read)
		r.total++
		return true
	case element.Value.(*reader).LastSeen.UnixMilli() < s.Seen:
		*element.Value.(*reader) = read
		return true
	}
	return false
}

// sort restores the order of the list. The caller must hold r.mu.
func (r *Registry) sort(o *org) {
	all := make([]*reader, 0, o.newest.Len())
	for e := o.newest.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*reader))
	}
	slices.SortStableFunc(all, func(a, b *reader) int { return b.LastSeen.Compare(a.LastSeen) })
	o.newest.Init()
	for _, seen := range all {
		o.readers[seen.FeedReaderID] = o.newest.PushBack(seen)
	}
}
