package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/jsapi"
)

const (
	// largePart is the part of all stored bytes, in percent, from which one hub's log gets a
	// warning, if the log has at least largeLog bytes.
	largePart = 20
	largeLog  = 256 << 20
	// idempotencyStream keeps the responses to commands.
	idempotencyStream = "KV_idempotency"
)

// checkLogs compares accounts and streams with their limits, and looks for lost messages.
func checkLogs(ctx context.Context, v *visit, f *findings) {
	accounts, err := v.accounts()
	if err != nil {
		f.unknown("unknown: ", err)
		return
	}
	judgeAccounts(v.limits, accounts, f)
	cloud, err := v.cloud()
	if err != nil {
		f.unknown("", err)
		return
	}
	for _, s := range cloud {
		name, state := s.Config.Name, s.State
		if name == streams.DirectoryStream || name == idempotencyStream {
			f.note("%s has %d entries (%s)", name, state.Msgs, Size(int64(state.Bytes)))
		}
	}
	judgeLasting(ctx, v.survey, cloud, f)
	judgeStreams(v.limits, cloud, f)
	list, err := v.hubLogs()
	if err != nil {
		f.unknown("", err)
		return
	}
	judgeStreams(v.limits, list.logs, f)
	judgeLargest(accounts, list, f)
}

// judgeLasting reports lost messages of the directory and the journals.
func judgeLasting(ctx context.Context, s survey, cloud []jetstream.StreamInfo, f *findings) {
	conns, err := s.conns()
	if err != nil {
		return // there is no cloud then
	}
	for _, stream := range cloud {
		name := stream.Config.Name
		if name == streams.DirectoryStream || isJournal(name) {
			holes, err := jsapi.New(conns.Cloud).Holes(ctx, name, isJournal(name))
			judgeHoles(name, holes, err, f)
		}
	}
}

// checkStores looks for damage while no service answers: in the broker or, while that does not run
// either, in the files of the embedded one.
func checkStores(ctx context.Context, t *target, err error, f *findings) {
	notAsked(ctx, t, err, f)
	if cloud, err := t.cloud(); err == nil {
		judgeLasting(ctx, t.survey, cloud, f)
		return
	}
	if !t.embedsBroker() {
		return
	}
	damaged, err := broker.Damaged(t.DataDir)
	if err != nil {
		f.unknown("the streams on disk cannot be read: ", err)
	}
	for _, folder := range damaged {
		f.wrong(
			"the configuration of stream %s of account %s cannot be read",
			folder.Stream, folder.Account,
		).todo(
			"start the service: it declares its streams again, which brings their messages back; " +
				"its log names the streams that it cannot recover",
		)
	}
	folders, _ := filepath.Glob(t.path("nats", "durable", "jetstream", "*", "streams", "*"))
	var lasting []string
	for _, folder := range folders {
		if name := filepath.Base(folder); name == streams.DirectoryStream || isJournal(name) {
			lasting = append(lasting, name)
		}
	}
	if len(lasting) > 0 && !slices.Contains(lasting, streams.DirectoryStream) {
		f.wrong("the directory (%s) is gone", streams.DirectoryStream).todo(
			"no service starts without it: create it again with `hubcloud restore --directory`, " +
				"from a backup or another copy, or without one (--accept-loss)",
		)
	}
	for _, name := range lasting {
		found, err := broker.Holes(t.DataDir, name)
		var holes []jsapi.Hole
		for _, hole := range found {
			holes = append(holes, hole.Hole)
		}
		judgeHoles(name, holes, err, f)
	}
}

// isJournal reports whether a stream of the account CLOUD is a journal.
func isJournal(name string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(streams.JournalStream(0), "0")) &&
		name != streams.JournalIndexStream
}

