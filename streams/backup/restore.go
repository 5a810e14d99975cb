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

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// parallelAccounts is how many accounts are restored at a time.
	parallelAccounts = 8
	// abandonedTimeout is how long a stream may exist that an interrupted restore has begun: the
	// broker gives up a restore whose sender is silent for 5 s. abandonedPause is the pause between
	// two tries meanwhile.
	abandonedTimeout = 30 * time.Second
	abandonedPause   = 250 * time.Millisecond
)

// RestoreConfig configures Restore.
type RestoreConfig struct {
	// Dir is the folder of the backup, which Check has read without an error. Required.
	Dir string
	// Replicas is the number of replicas of each restored stream. Defaults to 1.
	Replicas int
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

// Validate returns an error that names the first field with an unusable value.
func (c RestoreConfig) Validate() error {
	if c.Dir == "" {
		return errors.New("restore: Dir: must be set")
	}
	if c.Replicas < 1 {
		return fmt.Errorf("restore: Replicas: %d must be at least 1", c.Replicas)
	}
	return nil
}

// Restore restores the backup with manifest m into an empty broker. The error is ErrNotEmpty for a
// broker with an installation, which stays unchanged. Restore first deletes the streams of an
// interrupted restore.
func Restore(ctx context.Context, conns *streams.Conns, m Manifest, cfg RestoreConfig) error {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
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
	if err := r.restoreFiles(ctx, m.Files); err != nil {
		return err
	}
	r.meter.step("epochs of hub logs")
	if err := r.renewEpochs(ctx, lastSequences(m)); err != nil {
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

// restoreFiles restores several accounts at a time, but the files of one account one after the
// other: nats-server 2.15 crashes when it restores two streams of an account at the same moment,
// since it reads the account's streams without the lock under which streams are added.
func (r *restorer) restoreFiles(ctx context.Context, files []File) error {
	accounts := map[streams.Account][]File{}
	for _, f := range files {
		account := streams.AccountCloud
		if f.Stream != nil {
			account = f.Stream.Account
		}
		accounts[account] = append(accounts[account], f)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelAccounts)
	for _, files := range accounts {
		group.Go(func() error {
			for _, f := range files {
				if err := r.restoreFile(ctx, f); err != nil {
					return fmt.Errorf("restore %s: %w", f.Name, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
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
	nc, err := accountConn(r.conns, stream.Account)
	if err != nil {
		return err
	}
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
