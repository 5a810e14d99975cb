package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams"
	"hubcloud/streams/broker"
)

const (
	// listTimeout bounds the list of hub logs: with tens of thousands of them only some are looked
	// at.
	listTimeout = 2500 * time.Millisecond
	// largePart is what part of everything one hub's log may be before that is worth a warning, in
	// percent, and largeLog how large it is at least.
	largePart = 20
	largeLog  = 256 << 20
)

// checkLogs compares what is stored with every limit that there is: those of accounts and of
// streams, of the broker's storage, and of the bucket that remembers commands.
func checkLogs(ctx context.Context, p *patient, f *findings) {
	judgeFolders(p, f)
	accounts, err := p.accounts()
	if err != nil {
		f.untold("cannot be told: ", err)
		return
	}
	judgeAccounts(p.Limits, accounts, f)
	cloud, err := p.cloud()
	if err != nil {
		f.untold("", err)
		return
	}
	if !slices.ContainsFunc(
		cloud, func(s survey.Stream) bool { return s.Name == streams.DirectoryStream },
	) {
		f.add(Wrong, "the directory is not there: this broker has no installation, or has lost it",
			"see whether it is the right broker; bring a lost one back with `hubcloud restore`")
	}
	for _, s := range cloud {
		if s.Name == streams.DirectoryStream || s.Name == idempotencyStream {
			f.note("%s has %d entries (%s)", s.Name, s.Messages, size(s.Bytes))
		}
	}
	judgeStreams(p.Limits, cloud, f)
	list, err := p.hubLogs()
	if err != nil {
		f.untold("", err)
		return
	}
	judgeStreams(p.Limits, list.logs, f)
	judgeLost(ctx, p, f)
	judgeLargest(accounts, list, f)
}

// judgeFolders names the streams on the disk of a private broker that the broker does not have.
// While none runs it names those that its next start cannot recover by itself.
func judgeFolders(p *patient, f *findings) {
	if p.DataDir == "" || p.Started != nil && p.Started.OwnBroker {
		return
	}
	list, err := p.hubLogs()
	if err != nil {
		damaged, err := broker.Damaged(p.DataDir)
		if err != nil {
			f.untold("the streams on disk cannot be looked at: ", err)
		}
		for _, folder := range damaged {
			f.add(
				Wrong,
				fmt.Sprintf(
					"the configuration of stream %s of account %s cannot be read", folder.Stream,
					folder.Account,
				),
				"start the service: it declares its streams anew, and their messages are there "+
					"again; its log names those that stay away",
			)
		}
		return
	}
	if !list.complete {
		return
	}
	folders, err := broker.Folders(p.DataDir)
	if err != nil {
		f.untold("the streams on disk cannot be looked at: ", err)
		return
	}
	there := map[string]bool{}
	for _, s := range list.logs {
		there[s.Name] = true
	}
	for _, folder := range folders {
		if hub, ok := folder.Hub(); ok && !there[folder.Stream] {
			f.add(
				Wrong,
				fmt.Sprintf(
					"the log of %s is on disk (account %s) and was not recovered", hub,
					folder.Account,
				),
				"start the service again: it repairs and declares such logs, or its log says what is wrong with them",
			)
		}
	}
}

// judgeLost names the hubs that had a log and have none.
func judgeLost(ctx context.Context, p *patient, f *findings) {
	conns, err := p.broker()
	if err != nil {
		return // told by the component broker
	}
	lost, err := ingest.LostLogs(ctx, conns)
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return // no service has been started on this broker yet
	case err != nil:
		f.untold("whether hub logs are missing cannot be told: ", err)
		return
	}
	advice := "bring back the server or disk that had it; without it the hub gets an empty log " +
		"when it connects (after a restore without hub logs that is as it should be)"
	if p.DataDir == "" || p.Started != nil && p.Started.OwnBroker {
		advice += "; its messages may still be in the store of a nats-server that passes over it " +
			"at each start (\"checksum\" in that server's log): " +
			"remove nothing there, stop that server, mend its store with `hubcloud broker-repair`, and start it"
	}
	for _, hub := range lost {
		f.add(
			Wrong,
			fmt.Sprintf(
				"the log of %s is gone: its events were stored, and the broker has no log of it",
				hub,
			),
			advice,
		)
	}
}

