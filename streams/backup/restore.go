package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// abandonedTimeout is how long a stream may exist that an interrupted restore has begun: the
	// broker gives up a restore whose sender is silent for 5 s. abandonedPause is the pause between
	// two tries meanwhile.
	abandonedTimeout = 30 * time.Second
	abandonedPause   = 250 * time.Millisecond
)

// RestoreConfig configures Restore.
type RestoreConfig struct {
	// Dir is the folder of the backup, which Check has read without an error. Required.
	Dir string `check:"set"`
	// Replicas is the number of replicas of each restored stream. Defaults to 1.
	Replicas int `check:"positive"`
	// Origin is recorded with the events that Restore appends to the directory.
	Origin domain.Origin
	// Adopt is called once all data is restored, before the restore counts as finished. Defaults to
	// none.
	Adopt func(ctx context.Context) error
	// Progress is called, from several goroutines but never concurrently, as the restore proceeds.
	// Defaults to none.
	Progress func(Progress)
}

// WithDefaults returns a copy in which defaults replace zero values.
func (c RestoreConfig) WithDefaults() RestoreConfig {
	c.Replicas = cmp.Or(c.Replicas, 1)
	return c
}

// Restore restores the backup with manifest m into an empty broker. The error is ErrNotEmpty for a
// broker with an installation, which stays unchanged. Restore first deletes the streams of an
// interrupted restore.
func Restore(ctx context.Context, conns *streams.Conns, m Manifest, cfg RestoreConfig) error {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("restore", cfg); err != nil {
		return err
	}
	if m.Shards != len(conns.Shards) {
		return fmt.Errorf(
			"the backup is of an installation with %d shards, and the broker has %d: the numbers "+
				"must be equal, because a hub's shard follows from the number of shards",
			m.Shards, len(conns.Shards),
		)
	}
	marker, err := setMarker(ctx, conns, cfg.Replicas)
	if err != nil {
		return err
	}
	r := &restorer{cfg: cfg, conns: conns, meter: newMeter(cfg.Progress, m.Bytes())}
	if _, err := streams.OpenBuckets(ctx, conns, cfg.Replicas); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := r.restoreFile(ctx, f); err != nil {
			return fmt.Errorf("restore %s: %w", f.Name, err)
		}
	}
	r.meter.step("epochs of hub logs")
	last, err := r.lastSequences(ctx, m)
	if err != nil {
		return err
	}
	if err := r.renewEpochs(ctx, last); err != nil {
		return err
	}
	if cfg.Adopt != nil {
		if err := cfg.Adopt(ctx); err != nil {
			return err
		}
	}
	r.meter.finish()
	return marker.remove(ctx)
}

// restorer restores one backup.
type restorer struct {
	cfg   RestoreConfig
	conns *streams.Conns
	meter *meter
}

func (r *restorer) restoreFile(ctx context.Context, f File) error {
	if f.Bucket == "" && f.Stream == nil {
		r.meter.add(f.Bytes) // one of Config.Files, which the caller restores
		return nil
	}
	r.meter.step(f.Name)
	content, err := os.Open(filepath.Join(r.cfg.Dir, filepath.FromSlash(f.Name)))
	if err != nil {
		return err
	}
	defer content.Close()
	if f.Bucket != "" {
		return restoreBucket(ctx, r.conns.Cloud, f.Bucket, content, r.meter.add)
	}
	return r.restoreStream(ctx, *f.Stream, content)
}

// restoreStream restores a stream. It deletes one of the same name, for as long as the broker may
// not have given up an interrupted restore of the stream.
func (r *restorer) restoreStream(ctx context.Context, stream Stream, content io.ReadSeeker) error {
	nc := r.conns.Cloud
	for began := time.Now(); ; {
		err := restoreStream(ctx, nc, stream, r.cfg.Replicas, content, r.meter.add)
		if !errors.Is(err, jsapi.ErrStreamExists) || time.Since(began) > abandonedTimeout {
			return err
		}
		if err := jsapi.New(nc).Delete(ctx, stream.Name); err != nil {
			return err
		}
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if !streams.Sleep(ctx, abandonedPause) {
			return ctx.Err()
		}
	}
}
