package shares

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxReported is how many organizations a Use names.
	maxReported = 10
	// maxHeldBack is how many organizations or spenders an account remembers that were held back.
	maxHeldBack = 1000
)

// Registry has the Pools and Rates of a process, and the organizations that use it now. It is a
// prometheus.Collector.
type Registry struct {
	mu       sync.Mutex
	accounts []*account
	active   active
}

// Use is what is used of a resource, and who was held back since the process began.
type Use struct {
	Resource string `json:"resource"`
	// Limit is the most that can be held of a Pool, and Used what is held; 0 for a Rate.
	Limit    int64  `json:"limit,omitempty"`
	Used     int64  `json:"used,omitempty"`
	HeldBack uint64 `json:"held_back"`
	// By are the spenders that hold most or were held back most.
	By []SpenderUse `json:"by"`
}

// SpenderUse is what an organization holds of a Pool, and how often it, or the spender of a Rate,
// was held back.
type SpenderUse struct {
	Spender  string `json:"spender"`
	Used     int64  `json:"used,omitempty"`
	HeldBack uint64 `json:"held_back,omitempty"`
}

// account is what a Registry knows of a resource.
type account struct {
	resource string
	limit    int64
	// holders returns what is held in all and by organization; nil for a Rate.
	holders func() (used int64, byOrg map[string]int64)

	mu    sync.Mutex
	total uint64
	held  map[string]uint64
}

// open adds an account.
func (l *Registry) open(
	resource string, limit int64, holders func() (int64, map[string]int64),
) *account {
	a := &account{resource: resource, limit: limit, holders: holders, held: map[string]uint64{}}
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.accounts = append(l.accounts, a)
	}
	return a
}

// heldBack counts that a spender was held back.
func (a *account) heldBack(s Spender) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total++
	name := cmp.Or(s.Org, s.ID)
	if _, known := a.held[name]; !known && len(a.held) >= maxHeldBack {
		a.dropLeast()
	}
	a.held[name]++
}

// dropLeast forgets the half of the spenders that were held back least.
func (a *account) dropLeast() {
	counts := make([]uint64, 0, len(a.held))
	for _, n := range a.held {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	median := counts[len(counts)/2]
	for name, n := range a.held {
		if n <= median {
			delete(a.held, name)
		}
	}
}

func (a *account) use() Use {
	u := Use{Resource: a.resource, Limit: a.limit, By: []SpenderUse{}}
	by := map[string]SpenderUse{}
	if a.holders != nil {
		used, byOrg := a.holders()
		u.Used = used
		for org, n := range byOrg {
			by[org] = SpenderUse{Spender: org, Used: n}
		}
	}
	a.mu.Lock()
	u.HeldBack = a.total
	for name, n := range a.held {
		by[name] = SpenderUse{Spender: name, Used: by[name].Used, HeldBack: n}
	}
	a.mu.Unlock()
	for _, s := range by {
		u.By = append(u.By, s)
	}
	slices.SortFunc(u.By, func(a, b SpenderUse) int {
		return cmp.Or(
			cmp.Compare(b.HeldBack, a.HeldBack), cmp.Compare(b.Used, a.Used),
			cmp.Compare(a.Spender, b.Spender),
		)
	})
	u.By = u.By[:min(len(u.By), maxReported)]
	return u
}

// Report returns the use of every resource, by name.
func (l *Registry) Report() []Use {
	l.mu.Lock()
	accounts := slices.Clone(l.accounts)
	l.mu.Unlock()
	uses := make([]Use, len(accounts))
	for i, a := range accounts {
		uses[i] = a.use()
	}
	slices.SortFunc(uses, func(a, b Use) int { return cmp.Compare(a.Resource, b.Resource) })
	return uses
}

var (
	usedDesc = prometheus.NewDesc(
		"hubcloud_shares_used", "What is held of a shared resource.", []string{"resource"}, nil,
	)
	limitDesc = prometheus.NewDesc(
		"hubcloud_shares_limit", "How much of a shared resource can be held.",
		[]string{"resource"}, nil,
	)
	heldBackDesc = prometheus.NewDesc(
		"hubcloud_shares_held_back_total",
		"Requests, connections and messages that were rejected because their organization, key, "+
			"hub or address had used up its share, and organizations that waited for their turn since "+
			"they have had much. `hubcloud doctor` names it.",
		[]string{"resource"}, nil,
	)
)

// Describe implements prometheus.Collector.
func (l *Registry) Describe(descs chan<- *prometheus.Desc) {
	descs <- usedDesc
	descs <- limitDesc
	descs <- heldBackDesc
}

// Collect implements prometheus.Collector.
func (l *Registry) Collect(metrics chan<- prometheus.Metric) {
	for _, u := range l.Report() {
		metrics <- prometheus.MustNewConstMetric(
			heldBackDesc, prometheus.CounterValue, float64(u.HeldBack), u.Resource,
		)
		if u.Limit == 0 {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(
			usedDesc, prometheus.GaugeValue, float64(u.Used), u.Resource,
		)
		metrics <- prometheus.MustNewConstMetric(
			limitDesc, prometheus.GaugeValue, float64(u.Limit), u.Resource,
		)
	}
}
