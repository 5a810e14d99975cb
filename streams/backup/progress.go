package backup

import "sync"

// Progress says how far a backup, a check or a restore has come.
type Progress struct {
	// Step is what is being done.
	Step string
	// Done and Total count bytes; Total can be a little off while a service writes.
	Done, Total int64
}

// meter counts what passes. Safe for concurrent use.
type meter struct {
	tell func(Progress)

	mu sync.Mutex
	at Progress
}

func newMeter(tell func(Progress), total int64) *meter {
	return &meter{tell: tell, at: Progress{Total: total}}
}

func (m *meter) step(name string) {
	m.change(func(p *Progress) { p.Step = name })
}

func (m *meter) add(bytes int64) {
	m.change(func(p *Progress) { p.Done = min(p.Done+bytes, p.Total) })
}

// end says that it is done.
func (m *meter) end() {
	m.change(func(p *Progress) { p.Done = p.Total })
}

func (m *meter) change(with func(*Progress)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	with(&m.at)
	if m.tell != nil {
		m.tell(m.at)
	}
}
