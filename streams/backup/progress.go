package backup

import "sync"

// Progress is how far Write, Check or Restore has come.
type Progress struct {
	// Step names the stream, bucket or file at work.
	Step string
	// Done and Total count bytes. Total is an estimate while the service writes.
	Done, Total int64
}

// meter counts bytes and reports each change. Safe for concurrent use.
type meter struct {
	report func(Progress)

	mu       sync.Mutex
	progress Progress
}

// newMeter returns a meter that calls report, unless report is nil.
func newMeter(report func(Progress), total int64) *meter {
	return &meter{report: report, progress: Progress{Total: total}}
}

func (m *meter) step(name string) {
	m.update(func(p *Progress) { p.Step = name })
}

func (m *meter) add(bytes int64) {
	m.update(func(p *Progress) { p.Done = min(p.Done+bytes, p.Total) })
}

// finish reports that everything is done.
func (m *meter) finish() {
	m.update(func(p *Progress) { p.Done = p.Total })
}

func (m *meter) update(change func(*Progress)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.progress)
	if m.report != nil {
		m.report(m.progress)
	}
}
