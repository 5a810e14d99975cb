package doctor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

const (
	// writerTimeout bounds the question whether a journal is written.
	writerTimeout = 1500 * time.Millisecond
	// steadyAge is how old a journal must be for a forecast of its size.
	steadyAge = time.Hour
)

// checkJournal checks the journals: whether they are written, whether they have room, and whether
// the hub logs' streams that this replica writes are behind them.
func checkJournal(ctx context.Context, v *visit, f *findings) {
	cloud, err := v.cloud()
	if err != nil {
		f.unknown("", err)
		return
	}
	var journals []jetstream.StreamInfo
	// The journals are asked at once, and reported in their order.
	found := make([]*findings, v.Journals)
	var asking sync.WaitGroup
	for group := range v.Journals {
		found[group] = newFindings()
		s, ok := find(cloud, streams.JournalStream(group))
		if !ok {
			found[group].wrong("journal %d is missing", group).todo(
				"start the server or mount the disk that had it: hubs of its group get no acks",
			)
			continue
		}
		journals = append(journals, s)
		judgeJournal(s, group, found[group])
		asking.Go(func() { judgeWriter(ctx, v.Conns, group, found[group]) })
	}
	asking.Wait()
	intact := 0
	for _, one := range found {
		if one.Verdict == OK && v.Journals > 1 {
			intact++
			continue
		}
		f.merge(one)
	}
	if intact > 0 {
		var bytes int64
		for _, s := range journals {
			bytes += int64(s.State.Bytes)
		}
		f.note(
			"%d of %d journals are written; the journals have %s", intact, v.Journals, Size(bytes),
		)
	}
	judgeViews(v, f)
	judgeRoom(v, journals, f)
}

// judgeViews reports hub logs whose stream lacks records of the journal.
func judgeViews(v *visit, f *findings) {
	behind := v.sum("hubcloud_views_behind")
	if behind == 0 {
		f.note("the hub logs have what their journal has")
		return
	}
	f.warn("the streams of %.0f hub logs lack records of the journal", behind).todo(
		"nothing is lost: readers get these records from the journal, and the service writes the " +
			"streams again; if that does not end, its log names the broker's error",
	)
}

// judgeJournal reports what a journal has.
func judgeJournal(s jetstream.StreamInfo, group int, f *findings) {
	if s.State.Msgs == 0 {
		f.note("journal %d is empty and ends at commit %d", group, s.State.LastSeq)
		return
	}
	f.note(
		"journal %d ends at commit %d, stored %s ago, and has %s of the last %s", group,
		s.State.LastSeq, ago(time.Since(s.State.LastTime)), Size(int64(s.State.Bytes)),
		ago(time.Since(s.State.FirstTime)),
	)
}

// judgeWriter reports whether a replica writes a journal. The question has no records: its writer
// rejects it, and stores nothing.
func judgeWriter(ctx context.Context, conns *streams.Conns, group int, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, writerTimeout)
	defer cancel()
	_, err := conns.Cloud.RequestWithContext(ctx, streams.AppendSubject(group), nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		f.wrong("no replica writes journal %d", group).todo(
			"start a replica with the role bridge; after a kill wait 10 s: until a replica has " +
				"the lease, hubs get no acks",
		)
	case err != nil:
		f.unclear("the writer of journal %d does not answer: %v", group, err).todo(
			"see the log of the replica that has its lease (hubcloud_lease_groups_held), and " +
				"restart it if it hangs",
		)
	default:
		f.note("its writer answers")
	}
}

// judgeRoom compares the room that the broker has left with how much the journals will still grow:
// a journal grows until its oldest commits expire.
func judgeRoom(v *visit, journals []jetstream.StreamInfo, f *findings) {
	servers, err := v.servers()
	if err != nil {
		return // the component broker reports that
	}
	room, limited := int64(0), false
	for _, s := range servers {
		store := s.Stats.JetStream
		if store == nil || store.Config.MaxStore <= 0 {
			continue
		}
		left := max(0, store.Config.MaxStore-int64(store.Stats.Store))
		if !limited || left < room {
			room, limited = left, true
		}
	}
	if !limited {
		return
	}
	var growth int64
	for _, s := range journals {
		age, keeps := time.Since(s.State.FirstTime), s.Config.MaxAge
		if s.State.Msgs > 0 && age > steadyAge && age < keeps {
			growth += int64(float64(s.State.Bytes) * (float64(keeps)/float64(age) - 1))
		}
	}
	if growth > room {
		f.warn(
			"the journals will grow by %s at the rate until now, and the broker has room for %s",
			Size(growth), Size(room),
		).todo("enlarge the broker's disk, or shorten --event-retention")
		return
	}
	f.note("the broker has room for %s", Size(room))
}
