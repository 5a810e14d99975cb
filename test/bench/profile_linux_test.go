package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile saves a CPU profile of a process over the given time, in the background, when profiles
// are asked for and this is the round for it. The function it gives waits until the profile is
// written.
func (b *bench) profile(p process, name string, during time.Duration, now bool) (done func()) {
	if *profileFlag == "" || !b.full || !now {
		return func() {}
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		b.save(
			p, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(during.Seconds()))),
			name+".cpu",
		)
	}()
	return func() { <-written }
}

// heap saves a profile of the memory that a process holds, when profiles are asked for.
func (b *bench) heap(p process, name string) {
	if *profileFlag != "" && b.full {
		b.save(p, "/debug/pprof/heap?gc=1", name+".heap")
		b.save(p, "/debug/pprof/goroutine", name+".goroutine")
	}
}

// save writes what a process's admin address answers into the folder for profiles.
func (b *bench) save(p process, path, name string) {
	name = strings.NewReplacer(" ", "-", ",", "").Replace(name) + ".pprof"
	content, err := p.fetch(path)
	if err == nil {
		err = os.MkdirAll(*profileFlag, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(*profileFlag, name), content, 0o644)
	}
	if err != nil {
		b.Error(err)
	}
}
