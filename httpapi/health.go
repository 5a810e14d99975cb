package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// readinessAge is how long the public port caches the readiness: it has no rate limit.
const readinessAge = time.Second

// readinessBody is the answer of the public /readyz.
type readinessBody struct {
	// Status is ready, degraded or not_ready.
	Status string `json:"status"`
	// Degraded names the components without which a degraded process serves.
	Degraded []string `json:"degraded,omitempty"`
}

// readinessDetails is the answer of /readyz on the operators' port.
type readinessDetails struct {
	Ready bool `json:"ready"`
	// Degraded reports that the process is ready although a component is not OK.
	Degraded   bool        `json:"degraded"`
	Components []Component `json:"components"`
}

// Build identifies the program. Fields may be empty.
type Build struct {
	// Version is the release, and Commit the hash of its commit in hexadecimal digits.
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// Date is the time of the commit in RFC 3339, or "unknown".
	Date string `json:"build_date"`
	// Go is the version of the Go toolchain.
	Go string `json:"go"`
	// Schema is the hash of the read models' definition.
	Schema string `json:"schema"`
}

// readiness caches the state of the process for the public port.
type readiness struct {
	group  singleflight.Group
	cached atomic.Pointer[cachedReadiness]
}

type cachedReadiness struct {
	readinessDetails
	at time.Time
}

// health answers 200 and what identifies the program, as long as the process lives.
func (a *api) health(req *request) error {
	return req.writeJSON(http.StatusOK, struct {
		OK bool `json:"ok"`
		Build
	}{true, a.Build})
}

// publicReadiness answers 503 while a component keeps the process from serving what needs no
// database, and once the service begins to stop. A fault that all replicas share and that lets them
// serve, such as a database that is away, must not take all of them out of a load balancer: its
// status is degraded, with 200 and the names of the components. Only operators see the details.
func (a *api) publicReadiness(req *request) error {
	details := a.recentReadiness(req.ctx)
	switch {
	case !details.Ready || isClosed(a.Draining):
		return req.writeJSON(http.StatusServiceUnavailable, readinessBody{Status: "not_ready"})
	case details.Degraded:
		body := readinessBody{Status: "degraded"}
		for _, c := range details.Components {
			if c.Degraded {
				body.Degraded = append(body.Degraded, c.Name)
			}
		}
		return req.writeJSON(http.StatusOK, body)
	default:
		return req.writeJSON(http.StatusOK, readinessBody{Status: "ready"})
	}
}

// recentReadiness returns a state that is at most readinessAge old. Concurrent requests share one
// check of the components.
func (a *api) recentReadiness(ctx context.Context) readinessDetails {
	if cached := a.ready.cached.Load(); cached != nil && time.Since(cached.at) < readinessAge {
		return cached.readinessDetails
	}
	checked, _, _ := a.ready.group.Do("", func() (any, error) {
		checked := &cachedReadiness{
			readinessDetails: a.checkReadiness(context.WithoutCancel(ctx)),
			at:               time.Now(),
		}
		a.ready.cached.Store(checked)
		return checked, nil
	})
	return checked.(*cachedReadiness).readinessDetails
}

// detailedReadiness answers with the current state of every component.
func (a *api) detailedReadiness(req *request) error {
	details := a.checkReadiness(req.ctx)
	if isClosed(a.Draining) {
		details.Ready, details.Degraded = false, false
		details.Components = append(details.Components, Component{Name: "http", Detail: "stopping"})
	}
	status := http.StatusOK
	if !details.Ready {
		status = http.StatusServiceUnavailable
	}
	return req.writeJSON(status, details)
}

// checkReadiness returns the current state of the process and its components.
func (a *api) checkReadiness(ctx context.Context) readinessDetails {
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

// Readiness returns the handler of /readyz for operators: it answers with every component, its
// faults, and what to do about them.
func (a API) Readiness() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := a.api.begin(w, r)
		defer req.end()
		a.api.operatorReadiness.ServeHTTP(req, r)
	})
}
