package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/httpapi/oidc"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed"
	"hubcloud/streams/shares"
)

// Path is the path of Handler on the admin port.
const Path = "/doctor"

// Service is the running service as the doctor sees it from inside. All fields are required, except
// that limits of connections may be 0 for unknown.
type Service struct {
	Conns *streams.Conns
	// Journals is the number of journals of the installation.
	Journals int
	// ExternalBroker is set if the hub logs are on another machine.
	ExternalBroker bool
	// LogReplicas is the number of copies that each stream should have.
	LogReplicas int
	// Live is set if the installation is for production.
	Live bool
	// OpenFiles is the process's limit of open files. Connections are the most connections of API
	// clients, HubConnections the most connections to the embedded broker.
	OpenFiles                   uint64
	Connections, HubConnections int
	// Components returns the components of /readyz.
	Components func(ctx context.Context) []httpapi.Component
	// Projections returns the status of the projections.
	Projections func(ctx context.Context) ([]schema.Status, error)
	Metrics     prometheus.Gatherer
	// Shares has the use of what organizations share.
	Shares    *shares.Registry
	Directory *directory.Log
	// Provider is the identity provider; nil for none.
	Provider *oidc.Provider
	// Presences returns the presence of every hub that has ever connected.
	Presences func() []domain.Presence
	// Disconnections returns the ends of a hub's connections since a time.
	Disconnections func(
		ctx context.Context, hub domain.HubID, since time.Time, limit int,
	) ([]feed.Disconnection, error)
}

// visit is one run of the checks in the service. Its functions fetch what several checks need; each
// fetches once, at the first call, and returns the same result to all callers.
type visit struct {
	Service
	survey
	limits Limits
	// components returns what /readyz reports.
	components func() []httpapi.Component
	// metrics returns the service's metrics by name.
	metrics func() map[string]*dto.MetricFamily
	// hubFacts returns what the directory has of its hubs.
	hubFacts func() (hubFacts, error)
}

// Handler returns the handler that answers a doctor with the findings of the service, as JSON: a
// member for each component. The parameter limits has the Limits. Doctors are answered one
// after the other, since the checks read the whole directory.
func Handler(s Service) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var limits Limits
		if err := json.Unmarshal([]byte(r.FormValue("limits")), &limits); err != nil {
			http.Error(w, "limits: must be the doctor's limits, as JSON", http.StatusBadRequest)
			return
		}
		if err := limits.Validate(); err != nil {
			http.Error(w, "limits: "+err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case turn <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		defer func() { <-turn }()
		w.Header().Set("Content-Type", "application/json")
		// A client that has gone gets no answer.
		_ = json.NewEncoder(w).Encode(s.check(r.Context(), limits))
	})
}

// visit returns a visit with these limits, whose reads end with ctx.
func (s Service) visit(ctx context.Context, limits Limits) *visit {
	return &visit{
		Service: s, limits: limits,
		survey: newSurvey(ctx, func() (*streams.Conns, error) { return s.Conns, nil }),
		components: sync.OnceValue(func() []httpapi.Component {
			return s.Components(ctx)
		}),
		metrics: sync.OnceValue(func() map[string]*dto.MetricFamily {
			all := map[string]*dto.MetricFamily{}
			families, _ := s.Metrics.Gather() // metrics that cannot be read are left out
			for _, family := range families {
				all[family.GetName()] = family
			}
			return all
		}),
		hubFacts: sync.OnceValues(func() (hubFacts, error) {
			return readHubFacts(ctx, s.Directory, recentFacts)
		}),
	}
}

// check runs the checks in the service, and returns the findings by component.
func (s Service) check(ctx context.Context, limits Limits) map[string]*findings {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	v := s.visit(ctx, limits)
	var inside []check
	for _, c := range checks {
		if c.there != nil {
			inside = append(inside, c)
		}
	}
	found := runAll(serviceTimeout+grace/2, len(inside), func(i int, f *findings) {
		inside[i].there(ctx, v, f)
	})
	all := make(map[string]*findings, len(inside))
	for i, c := range inside {
		all[c.name] = found[i]
	}
	return all
}

// sum returns the sum of the values of a gauge or counter with a label's value; all values without
// a label.
func (v *visit) sum(name string, label ...string) (sum float64) {
	for _, m := range v.metrics()[name].GetMetric() {
		carries := len(label) == 0
		for _, pair := range m.GetLabel() {
			carries = carries || pair.GetName() == label[0] && pair.GetValue() == label[1]
		}
		if carries {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}

// checkReadiness reports the components of /readyz that are not healthy.
func checkReadiness(_ context.Context, v *visit, f *findings) {
	for _, c := range v.components() {
		switch {
		case c.Degraded:
			f.warn("it serves, but %s: %s", c.Name, c.Detail).todo(c.Action)
		case !c.OK:
			f.wrong("it is not ready: %s: %s", c.Name, c.Detail).todo(c.Action)
		}
	}
	if f.Verdict == OK {
		f.note("it is ready")
	}
}

// checkReserve checks whether the broker can write to its disk, and has its reserve.
func checkReserve(_ context.Context, v *visit, f *findings) {
	for _, c := range v.components() {
		if c.Name == "disk" { // there is none with an external broker
			f.grade(verdictIf(!c.OK, Wrong), c.Action, "%s", c.Detail)
		}
	}
}
