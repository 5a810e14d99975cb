package doctor

import (
	"context"
	"os"
	"time"

	"hubcloud/streams"
)

// checkClock compares this machine's clock with the clocks of the database and the file system, and
// with earlier time stamps. It asks no time server, so it cannot say which clock is right.
func checkClock(_ context.Context, t *target, f *findings) {
	facts, err := t.database()
	if err == nil {
		t.Limits.compareClocks(f, "the database", facts.now, facts.before, facts.after)
	}
	if t.DataDir == "" {
		if err != nil && !t.running() {
			f.skip("neither a service nor a database is known here")
		}
		return
	}
	stamp, before, after, fileErr := stampFile(t.DataDir)
	switch {
	case fileErr == nil:
		t.Limits.compareClocks(f, "the file system of the data directory", stamp, before, after)
	case err != nil:
		f.unclear("neither the database nor the data directory can be used to compare clocks").todo(
			"see the components service and postgres",
		)
	}
	for _, name := range []string{"endpoints.json", "service.json", "nats-credentials.json"} {
		if info, err := os.Stat(t.path(name)); err == nil {
			t.Limits.judgeStamp(f, name, info.ModTime())
		}
	}
}

// checkServerClocks compares the clock of the service with the clocks of the broker's servers, and
// with the newest change.
func checkServerClocks(_ context.Context, v *visit, f *findings) {
	servers, err := v.servers()
	if err != nil {
		f.unknown("the clocks of the broker are unknown: ", err)
		return
	}
	for _, s := range servers {
		v.limits.compareClocks(f, "the broker's "+s.Server.Name, s.Server.Time, s.Before, s.After)
	}
	if all, err := v.cloud(); err == nil {
		if s, ok := find(all, streams.DirectoryStream); ok {
			v.limits.judgeStamp(f, "the newest entry of the directory", s.State.LastTime)
		}
	}
}

// compareClocks compares this machine's clock with another one, which was read between before and
// after.
func (l Limits) compareClocks(f *findings, who string, theirs, before, after time.Time) {
	apart, unsure := offset(theirs, before, after)
	if max(apart, -apart)-unsure <= l.ClockSkew {
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

// judgeStamp reports a time stamp in the future.
func (l Limits) judgeStamp(f *findings, what string, at time.Time) {
	if left := time.Until(at); left > l.ClockSkew {
		f.wrong("%s has a time stamp %s in the future", what, ago(left)).todo(
			"a clock was ahead then or was set back since: correct it; until that time, hubs and " +
				"clients see times that go backwards",
		)
	}
}
