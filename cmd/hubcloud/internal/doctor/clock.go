package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"hubcloud/streams"
)

// checkClock compares this machine's clock with those of the broker's servers, of the database and
// of the file system, and with what was written before. It asks nobody else: which of them is
// right, it cannot say.
func checkClock(_ context.Context, p *patient, f *findings) {
	compared := 0
	compare := func(who string, theirs, asked, heard time.Time) {
		compared++
		apart, unsure := offset(theirs, asked, heard)
		if max(apart, -apart)-unsure <= p.Limits.ClockSkew {
			f.note("%s agrees to %s", who, ago(max(max(apart, -apart), unsure, time.Millisecond)))
			return
		}
		direction := "ahead of"
		if apart < 0 {
			direction = "behind"
		}
		f.add(
			Wrong,
			fmt.Sprintf(
				"%s is %s %s this machine's clock", who, ago(max(apart, -apart)), direction,
			),
			"keep the clocks of all machines right with NTP (chrony, systemd-timesyncd): "+
				"cursors, certificates and invitations go by them",
		)
	}
	if servers, err := p.servers(); err == nil {
		for _, s := range servers {
			compare("the broker's "+s.Name, s.Time, s.Asked, s.Heard)
		}
	}
	if facts, err := p.database(); err == nil {
		compare("the database", facts.now, facts.asked, facts.heard)
	}
	if p.DataDir != "" {
		if stamp, asked, heard, err := stampFile(p.DataDir); err == nil {
			compare("the file system of the data directory", stamp, asked, heard)
		}
	}
	if compared == 0 {
		f.add(
			Unknown,
			"there is nothing to compare this machine's clock with: neither broker nor database can be reached",
			"see the components broker and postgres",
		)
		return
	}
	judgePast(p, f)
}

// offset is how far their clock is ahead of ours, and how unsure that is: they looked at it at some
// time between asked and heard.
func offset(theirs, asked, heard time.Time) (apart, unsure time.Duration) {
	unsure = heard.Sub(asked) / 2
	return theirs.Sub(asked.Add(unsure)), unsure
}

// stampFile has the file system write down the time.
func stampFile(dir string) (stamp, asked, heard time.Time, err error) {
	asked = time.Now()
	file, err := os.CreateTemp(dir, "doctor-*.tmp")
	if err != nil {
		return stamp, asked, heard, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write([]byte{0}); err != nil {
		return stamp, asked, heard, err
	}
	info, err := file.Stat()
	if err != nil {
		return stamp, asked, heard, err
	}
	return info.ModTime(), asked, time.Now(), nil
}

// judgePast looks for what was written at times that have not come yet.
func judgePast(p *patient, f *findings) {
	now := time.Now()
	if all, err := p.cloud(); err == nil {
		for _, s := range all {
			if s.Name == streams.DirectoryStream && s.Newest.Sub(now) > p.Limits.ClockSkew {
				ahead(f, "the newest entry of the directory", s.Newest, now)
			}
		}
	}
	if p.DataDir == "" {
		return
	}
	for _, name := range []string{"endpoints.json", "service.json", "nats-credentials.json"} {
		if info, err := os.Stat(p.path(name)); err == nil &&
			info.ModTime().Sub(now) > p.Limits.ClockSkew {
			ahead(f, name, info.ModTime(), now)
		}
	}
}

func ahead(f *findings, what string, at, now time.Time) {
	f.add(
		Wrong,
		fmt.Sprintf("%s is of a time that comes in %s", what, ago(at.Sub(now))),
		"a clock was ahead then, or has been set back since: set it right; until that time has "+
			"come hubs and consumers see times that go backwards",
	)
}
