package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hubviews"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

const (
	// viewDelay is how old a record must be to be missed in its hub's stream.
	viewDelay = time.Minute
	// commitsTimeout bounds the reading of commits. At high rates only the oldest ones are read.
	commitsTimeout = 1500 * time.Millisecond
)

// recent has what the commits of a journal after a position have.
type recent struct {
	// oldest is the time of the first record, zero without records.
	oldest time.Time
	// hubs has the records of each hub that are older than viewDelay.
	hubs map[domain.HubID]hubRecords
	// complete reports whether all commits were read.
	complete bool
}

// hubRecords are the records of one hub in some commits: their last sequence, and their times by
// sequence.
type hubRecords struct {
	last  uint64
	times map[uint64]time.Time
}

// judgeViews reports how far the streams of the hub logs of a group are behind its journal.
func judgeViews(
	ctx context.Context, t *target, conns *streams.Conns, group, groups int, f *findings,
) {
	bucket := jsapi.NewBucket(conns.Cloud, streams.InstallationBucket)
	position, err := hubviews.StoredPosition(ctx, bucket, groups, group)
	if err != nil {
		f.unknown("how far hub logs are behind is unknown: ", err)
		return
	}
	list, err := t.hubLogs()
	if err != nil {
		f.unknown("how far hub logs are behind is unknown: ", err)
		return
	}
	after, err := readCommits(ctx, conns, group, groups, position)
	if err != nil {
		f.unknown("how far hub logs are behind is unknown: ", err)
		return
	}
	f.note("its hub logs are complete on disk up to commit %d", position)
	if !after.complete {
		f.note("only some of its newer commits were read in time")
	}
	judgePosition(t, after, f)
	judgeBehind(list, after, f)
}

// judgePosition reports commits that have not been known to be in the streams for long. A service
// that has just been started does not know it yet.
func judgePosition(t *target, after recent, f *findings) {
	if after.oldest.IsZero() {
		return
	}
	since := after.oldest
	if t.Started != nil && t.Started.At.After(since) {
		since = t.Started.At
	}
	if late := time.Since(since); late > viewsLate {
		f.add(
			Warning, fmt.Sprintf("newer commits have not been written to disk for %s", ago(late)),
			"see the service's log for hub logs that cannot be written; a start reads these commits "+
				"again",
		)
	}
}

// judgeBehind reports hub logs whose stream lacks records.
func judgeBehind(list hubLogList, after recent, f *findings) {
	ends := make(map[domain.HubID]uint64, len(list.logs))
	for _, s := range list.logs {
		ends[hubOf(s)] = s.Last
	}
	var behind []string
	for hub, records := range after.hubs {
		end, listed := ends[hub]
		if !listed && !list.complete || end >= records.last {
			continue
		}
		text := fmt.Sprintf("%s (%d records", hub, records.last-end)
		if at, ok := records.times[end+1]; ok {
			text += ", since " + ago(time.Since(at))
		}
		behind = append(behind, text+")")
	}
	if len(behind) == 0 {
		return
	}
	slices.Sort(behind)
	f.add(
		Warning,
		fmt.Sprintf(
			"the streams of %d hub logs lack records of the journal: %s", len(behind), several(behind),
		),
		"nothing is lost: readers get these records from the journal, and the service writes the "+
			"streams again; if that does not end, its log names the broker's error",
	)
}

// hubOf returns the hub of the stream of a hub log.
func hubOf(s survey.Stream) domain.HubID {
	return domain.HubID(strings.TrimPrefix(s.Name, streams.HubStream("")))
}

// readCommits reads the commits of a journal after a position, the oldest first, as many as it can
// in commitsTimeout.
func readCommits(
	ctx context.Context, conns *streams.Conns, group, groups int, position uint64,
) (recent, error) {
	after := recent{hubs: map[domain.HubID]hubRecords{}}
	journals, err := journal.New(journal.Config{
		Conn: conns.Cloud, Groups: groups, Retention: time.Hour,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return after, err
	}
	follower := journals.NewFollower(
		group, position+1, after.add, func(_, _ uint64) {}, // what has expired is in no stream either
	)
	ctx, cancel := context.WithTimeout(ctx, commitsTimeout)
	defer cancel()
	var following sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	var runErr error
	following.Go(func() { runErr = follower.Run(running) })
	after.complete = follower.Sync(ctx) == nil
	ended := ctx.Err() == nil && !after.complete
	stop()
	following.Wait()
	if ended {
		return after, runErr
	}
	return after, nil
}

// add adds commits.
func (r *recent) add(commits []journal.Commit) {
	for i := range commits {
		for n := range commits[i].Records {
			record := &commits[i].Records[n]
			if r.oldest.IsZero() {
				r.oldest = record.Time
			}
			if time.Since(record.Time) < viewDelay {
				continue
			}
			of, ok := r.hubs[record.Hub]
			if !ok {
				of.times = map[uint64]time.Time{}
			}
			of.last = record.Seq
			of.times[record.Seq] = record.Time
			r.hubs[record.Hub] = of
		}
	}
}