// idempotencyStream is where answers to commands are kept.
const idempotencyStream = "KV_idempotency"

// judgeAccounts compares what each account holds with its own limits.
func judgeAccounts(limits Limits, accounts []survey.Account, f *findings) {
	for _, a := range accounts {
		judge(limits, f, fmt.Sprintf("account %s", a.Name), "bytes", a.StorageBytes, a.StorageLimit)
		judge(limits, f, fmt.Sprintf("account %s", a.Name), "streams", a.Streams, a.StreamLimit)
	}
}

// judgeStreams compares each stream with its own limits, if it has any, and looks for those that
// have lost something.
func judgeStreams(limits Limits, all []survey.Stream, f *findings) {
	for _, s := range all {
		judge(limits, f, "stream "+s.Name, "bytes", s.Bytes, s.ByteLimit)
		judge(limits, f, "stream "+s.Name, "messages", s.Messages, s.MessageLimit)
		if s.Lost > 0 {
			f.add(
				Wrong,
				fmt.Sprintf(
					"%d messages of stream %s cannot be read from the disk", s.Lost, s.Name,
				),
				"look at the disk (dmesg); a stream with copies mends itself, the directory "+
					"comes back with `hubcloud restore`",
			)
		}
	}
}

// judge compares a figure with its limit, if there is one. A figure far below it says nothing.
func judge(limits Limits, f *findings, what, unit string, used, limit int64) {
	if limit <= 0 {
		return
	}
	part := 100 * float64(used) / float64(limit)
	verdict := Warning
	switch {
	case part >= limits.Storage:
		verdict = Wrong
	case part < 0.8*limits.Storage:
		return
	}
	f.add(
		verdict,
		fmt.Sprintf("%s has %d of at most %d %s (%.0f %%)", what, used, limit, unit, part),
		fmt.Sprintf(
			"what is beyond it is refused: raise the limit of %s, or find out what fills it", what,
		),
	)
}

// judgeLargest adds the hub logs up, and tells of a hub whose log is a large part of everything: it
// sends more than it should.
func judgeLargest(accounts []survey.Account, list hubLogList, f *findings) {
	var all, logs int64
	for _, a := range accounts {
		all += a.StorageBytes
	}
	for _, s := range list.logs {
		logs += s.Bytes
	}
	if !list.complete {
		f.note("there was time for some of the hub logs:")
	}
	if len(list.logs) == 0 {
		f.note("there are no hub logs")
		return
	}
	largest := slices.MaxFunc(
		list.logs, func(a, b survey.Stream) int { return cmp.Compare(a.Bytes, b.Bytes) },
	)
	hub := strings.TrimPrefix(largest.Name, streams.HubStream(""))
	f.note(
		"%d hub logs hold %s, that of %s the most with %s", len(list.logs), size(logs), hub,
		size(largest.Bytes),
	)
	if part := 100 * float64(largest.Bytes) / float64(max(all, 1)); part >= largePart &&
		largest.Bytes >= largeLog {
		f.add(
			Warning, fmt.Sprintf("the log of %s is %.0f %% of everything", hub, part),
			fmt.Sprintf("see what that hub sends: hubcloud tap --hub %s", hub),
		)
	}
}

// hubLogList is the hub logs, or as many of them as there was time for.
type hubLogList struct {
	logs     []survey.Stream
	complete bool
}

// listHubLogs lists the hub logs, all accounts side by side, for as long as there is time.
func listHubLogs(ctx context.Context, conns *streams.Conns) hubLogList {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := hubLogList{complete: true}
	var mu sync.Mutex
	var listing sync.WaitGroup
	for _, nc := range conns.Shards {
		listing.Go(func() {
			err := survey.Streams(ctx, nc, func(page []survey.Stream) bool {
				mu.Lock()
				defer mu.Unlock()
				for _, s := range page {
					// and not one of the broker's own, for MQTT
					if strings.HasPrefix(s.Name, streams.HubStream("")) {
						list.logs = append(list.logs, s)
					}
				}
				return false
			})
			mu.Lock()
			defer mu.Unlock()
			list.complete = list.complete && err == nil
		})
	}
	listing.Wait()
	return list
}
