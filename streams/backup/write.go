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
	// mailStream holds the mails that are queued for delivery.
	mailStream = "MAIL"
	// parallelLogs is how many hub logs are copied at a time.
	parallelLogs = 8
	// snapshotTries is how often the snapshot of a stream is tried that ends in the middle of a
	// batch, or of which chunks were lost on the way.
	snapshotTries = 20
)

// Config configures Write.
type Config struct {
	// Dir is a new or empty folder for the backup. Required.
	Dir string
	// Format is the format of the installation's streams, at least 1. Required.
	Format int
	// HubLogs includes the hub logs. Defaults to false.
	HubLogs bool
	// Installation is the installation's id, for the manifest.
	Installation string
	// Files are further files of the installation, by their slash-separated names in the backup.
	Files map[string][]byte
	// CompleteLogs completes the streams of the hub logs with what the journals have. It is called
	// before the hub logs are listed, and again before they are copied. Defaults to nothing.
	CompleteLogs func(context.Context) error
	// Progress is called, from several goroutines but never concurrently, as the backup proceeds.
	// Defaults to none.
	Progress func(Progress)
}

// Validate returns an error that names the first field with an unusable value.
func (c Config) Validate() error {
	if c.Dir == "" {
		return errors.New("backup: Dir: must be set")
	}
	if c.Format < 1 {
		return fmt.Errorf("backup: Format: %d must be at least 1", c.Format)
	}
	return nil
}

func (c Config) completeLogs(ctx context.Context) error {
	if c.CompleteLogs == nil || !c.HubLogs {
		return nil
	}
	return c.CompleteLogs(ctx)
}

// Write writes a backup of the installation on the broker to cfg.Dir and returns its manifest.
// After an error the folder contains a file named UNFINISHED, and can only be removed.
func Write(ctx context.Context, conns *streams.Conns, cfg Config) (Manifest, error) {
	if err := cfg.Validate(); err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format: cfg.Format, Installation: cfg.Installation, BeganAt: time.Now().UTC(),
		Shards: len(conns.Shards), HubLogs: cfg.HubLogs,
		Broker: conns.Cloud.ConnectedServerVersion(),
	}
	dir, err := newFolder(cfg.Dir)
	if err != nil {
		return m, err
	}
	w := &writer{folder: dir, conns: conns}
	if err := cfg.completeLogs(ctx); err != nil {
		return m, err
	}
	if err := w.plan(ctx, cfg); err != nil {
		return m, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Files)) {
		if err := dir.write(name, cfg.Files[name]); err != nil {
			return m, err
		}
	}
	for _, bucket := range buckets {
		if err := w.writeBucket(ctx, bucket); err != nil {
			return m, err
		}
	}
	if w.mail {
		if _, err := w.writeStream(ctx, conns.Cloud, streams.AccountCloud, mailStream); err != nil {
			return m, err
		}
	}
	// What the checkpoints account for must be in the logs.
	if err := cfg.completeLogs(ctx); err != nil {
		return m, err
	}
	if err := w.writeHubLogs(ctx); err != nil {
		return m, err
	}
	m.At = time.Now().UTC()
	events, err := w.writeStream(ctx, conns.Cloud, streams.AccountCloud, streams.DirectoryStream)
	if err != nil {
		return m, err
	}
	if events.Messages != events.Last {
		return m, fmt.Errorf(
			"the directory has %d events up to sequence %d: a backup of a directory with missing "+
				"events cannot be restored", events.Messages, events.Last,
		)
	}
	m.Directory = events.Last
	w.meter.finish()
	return dir.finish(m)
}

// writer writes one backup.
type writer struct {
	folder *folder
	conns  *streams.Conns
	meter  *meter
	// mail reports whether the broker has a stream of mails.
	mail bool
	// logs are the names of the hub logs to copy, by shard.
	logs [][]string
}

// plan finds the streams to copy and their size.
func (w *writer) plan(ctx context.Context, cfg Config) error {
	names, err := jsapi.New(w.conns.Cloud).Names(ctx)
	if err != nil {
		return err
	}
	cloud := []string{streams.DirectoryStream}
	for _, bucket := range buckets {
		cloud = append(cloud, jsapi.BucketStream(bucket))
	}
	if w.mail = slices.Contains(names, mailStream); w.mail {
		cloud = append(cloud, mailStream)
	}
	total, err := sizeOf(ctx, w.conns.Cloud, cloud)
	if err != nil {
		return err
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
			size, err := sizeOf(ctx, nc, w.logs[shard])
			if err != nil {
				return err
			}
			total += size
		}
	}
	w.meter = newMeter(cfg.Progress, total)
	return nil
}

// sizeOf returns the size in bytes of an account's streams.
func sizeOf(ctx context.Context, nc *nats.Conn, names []string) (bytes int64, err error) {
	for _, name := range names {
		info, err := jsapi.New(nc).Info(ctx, name)
		if err != nil {
			return 0, err
		}
		bytes += int64(info.State.Bytes)
	}
	return bytes, nil
}

func (w *writer) writeBucket(ctx context.Context, bucket string) error {
	w.meter.step(bucket)
	f, err := w.folder.create(bucketFile(bucket))
	if err != nil {
		return err
	}
	f.Bucket = bucket
	return f.close(readBucket(ctx, w.conns.Cloud, bucket, f, w.meter.add))
}

func (w *writer) writeStream(
	ctx context.Context, nc *nats.Conn, account streams.Account, name string,
) (stream Stream, err error) {
	w.meter.step(name)
	f, err := w.folder.create(streamFile(account, name))
	if err != nil {
		return stream, err
	}
	for try := 1; ; try++ {
		stream, err = writeSnapshot(ctx, nc, name, f, w.meter.add)
		torn := errors.Is(err, jsapi.ErrTornSnapshot) || errors.Is(err, errSplitBatch)
		if !torn || try == snapshotTries {
			break
		}
		if err = f.reset(); err != nil {
			break
		}
	}
	stream.Account = account
	f.Stream = &stream
	return stream, f.close(err)
}

func (w *writer) writeHubLogs(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLogs)
	for shard, logs := range w.logs {
		for _, name := range logs {
			group.Go(func() error {
				_, err := w.writeStream(
					ctx, w.conns.Shards[shard], streams.ShardAccount(shard), name,
				)
				return err
			})
		}
	}
	return group.Wait()
}
