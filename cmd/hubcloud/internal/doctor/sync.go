package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// syncTries is how often the disk is tried; the middle one counts.
const syncTries = 5

// checkSync says what a power cut would cost, and how long the disk takes to make sure that it
// costs nothing.
func checkSync(ctx context.Context, p *patient, f *findings) {
	settings := syncSettings(p)
	switch {
	case len(settings) == 0 && p.DataDir == "":
		f.add(Skipped, "neither the broker's setting nor a disk of it can be seen from here", "")
		return
	case len(settings) == 0:
		f.note("the broker's setting is not known while it cannot be reached")
	}
	for _, s := range settings {
		judgeSync(p, s, f)
	}
	if p.DataDir == "" {
		return
	}
	took, err := trySync(ctx, p.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.note("there is no data directory %s", p.DataDir)
	case errors.Is(err, fs.ErrPermission):
		f.note("the disk was not tried: %v", err)
	case err != nil:
		f.add(
			Wrong, fmt.Sprintf("the data directory cannot be written to: %v", err),
			"see whether its disk is full or was mounted read-only (dmesg)",
		)
	case took > p.Limits.SyncTime:
		f.add(
			Warning,
			fmt.Sprintf("the disk takes %s to sync a small file", ago(took)),
			"every event and every management call waits for that: use a disk with a cache that "+
				"outlives a power cut, or --sync 2m if losing that much is fine",
		)
	default:
		f.note("the disk syncs a small file in %s", took.Round(10*time.Microsecond))
	}
}

// syncSetting is how one server, or the service that was stopped, syncs.
type syncSetting struct {
	who      string
	always   bool
	interval time.Duration
	// alone says that nobody else has a copy.
	alone bool
}

// syncSettings asks the servers; those that cannot be reached are as the service was started.
func syncSettings(p *patient) []syncSetting {
	alone := p.Started == nil || p.Started.LogReplicas < 2
	var all []syncSetting
	if servers, err := p.servers(); err == nil {
		for _, s := range servers {
			if s.JetStream != nil {
				all = append(
					all,
					syncSetting{s.Name, s.JetStream.SyncAlways, s.JetStream.SyncInterval, alone},
				)
			}
		}
		return all
	}
	if p.Started == nil || p.Started.OwnBroker {
		return nil
	}
	setting := syncSetting{
		who:    "the service, when it ran,",
		always: p.Started.Sync == "always",
		alone:  alone,
	}
	if !setting.always {
		interval, err := time.ParseDuration(p.Started.Sync)
		if err != nil {
			return nil
		}
		setting.interval = interval
	}
	return append(all, setting)
}

func judgeSync(p *patient, s syncSetting, f *findings) {
	every := s.interval.String()
	switch {
	case s.always:
		f.note(
			"%s syncs every write before it acknowledges it: nothing that was acknowledged is lost in a power cut",
			s.who,
		)
	case !s.alone:
		f.note(
			"%s syncs every %s: a power cut at all machines with a copy at once can lose what came since",
			s.who, every,
		)
	case p.live():
		f.add(
			Warning,
			fmt.Sprintf(
				"%s syncs every %s: a power cut can lose what was acknowledged since", s.who, every,
			),
			"start with --sync always (sync_interval: always in a broker of one's own), unless speed is worth that",
		)
	default:
		f.note("%s syncs every %s: a power cut can lose what was acknowledged since", s.who, every)
	}
}

// trySync writes a small file, over and over, and gives how long it mostly takes until it is on the
// disk.
func trySync(ctx context.Context, dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "doctor-*.tmp")
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
