package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// mailStream holds the mails that wait for delivery.
	mailStream = "MAIL"
	// logsAtOnce is how many hub logs are taken side by side, and accountsAtOnce in how many
	// accounts streams are brought back.
	logsAtOnce     = 8
	accountsAtOnce = 8
)

// Config says what to take, and where to.
type Config struct {
	// Dir is a folder that is new or empty.
	Dir string
	// HubLogs takes the hub logs too.
	HubLogs bool
	// Installation is the id of the installation.
	Installation string
	// Files are what the installation keeps beside the broker, by their names in the backup.
	Files map[string][]byte
	// Tell hears how far it has come; nil: nobody does.
	Tell func(Progress)
}

// Write takes a backup of the installation that conns lead to. A folder that is left without one
// holds a file named UNFINISHED.
func Write(ctx context.Context, conns *streams.Conns, cfg Config) (Manifest, error) {
	m := Manifest{
		Format: formatVersion, Installation: cfg.Installation, BeganAt: time.Now().UTC(),
		Shards: len(conns.Shards), HubLogs: cfg.HubLogs,
		Broker: conns.Cloud.ConnectedServerVersion(),
	}
	into, err := newFolder(cfg.Dir)
	if err != nil {
		return m, err
	}
	w := &writer{into: into, conns: conns}
	if err := w.survey(ctx, cfg); err != nil {
		return m, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Files)) {
		if err := into.write(name, cfg.Files[name]); err != nil {
			return m, err
		}
	}
	for _, bucket := range buckets {
		if err := w.bucket(ctx, bucket); err != nil {
			return m, err
		}
	}
	if w.mail {
		if _, err := w.stream(ctx, conns.Cloud, streams.AccountCloud, mailStream); err != nil {
			return m, err
		}
	}
	if err := w.hubLogs(ctx); err != nil {
		return m, err
	}
	m.At = time.Now().UTC()
	taken, err := w.stream(ctx, conns.Cloud, streams.AccountCloud, streams.DirectoryStream)
	if err != nil {
		return m, err
	}
	if taken.Messages != taken.Last {
		return m, fmt.Errorf(
			"the directory has %d events up to sequence %d: some are missing, and a backup would not bring them back",
			taken.Messages, taken.Last,
		)
	}
	m.Directory = taken.Last
	w.meter.end()
	return into.finish(m)
}

// writer is a backup that is being written.
type writer struct {
	into  *folder
	conns *streams.Conns
	meter *meter
	mail  bool
	// logs are the hub logs that are taken, by shard.
	logs [][]string
}

// survey finds what there is, and how much of it.
func (w *writer) survey(ctx context.Context, cfg Config) error {
	var total int64
	size := func(nc *nats.Conn, stream string) error {
		info, err := jsapi.New(nc).Info(ctx, stream)
		if err != nil {
			return err
		}
		total += int64(info.State.Bytes)
		return nil
	}
	names, err := jsapi.New(w.conns.Cloud).Names(ctx)
	if err != nil {
		return err
	}
	w.mail = slices.Contains(names, mailStream)
	wanted := []string{streams.DirectoryStream}
	for _, bucket := range buckets {
		wanted = append(wanted, jsapi.BucketStream(bucket))
	}
	if w.mail {
		wanted = append(wanted, mailStream)
	}
	for _, stream := range wanted {
		if err := size(w.conns.Cloud, stream); err != nil {
			return err
		}
	}
	if cfg.HubLogs {
		w.logs = make([][]string, len(w.conns.Shards))
		for shard, nc := range w.conns.Shards {
			names, err := jsapi.New(nc).Names(ctx)
			if err != nil {
				return err
			}
			w.logs[shard] = slices.DeleteFunc(
				names, func(name string) bool { return !isHubLog(name) },
			)
			for _, stream := range w.logs[shard] {
				if err := size(nc, stream); err != nil {
					return err
				}
			}
		}
	}
	w.meter = newMeter(cfg.Tell, total)
	return nil
}

func (w *writer) bucket(ctx context.Context, bucket string) error {
	w.meter.step(bucket)
	f, err := w.into.create(bucketFile(bucket))
	if err != nil {
		return err
	}
	f.Bucket = bucket
	return f.close(readBucket(ctx, w.conns.Cloud, bucket, f, w.meter.add))
}

func (w *writer) stream(
	ctx context.Context, nc *nats.Conn, account streams.Account, stream string,
) (taken Stream, err error) {
	w.meter.step(stream)
	f, err := w.into.create(streamFile(account, stream))
	if err != nil {
		return taken, err
	}
	for try := 1; ; try++ {
		taken, err = snapshot(ctx, nc, stream, f, w.meter.add)
		if !errors.Is(err, jsapi.ErrTornSnapshot) && !errors.Is(err, errTornBatch) || try == snapshotTries {
			break
		}
		if err = f.again(); err != nil {
			break
		}
	}
	taken.Account = account
	f.Stream = &taken
	return taken, f.close(err)
}

func (w *writer) hubLogs(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(logsAtOnce)
	for shard, logs := range w.logs {
		for _, stream := range logs {
			group.Go(func() error {
				_, err := w.stream(ctx, w.conns.Shards[shard], streams.ShardAccount(shard), stream)
				return err
			})
		}
	}
	return group.Wait()
}
