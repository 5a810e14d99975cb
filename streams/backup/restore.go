package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/jsapi"
)

const (
	// leftover is how long the broker may take to give up a restore whose sender is gone: after 5 s
	// it does.
	leftover      = 30 * time.Second
	leftoverPause = 250 * time.Millisecond
)

// hubsAtOnce is how many hubs' logs get their new tag side by side: each waits for the broker.
const hubsAtOnce = 64

// RestoreConfig says what to restore, and how.
type RestoreConfig struct {
	// Dir is the backup, which Check has found whole.
	Dir string
	// Replicas is how many copies of each stream the broker keeps, 1 or more.
	Replicas int
	// Origin says who restores.
	Origin domain.Origin
	// Adopt is called when everything is there, before the broker counts as restored; nil: nothing
	// is.
	Adopt func(ctx context.Context) error
	// Tell hears how far it has come; nil: nobody does.
	Tell func(Progress)
}

// Restore brings a backup back into the broker that conns lead to, which must be empty: ErrNotEmpty
// otherwise, and nothing is touched. What a restore has left that was interrupted is removed first.
func Restore(ctx context.Context, conns *streams.Conns, m Manifest, cfg RestoreConfig) error {
	if m.Shards != len(conns.Shards) {
		return fmt.Errorf(
			"the backup is of an installation with %d shards, and the broker has accounts for %d: "+
				"where a hub's log is follows from their number, so it must be the same",
			m.Shards,
			len(conns.Shards),
		)
	}
	mark, err := claim(ctx, conns, cfg.Replicas)
	if err != nil {
		return err
	}
	r := &restorer{cfg: cfg, conns: conns, meter: newMeter(cfg.Tell, m.Bytes())}
	if _, err := streams.OpenBuckets(ctx, conns, cfg.Replicas); err != nil {
		return err
	}
	if err := r.files(ctx, m.Files); err != nil {
		return err
	}
	r.meter.step("tags of hub logs")
	if err := r.retag(ctx, keptLogs(m)); err != nil {
		return err
	}
	if cfg.Adopt != nil {
		if err := cfg.Adopt(ctx); err != nil {
			return err
		}
	}
	r.meter.end()
	return mark.lift(ctx)
}

// restorer is a restore under way.
type restorer struct {
	cfg   RestoreConfig
	conns *streams.Conns
	meter *meter
}

// files brings back what the files hold, several accounts at once. In one account they come one
// after the other: nats-server 2.15 ends with a fatal error when it restores two of its streams at
// the same moment (it reads the account's streams without the lock that adding one takes).
func (r *restorer) files(ctx context.Context, files []File) error {
	accounts := map[streams.Account][]File{}
	for _, f := range files {
		account := streams.AccountCloud
		if f.Stream != nil {
			account = f.Stream.Account
		}
		accounts[account] = append(accounts[account], f)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(accountsAtOnce)
	for _, files := range accounts {
		group.Go(func() error {
			for _, f := range files {
				if err := r.file(ctx, f); err != nil {
					return fmt.Errorf("restore %s: %w", f.Name, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *restorer) file(ctx context.Context, f File) error {
	if f.Bucket == "" && f.Stream == nil {
		r.meter.add(f.Bytes) // it is none of the broker's
		return nil
	}
	r.meter.step(f.Name)
	opened, err := os.Open(filepath.Join(r.cfg.Dir, filepath.FromSlash(f.Name)))
	if err != nil {
		return err
	}
	defer opened.Close()
	if f.Bucket != "" {
		return restoreBucket(ctx, r.conns.Cloud, f.Bucket, opened, r.meter.add)
	}
	nc, err := account(r.conns, f.Stream.Account)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		err := restoreStream(ctx, nc, *f.Stream, r.cfg.Replicas, opened, r.meter.add)
		if !errors.Is(err, jsapi.ErrStreamExists) || time.Since(began) > leftover {
			return err
		}
		// The broker has not yet given up a restore of this stream that was interrupted; what is
		// left of it then goes.
		if err := jsapi.New(nc).Delete(ctx, f.Stream.Name); err != nil {
			return err
		}
		if _, err := opened.Seek(0, io.SeekStart); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leftoverPause):
		}
	}
}

// keptLogs says up to which sequence each hub's log is in a backup.
func keptLogs(m Manifest) map[domain.HubID]uint64 {
	kept := map[domain.HubID]uint64{}
	for _, f := range m.Files {
		if f.Stream != nil && isHubLog(f.Stream.Name) {
			kept[domain.HubID(strings.TrimPrefix(f.Stream.Name, streams.HubStream("")))] = f.Stream.Last
		}
	}
	return kept
}

// retag gives the log of every hub that an organization has another tag.
func (r *restorer) retag(ctx context.Context, kept map[domain.HubID]uint64) error {
	log, err := directory.Open(ctx, r.conns, r.cfg.Replicas)
	if err != nil {
		return err
	}
	head, err := log.Head(ctx, 0)
	if err != nil || head == 0 {
		return err
	}
	owned := map[domain.HubID]bool{}
	err = log.Replay(ctx, 0, head, func(batch []directory.Recorded) error {
		for _, event := range batch {
			switch fact := event.Fact.(type) {
			case domain.HubAdded:
				owned[fact.HubID] = true
			case domain.HubReleased:
				delete(owned, fact.HubID)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	service := directory.NewService(log, directory.ServiceConfig{})
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hubsAtOnce)
	for hub := range owned {
		group.Go(func() error { return service.RestoreLog(ctx, r.cfg.Origin, hub, kept[hub]) })
	}
	return group.Wait()
}
