package doctor

import (
	"context"
	"os"
	"time"

	"hubcloud/streams"
)

// checkClock compares this machine's clock with the clocks of the broker's servers, the database
// and the file system, and with earlier time stamps. It asks no time server, so it cannot say which
// clock is right.
func checkClock(_ context.Context, t *target, f *findings) {
	compared := 0
	compare := func(who string, theirs, before, after time.Time) {
		compared++
		apart, unsure := offset(theirs, before, after)
		if max(apart, -apart)-unsure <= t.Limits.ClockSkew {
			f.note("%s agrees to %s", who, ago(max(max(apart, -apart), unsure, time.Millisecond)))
			return
		}
		direction := "ahead of"
		if apart < 0 {
			direction = "behind"
		}
		f.wrong("%s is %s %s this machine's clock", who, ago(max(apart, -apart)), direction).todo(
			"synchronize the clocks of all machines with NTP (chrony, systemd-timesyncd): " +
				"cursors, certificates and invitations depend on them",
		)
	}
	if servers, err := t.servers(); err == nil {
		for _, s := range servers {
			compare("the broker's "+s.Name, s.Time, s.Before, s.After)
		}
	}
	if facts, err := t.database(); err == nil {
		compare("the database", facts.now, facts.before, facts.after)
	}
	if t.DataDir != "" {
		if stamp, before, after, err := stampFile(t.DataDir); err == nil {
			compare("the file system of the data directory", stamp, before, after)
		}
	}
	if compared == 0 && t.DataDir == "" && t.CredentialsErr != nil {
		f.skip("neither broker nor database is known here")
		return
	}
	if compared == 0 {
		f.unclear(
			"neither broker nor database can be reached, to compare this machine's clock with " +
				"theirs",
		).todo("see the components broker and postgres")
		return
	}
	judgePast(t, f)
}

// offset returns by how much their clock is ahead of ours, and the uncertainty: they read their
// clock at some time between before and after.
func offset(theirs, before, after time.Time) (apart, unsure time.Duration) {
	unsure = after.Sub(before) / 2
	return theirs.Sub(before.Add(unsure)), unsure
}

// probeFile is the pattern of the names of files that test a disk.
const probeFile = "doctor-*.tmp"

// stampFile returns the time stamp that the file system gives a new file, and the times before and
// after.
func stampFile(dir string) (stamp, before, after time.Time, err error) {
	before = time.Now()
	file, err := os.CreateTemp(dir, probeFile)
	if err != nil {
		return stamp, before, after, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write([]byte{0}); err != nil {
		return stamp, before, after, err
	}
	info, err := file.Stat()
	if err != nil {
		return stamp, before, after, err
	}
	return info.ModTime(), before, time.Now(), nil
}

// judgePast looks for time stamps that are in the future.
func judgePast(t *target, f *findings) {
	now := time.Now()
	if all, err := t.cloud(); err == nil {
		s, ok := find(all, streams.DirectoryStream)
		if ok && s.Newest.Sub(now) > t.Limits.ClockSkew {
			ahead(f, "the newest entry of the directory", s.Newest, now)
		}
	}
	if t.DataDir == "" {
		return
	}
	for _, name := range []string{"endpoints.json", "service.json", "nats-credentials.json"} {
		if info, err := os.Stat(t.path(name)); err == nil &&
			info.ModTime().Sub(now) > t.Limits.ClockSkew {
			ahead(f, name, info.ModTime(), now)
		}
	}
}

// ahead reports a time stamp in the future.
func ahead(f *findings, what string, at, now time.Time) {
	f.wrong("%s has a time stamp %s in the future", what, ago(at.Sub(now))).todo(
		"a clock was ahead then or was set back since: correct it; until that time, hubs and " +
			"clients see times that go backwards",
	)
}
