package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// mailStream holds the mails that are queued for delivery.
	mailStream = "MAIL"
	// snapshotTries is how often the snapshot of a stream is tried that ends in the middle of a
	// batch, or of which chunks were lost on the way.
	snapshotTries = 20
)

// Config configures Write.
type Config struct {
	// Dir is a new or empty folder for the backup. Required.
	Dir string `check:"set"`
	// Format is the format of the installation's streams, at least 1. Required.
	Format int `check:"positive"`
	// HubLogs includes the hub logs. Defaults to false.
	HubLogs bool
	// Installation is the installation's id, for the manifest.
	Installation string
	// Files are further files of the installation, by their slash-separated names in the backup.
	Files map[string][]byte
	// Progress is called, from several goroutines but never concurrently, as the backup proceeds.
	// Defaults to none.
	Progress func(Progress)
}

// Write writes a backup of the installation on the broker to cfg.Dir and returns its manifest.
// After an error the folder contains a file named UNFINISHED, and can only be removed.
func Write(ctx context.Context, conns *streams.Conns, cfg Config) (Manifest, error) {
	if err := domain.CheckFields("backup", cfg); err != nil {
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
	for _, name := range w.streams {
		if _, err := w.writeStream(ctx, name); err != nil {
			return m, err
		}
	}
	m.At = time.Now().UTC()
	events, err := w.writeStream(ctx, streams.DirectoryStream)
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
	// streams are the names of the streams to copy before the directory, in that order.
	streams []string
}

// plan finds the streams to copy and their size.
func (w *writer) plan(ctx context.Context, cfg Config) error {
	names, err := jsapi.New(w.conns.Cloud).Names(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(names, mailStream) {
		w.streams = append(w.streams, mailStream)
	}
	if slices.Contains(names, streams.BookStream) { // before the journals, which it is written from
		w.streams = append(w.streams, streams.BookStream)
	}
	if cfg.HubLogs {
		// The index first: it may be older than the journals.
		w.streams = append(w.streams, streams.JournalIndexStream)
		for _, name := range names {
			if isJournal(name) && name != streams.JournalIndexStream {
				w.streams = append(w.streams, name)
			}
		}
	}
	all := append([]string{streams.DirectoryStream}, w.streams...)
	for _, bucket := range buckets {
		all = append(all, jsapi.BucketStream(bucket))
	}
	total, err := sizeOf(ctx, w.conns.Cloud, all)
	if err != nil {
		return err
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

func (w *writer) writeStream(ctx context.Context, name string) (stream Stream, err error) {
	w.meter.step(name)
	f, err := w.folder.create(streamFile(name))
	if err != nil {
		return stream, err
	}
	for try := 1; ; try++ {
		stream, err = writeSnapshot(ctx, w.conns.Cloud, name, f, w.meter.add)
		torn := errors.Is(err, jsapi.ErrTornSnapshot) || errors.Is(err, errSplitBatch)
		if !torn || try == snapshotTries {
			break
		}
		if err = f.reset(); err != nil {
			break
		}
	}
	f.Stream = &stream
	return stream, f.close(err)
}
