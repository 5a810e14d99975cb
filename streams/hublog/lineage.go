package hublog

import "hubcloud/domain"

// lineage says which of a stream's messages are a hub's log, and under which tags: what was
// restored from a backup keeps its own.
type lineage struct {
	// tag is that of what is stored now, and the name of the log as a whole: it changes whenever
	// the log begins anew or is restored.
	tag tag
	// after is a sequence of the stream: what is stored up to it is not of the log.
	after uint64
	// former are the tags of what was restored, oldest first; nil for a log that never was.
	former []formerTag
}

// formerTag is the tag of what is stored up to a sequence and behind the one before it.
type formerTag struct {
	tag     tag
	through uint64
}

// parseLineage reads what the directory says of a hub's log.
func parseLineage(inc Incarnation) (l lineage, err error) {
	l.after = inc.After
	if l.tag, err = parseTag(inc.Tag); err != nil {
		return l, err
	}
	for _, former := range inc.Former.List() {
		t, err := parseTag(former.Tag)
		if err != nil {
			return l, err
		}
		l.former = append(l.former, formerTag{t, former.Through})
	}
	return l, nil
}

// at gives the tag of what is stored under a sequence, and of cursors that stand there.
func (l lineage) at(seq uint64) tag {
	for _, former := range l.former {
		// The beginning of a log of which nothing was restored is not that of the log before.
		if seq <= former.through && former.through > 0 {
			return former.tag
		}
	}
	return l.tag
}

// cursor makes a cursor that stands at a sequence.
func (l lineage) cursor(seq uint64, ms int64) cursor { return cursor{l.at(seq), seq, ms} }

// incarnation gives the hub's log as it is now. The error is not_found.
func (l *Logs) incarnation(hub domain.HubID) (lineage, error) {
	inc, ok := l.cfg.Incarnation(hub)
	if !ok {
		return lineage{}, domain.ErrHubNotFound()
	}
	return parseLineage(inc)
}
