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

// checkSync checks what a power cut could lose, and how long the disk takes for a sync.
func checkSync(ctx context.Context, t *target, f *findings) {
	settings := syncSettings(t)
	switch {
	case len(settings) == 0 && t.DataDir == "":
		f.skip("neither the broker's setting nor its disk is known here")
		return
	case len(settings) == 0:
		f.unclear("the broker's setting is unknown: it cannot be reached").todo(
			"see the component broker",
		)
	}
	for _, s := range settings {
		judgeSync(t, s, f)
	}
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

// syncSetting is the sync setting of a server, or of the service when it ran.
type syncSetting struct {
	who      string
	always   bool
	interval time.Duration
	// alone means that streams have only one copy.
	alone bool
	// views means that the server's streams are written again from the journal after a power cut.
	views bool
}

// syncSettings returns the settings of the servers or, when they cannot be reached, the setting
// with which the service was started.
func syncSettings(t *target) []syncSetting {
	alone := t.Started == nil || t.Started.LogReplicas < 2
	var all []syncSetting
	if servers, err := t.servers(); err == nil {
		for _, s := range servers {
			if s.JetStream != nil {
				all = append(all, syncSetting{
					who: s.Name, always: s.JetStream.Config.SyncAlways,
					interval: s.JetStream.Config.SyncInterval, alone: alone,
				})
			}
		}
		// The embedded broker's server for hubs has only views of the journal, which is on the
		// durable server.
		for i := range all {
			all[i].views = slices.ContainsFunc(all, func(other syncSetting) bool {
				return other.who == all[i].who+broker.DurableSuffix
			})
		}
		return all
	}
	if t.Started == nil || t.Started.ExternalBroker {
		return nil
	}
	setting := syncSetting{
		who:    "the service, when it ran,",
		always: t.Started.Sync == "always",
		alone:  alone,
	}
	if !setting.always {
		interval, err := time.ParseDuration(t.Started.Sync)
		if err != nil {
			return nil
		}
		setting.interval = interval
	}
	return append(all, setting)
}

// judgeSync reports what a power cut could lose.
func judgeSync(t *target, s syncSetting, f *findings) {
	every := s.interval.String()
	switch {
	case s.views && !s.always:
		f.note(
			"%s syncs the hub logs every %s: after a power cut they are completed from the "+
				"journal", s.who, every,
		)
	case s.always:
		f.note(
			"%s syncs every write before it acknowledges it: a power cut loses no acknowledged "+
				"write",
			s.who,
		)
	case !s.alone:
		f.note(
			"%s syncs every %s: a power cut of all machines with a copy can lose the writes since",
			s.who, every,
		)
	case t.live():
		f.warn("%s syncs every %s: a power cut can lose acknowledged writes", s.who, every).todo(
			"start with --sync always (sync_interval: always in an external broker), unless " +
				"speed matters more",
		)
	default:
		f.note("%s syncs every %s: a power cut can lose acknowledged writes", s.who, every)
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