// judgeHoles reports lost messages of the directory or a journal.
func judgeHoles(stream string, holes []jsapi.Hole, err error, f *findings) {
	if err != nil && !errors.Is(err, jsapi.ErrNoStream) {
		f.unknown(fmt.Sprintf("whether messages of %s are lost is unknown: ", stream), err)
	}
	for _, hole := range holes {
		if stream == streams.DirectoryStream {
			f.wrong("events of the directory (%s) are lost: %s", stream, hole).todo(
				"no service starts on that: put them back with `hubcloud restore --directory`, " +
					"from a backup or another server's copy, or accept the loss (--accept-loss); " +
					"check the disk (dmesg)",
			)
			continue
		}
		f.warn("commits of journal %s are lost: %s", stream, hole).todo(
			"check the disk (dmesg): events that hubs sent then are lost where the hubs' own " +
				"streams do not have them; readers get hub.events_skipped; nothing else is to be " +
				"done, and the finding ends once these commits have expired",
		)
	}
}

// judgeAccounts compares accounts with their limits.
func judgeAccounts(limits Limits, accounts []accountInfo, f *findings) {
	for _, a := range accounts {
		what := fmt.Sprintf("account %s", a.Name)
		judge(limits, f, what, "bytes", a.Store, a.Limits.MaxStore)
		judge(limits, f, what, "streams", uint64(a.Streams), int64(a.Limits.MaxStreams))
	}
}

// judgeStreams compares streams with their limits, and reports lost messages.
func judgeStreams(limits Limits, all []jetstream.StreamInfo, f *findings) {
	for _, s := range all {
		name := s.Config.Name
		judge(limits, f, "stream "+name, "bytes", s.State.Bytes, s.Config.MaxBytes)
		judge(limits, f, "stream "+name, "messages", s.State.Msgs, s.Config.MaxMsgs)
		if lost := s.State.Lost; lost != nil && len(lost.Msgs) > 0 {
			f.wrong(
				"%d messages of stream %s cannot be read from the disk", len(lost.Msgs), name,
			).todo(
				"check the disk (dmesg); a stream with copies repairs itself; restore the " +
					"directory with `hubcloud restore`",
			)
		}
	}
}

// judge compares a number with its limit; 0 means no limit. It reports nothing far below the limit.
func judge(limits Limits, f *findings, what, unit string, used uint64, limit int64) {
	if limit <= 0 {
		return
	}
	part := 100 * float64(used) / float64(limit)
	verdict := verdictOf(part >= limits.StorageUsed, part >= 0.8*limits.StorageUsed)
	if verdict == OK {
		return
	}
	f.grade(
		verdict, "beyond the limit, writes are rejected: raise the limit of "+what+", or find out "+
			"what fills it",
		"%s has %d of at most %d %s (%.0f %%)", what, used, limit, unit, part,
	)
}

// judgeLargest sums up the hub logs, and reports a hub whose log is a large part of all stored
// bytes.
func judgeLargest(accounts []accountInfo, list hubLogList, f *findings) {
	var all, logs uint64
	for _, a := range accounts {
		all += a.Store
	}
	for _, s := range list.logs {
		logs += s.State.Bytes
	}
	if !list.complete {
		f.note("only some of the hub logs were read in time:")
	}
	if len(list.logs) == 0 {
		f.note("there are no hub logs")
		return
	}
	largest := slices.MaxFunc(list.logs, func(a, b jetstream.StreamInfo) int {
		return cmp.Compare(a.State.Bytes, b.State.Bytes)
	})
	hub := hubOf(largest)
	f.note(
		"%d hub logs hold %s, the log of %s the most with %s", len(list.logs), Size(int64(logs)), hub,
		Size(int64(largest.State.Bytes)),
	)
	if part := 100 * float64(largest.State.Bytes) / float64(max(all, 1)); part >= largePart &&
		largest.State.Bytes >= largeLog {
		f.warn("the log of %s is %.0f %% of all stored bytes", hub, part).todo(
			fmt.Sprintf("check what the hub sends: hubcloud tap --hub %s", hub),
		)
	}
}
