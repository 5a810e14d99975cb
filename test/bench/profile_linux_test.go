package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile saves a CPU profile of a process over the given time, in the background, if profiles are
// enabled and now is set. The returned function waits until the profile is written.
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

// heap saves a heap profile of a process if profiles are enabled.
func (b *bench) heap(p process, name string) {
	if *profileFlag != "" && b.full {
		b.save(p, "/debug/pprof/heap?gc=1", name+".heap")
		b.save(p, "/debug/pprof/goroutine", name+".goroutine")
	}
}

// save writes an answer of a process's admin address into the folder of profiles.
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
