package httpapi

import "net/http"

// readinessBody is what /readyz answers.
type readinessBody struct {
	Ready bool `json:"ready"`
	// Degraded says that it is ready, and that not everything is as it should be.
	Degraded   bool        `json:"degraded"`
	Components []Component `json:"components"`
}

// health answers while the process lives.
func (a *api) health(x *exchange) error {
	return x.writeJSON(http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}

// readiness answers 503 as long as a component keeps the process from serving, and from the moment that the service begins to stop. What is
// wrong on every replica alike and lets it serve, such as read models that stand still, is no reason to take all of them out: it is told in the body.
func (a *api) readiness(x *exchange) error {
	body := readinessBody{Ready: true, Components: []Component{}}
	if a.Ready != nil {
		body.Components = append(body.Components, a.Ready(x.ctx)...)
	}
	if isClosed(a.Draining) {
		body.Components = append(body.Components, Component{Name: "http", Detail: "stopping"})
	}
	for _, c := range body.Components {
		body.Ready = body.Ready && (c.OK || c.Degraded)
		body.Degraded = body.Degraded || c.Degraded
	}
	body.Degraded = body.Degraded && body.Ready
	status := http.StatusOK
	if !body.Ready {
		status = http.StatusServiceUnavailable
	}
	return x.writeJSON(status, body)
}
