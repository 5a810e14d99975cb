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
	// listTimeout bounds the list of hub logs. With tens of thousands of logs the list is
	// incomplete.
	listTimeout = 2500 * time.Millisecond
	// largePart is the part of all stored bytes, in percent, from which one hub's log gets a
	// warning, if the log has at least largeLog bytes.
	largePart = 20
	largeLog  = 256 << 20
)

// checkLogs compares accounts and streams with their limits, and looks for missing and damaged
// streams.
func checkLogs(ctx context.Context, t *target, f *findings) {
	judgeFolders(t, f)
	judgeHoles(ctx, t, f)
	accounts, err := t.accounts()
	if err != nil {
		f.unknown("unknown: ", err)
		return
	}
	judgeAccounts(t.Limits, accounts, f)
	cloud, err := t.cloud()
	if err != nil {
		f.unknown("", err)
		return
	}
	if !hasDirectory(cloud) {
		f.add(Wrong, "the directory is missing: this broker has no installation, or has lost it",
			"check that this is the right broker; restore a lost directory with `hubcloud restore`")
	}
	for _, s := range cloud {
		if s.Name == streams.DirectoryStream || s.Name == idempotencyStream {
			f.note("%s has %d entries (%s)", s.Name, s.Messages, size(s.Bytes))
		}
	}
	judgeStreams(t.Limits, cloud, f)
	list, err := t.hubLogs()
	if err != nil {
		f.unknown("", err)
		return
	}
	judgeStreams(t.Limits, list.logs, f)
	judgeLost(ctx, t, f)
	judgeLargest(accounts, list, f)
}

// judgeFolders reports streams on the disk of the embedded broker that the broker does not have.
// While the broker does not run, it reports streams with an unreadable configuration.
func judgeFolders(t *target, f *findings) {
	if t.DataDir == "" || t.Started != nil && t.Started.ExternalBroker {
		return
	}
	list, err := t.hubLogs()
	if err != nil {
		damaged, err := broker.Damaged(t.DataDir)
		if err != nil {
			f.unknown("the streams on disk cannot be read: ", err)
		}
		for _, folder := range damaged {
			f.add(
				Wrong,
				fmt.Sprintf(
					"the configuration of stream %s of account %s cannot be read", folder.Stream,
					folder.Account,
				),
				"start the service: it declares its streams again, which brings their messages "+
					"back; its log names the streams that it cannot recover",
			)
		}
		return
	}
	if !list.complete {
		return
	}
	folders, err := broker.Folders(t.DataDir)
	if err != nil {
		f.unknown("the streams on disk cannot be read: ", err)
		return
	}
	known := map[string]bool{}
	for _, s := range list.logs {
		known[s.Name] = true
	}
	for _, folder := range folders {
		if hub, ok := folder.Hub(); ok && !known[folder.Stream] {
			f.add(
				Wrong,
				fmt.Sprintf(
					"the log of %s is on disk (account %s) and was not recovered", hub,
					folder.Account,
				),
				"start the service again: it recovers such logs, or logs what is wrong with them",
			)
		}
	}
}

// judgeLost reports hubs that had a log and have none now.
func judgeLost(ctx context.Context, t *target, f *findings) {
	conns, err := t.broker()
	if err != nil {
		return // the component broker reports that
	}
	lost, err := ingest.LostLogs(ctx, conns)
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return // no service has been started on this broker yet
	case err != nil:
		f.unknown("whether hub logs are missing is unknown: ", err)
		return
	}
	advice := "start the server or mount the disk that had the log; otherwise the hub gets an " +
		"empty log when it connects (which is normal after a restore without hub logs)"
	if t.DataDir == "" || t.Started != nil && t.Started.ExternalBroker {
		advice += "; its messages may still be in the store of a nats-server that skips it at " +
			"each start (\"checksum\" in that server's log): remove nothing there, stop that " +
			"server, repair its store with `hubcloud broker-repair`, and start it"
	}
	for _, hub := range lost {
		f.add(
			Wrong,
			fmt.Sprintf(
				"the log of %s is lost: its events were stored, but the broker has no log of it",
				hub,
			),
			advice,
		)
	}
}

// idempotencyStream keeps the responses to commands.
const idempotencyStream = "KV_idempotency"

// judgeAccounts compares accounts with their limits.
func judgeAccounts(limits Limits, accounts []survey.Account, f *findings) {
	for _, a := range accounts {
		judge(limits, f, fmt.Sprintf("account %s", a.Name), "bytes", a.StorageBytes, a.StorageLimit)
		judge(limits, f, fmt.Sprintf("account %s", a.Name), "streams", a.Streams, a.StreamLimit)
	}
}

// judgeStreams compares streams with their limits, and reports lost messages.
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
				"check the disk (dmesg); a stream with copies repairs itself; restore the "+
					"directory with `hubcloud restore`",
			)
		}
	}
}

// judge compares a number with its limit; 0 means no limit. It reports nothing far below the limit.
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
			"beyond the limit, writes are rejected: raise the limit of %s, or find out what "+
				"fills it",
			what,
		),
	)
}

// judgeLargest sums up the hub logs, and reports a hub whose log is a large part of all stored
// bytes.
func judgeLargest(accounts []survey.Account, list hubLogList, f *findings) {
	var all, logs int64
	for _, a := range accounts {
		all += a.StorageBytes
	}
	for _, s := range list.logs {
		logs += s.Bytes
	}
	if !list.complete {
		f.note("only some of the hub logs were read in time:")
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
			Warning, fmt.Sprintf("the log of %s is %.0f %% of all stored bytes", hub, part),
			fmt.Sprintf("check what the hub sends: hubcloud tap --hub %s", hub),
		)
	}
}

// hubLogList has the hub logs that could be listed in time.
type hubLogList struct {
	logs     []survey.Stream
	complete bool
}

// listHubLogs lists the hub logs of all accounts concurrently, for at most listTimeout.
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
					// The broker keeps streams of its own for MQTT.
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
