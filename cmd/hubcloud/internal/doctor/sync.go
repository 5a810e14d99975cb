package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"hubcloud/streams/broker"
)

// syncTries is how many syncs are measured. Their median counts.
const syncTries = 5

// checkDiskSync checks how long the disk takes for a sync.
func checkDiskSync(ctx context.Context, t *target, f *findings) {
	if t.DataDir == "" {
		return
	}
	took, err := trySync(ctx, t.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.note("there is no data directory %s", t.DataDir)
	case errors.Is(err, fs.ErrPermission):
		f.unclear("the disk cannot be tested: %v", err).todo(
			"run the doctor as the user of the service",
		)
	case err != nil:
		f.wrong("the data directory cannot be written to: %v", err).todo(
			"check whether its disk is full or mounted read-only (dmesg)",
		)
	case took > t.Limits.SyncTime:
		f.warn("the disk takes %s to sync a small file", ago(took)).todo(
			"every event and every change waits for a sync: use a disk with a cache that " +
				"survives a power cut, or --sync 2m if you can lose the events of that time",
		)
	default:
		f.note("the disk syncs a small file in %s", took.Round(10*time.Microsecond))
	}
}

// checkSync checks what a power cut could lose, by the settings of the broker's servers.
func checkSync(_ context.Context, v *visit, f *findings) {
	servers, err := v.servers()
	if err != nil {
		f.unknown("the broker's setting is unknown: ", err)
		return
	}
	for _, s := range servers {
		if s.Stats.JetStream == nil {
			continue
		}
		name, config := s.Server.Name, s.Stats.JetStream.Config
		every := config.SyncInterval.String()
		// The embedded broker's server for hubs has only views of the journal, which is on the
		// durable server.
		views := slices.ContainsFunc(servers, func(other serverInfo) bool {
			return other.Server.Name == name+broker.DurableSuffix
		})
		switch {
		case config.SyncAlways:
			f.note(
				"%s syncs every write before it acknowledges it: a power cut loses no "+
					"acknowledged write", name,
			)
		case views:
			f.note(
				"%s syncs the hub logs every %s: after a power cut they are completed from the "+
					"journal", name, every,
			)
		case v.LogReplicas > 1:
			f.note(
				"%s syncs every %s: a power cut of all machines with a copy can lose the writes "+
					"since", name, every,
			)
		default:
			f.grade(
				verdictIf(v.Live, Warning),
				"start with --sync always (sync_interval: always in an external broker), unless "+
					"speed matters more",
				"%s syncs every %s: a power cut can lose acknowledged writes", name, every,
			)
		}
	}
}

// trySync returns the median time to write and sync a small file.
func trySync(ctx context.Context, dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, probeFile)
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []time.Duration
	block := make([]byte, 4096)
	for range syncTries {
		began := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
		if ctx.Err() != nil || took[0] > time.Second {
			break
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
