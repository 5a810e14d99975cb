package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// readinessAge is how old the readiness that the public port answers may be. Anyone may ask there,
// as often as they like.
const readinessAge = time.Second

// readinessBody is what /readyz answers: status is ready, degraded or not_ready.
type readinessBody struct {
	Status string `json:"status"`
}

// readinessDetails is what operators are answered at /readyz on their own port.
type readinessDetails struct {
	Ready bool `json:"ready"`
	// Degraded reports that the process is ready, and that not everything is as it should be.
	Degraded   bool        `json:"degraded"`
	Components []Component `json:"components"`
}

// readiness is the state of the process as the public port answers it, asked for at most once each
// readinessAge.
type readiness struct {
	asking singleflight.Group
	known  atomic.Pointer[knownReadiness]
}

type knownReadiness struct {
	readinessDetails
	at time.Time
}

// health answers while the process lives.
func (a *api) health(x *exchange) error {
	return x.writeJSON(http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}

// publicReadiness answers 503 as long as a component keeps the process from serving, and from the
// moment that the service begins to stop. What is wrong on every replica alike and lets it serve,
// such as read models that stand still, is no reason to take all of them out: the status is
// degraded then. Which component it is, is for operators.
func (a *api) publicReadiness(x *exchange) error {
	details := a.recentReadiness(x.ctx)
	switch {
	case !details.Ready || isClosed(a.Draining):
		return x.writeJSON(http.StatusServiceUnavailable, readinessBody{"not_ready"})
	case details.Degraded:
		return x.writeJSON(http.StatusOK, readinessBody{"degraded"})
	default:
		return x.writeJSON(http.StatusOK, readinessBody{"ready"})
	}
}

// recentReadiness returns a state that is at most readinessAge old. Requests that come while the
// components are being asked wait for that answer.
func (a *api) recentReadiness(ctx context.Context) readinessDetails {
	if known := a.ready.known.Load(); known != nil && time.Since(known.at) < readinessAge {
		return known.readinessDetails
	}
	known, _, _ := a.ready.asking.Do("", func() (any, error) {
		known := &knownReadiness{
			readinessDetails: a.askReadiness(context.WithoutCancel(ctx)),
			at:               time.Now(),
		}
		a.ready.known.Store(known)
		return known, nil
	})
	return known.(*knownReadiness).readinessDetails
}

// detailedReadiness answers with every component, as it is now.
func (a *api) detailedReadiness(x *exchange) error {
	details := a.askReadiness(x.ctx)
	if isClosed(a.Draining) {
		details.Ready, details.Degraded = false, false
		details.Components = append(details.Components, Component{Name: "http", Detail: "stopping"})
	}
	status := http.StatusOK
	if !details.Ready {
		status = http.StatusServiceUnavailable
	}
	return x.writeJSON(status, details)
}

// askReadiness asks the components.
func (a *api) askReadiness(ctx context.Context) readinessDetails {
	details := readinessDetails{Ready: true, Components: []Component{}}
	if a.Ready != nil {
		details.Components = append(details.Components, a.Ready(ctx)...)
	}
	for _, c := range details.Components {
		details.Ready = details.Ready && (c.OK || c.Degraded)
		details.Degraded = details.Degraded || c.Degraded
	}
	details.Degraded = details.Degraded && details.Ready
	return details
}

// Readiness returns the handler of /readyz for operators: it answers with every component, what is
// wrong with it and what to do.
func (a API) Readiness() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := a.api.begin(w, r)
		defer x.end()
		a.api.details.ServeHTTP(x, r)
	})
}
