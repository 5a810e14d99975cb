package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
)

const (
	// writerTimeout bounds the question whether a journal is written.
	writerTimeout = 1500 * time.Millisecond
	// viewsLate is the age of the oldest commit that is not known to be in the hub logs' streams,
	// on disk, from which there is a warning. Normally it is five minutes.
	viewsLate = 15 * time.Minute
	// steadyAge is how old a journal must be for a forecast of its size.
	steadyAge = time.Hour
)

// checkJournal checks the journals: whether they are written, whether they have room, and whether
// the hub logs' streams are behind them.
func checkJournal(ctx context.Context, t *target, f *findings) {
	conns, err := t.broker()
	if err != nil {
		f.unknown("unknown: ", errNoBroker)
		return
	}
	cloud, err := t.cloud()
	if err != nil {
		f.unknown("", err)
		return
	}
	groups, err := journalGroups(ctx, conns)
	switch {
	case err != nil:
		f.unknown("", err)
		return
	case groups == 0:
		f.add(Skipped, "there is none yet: the first start of the service creates it", "")
		return
	}
	// The journals are asked at once, and reported in their order.
	found := make([]*findings, groups)
	var asking sync.WaitGroup
	for group := range groups {
		found[group] = newFindings()
		asking.Go(func() {
			i := slices.IndexFunc(cloud, func(s survey.Stream) bool {
				return s.Name == streams.JournalStream(group)
			})
			if i < 0 {
				found[group].add(
					Wrong, fmt.Sprintf("journal %d is missing", group),
					"start the server or mount the disk that had it: hubs of its group get no acks",
				)
				return
			}
			judgeJournal(cloud[i], group, found[group])
			judgeWriter(ctx, conns, group, found[group])
			judgeViews(ctx, t, conns, group, groups, found[group])
		})
	}
	asking.Wait()
	intact := 0
	for _, one := range found {
		if one.verdict == OK && groups > 1 {
			intact++
			continue
		}
		f.merge(one)
	}
	if intact > 0 {
		f.note(
			"%d of %d journals are written, and the hub logs have what they have; the journals "+
				"have %s", intact, groups, size(journalBytes(groups, cloud)),
		)
	}
	judgeRoom(t, groups, cloud, f)
}

// journalGroups returns the number of journals of the installation, 0 if it has none yet.
func journalGroups(ctx context.Context, conns *streams.Conns) (int, error) {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return 0, err
	}
	bucket, err := js.KeyValue(ctx, streams.InstallationBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	settings, err := installation.Read(ctx, conns.Cloud, bucket)
	if errors.Is(err, installation.ErrNeverStarted) {
		return 0, nil
	}
	return settings.Journals, err
}

// journalBytes returns the size of all journals.
func journalBytes(groups int, cloud []survey.Stream) (bytes int64) {
	for group := range groups {
		for _, s := range cloud {
			if s.Name == streams.JournalStream(group) {
				bytes += s.Bytes
			}
		}
	}
	return bytes
}

// judgeJournal reports what a journal has.
func judgeJournal(s survey.Stream, group int, f *findings) {
	if s.Messages == 0 {
		f.note("journal %d is empty and ends at commit %d", group, s.Last)
		return
	}
	f.note(
		"journal %d ends at commit %d, stored %s ago, and has %s of the last %s", group, s.Last,
		ago(time.Since(s.Newest)), size(s.Bytes), ago(time.Since(s.Oldest)),
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
		f.add(
			Wrong, fmt.Sprintf("no replica writes journal %d", group),
			"start a replica with the role bridge; after a kill wait 10 s: until a replica has the "+
				"lease, hubs get no acks",
		)
	case err != nil:
		f.add(
			Unknown, fmt.Sprintf("the writer of journal %d does not answer: %v", group, err),
			"see the log of the replica that has its lease (hubcloud_lease_groups_held), and "+
				"restart it if it hangs",
		)
	default:
		f.note("its writer answers")
	}
}

// judgeRoom compares the room that the broker has left with how much the journals will still grow:
// a journal grows until its oldest commits expire.
func judgeRoom(t *target, groups int, cloud []survey.Stream, f *findings) {
	servers, err := t.servers()
	if err != nil {
		return // the component broker reports that
	}
	room, limited := int64(0), false
	for _, s := range servers {
		if s.JetStream == nil || s.JetStream.StorageLimit <= 0 {
			continue
		}
		left := max(0, s.JetStream.StorageLimit-s.JetStream.StorageBytes)
		if !limited || left < room {
			room, limited = left, true
		}
	}
	if !limited {
		return
	}
	journals := map[string]bool{}
	for group := range groups {
		journals[streams.JournalStream(group)] = true
	}
	var growth int64
	for _, s := range cloud {
		age := time.Since(s.Oldest)
		if journals[s.Name] && s.Messages > 0 && age > steadyAge && age < s.MaxAge {
			growth += int64(float64(s.Bytes) * (float64(s.MaxAge)/float64(age) - 1))
		}
	}
	if growth > room {
		f.add(
			Warning,
			fmt.Sprintf(
				"the journals will grow by %s at the rate until now, and the broker has room for %s",
				size(growth), size(room),
			),
			"enlarge the broker's disk, or shorten --event-retention",
		)
		return
	}
	f.note("the broker has room for %s", size(room))
}
