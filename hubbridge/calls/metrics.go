package calls

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Outcomes of calls beside the codes of errors.
const (
	outcomeOK       = "ok"
	outcomeCanceled = "canceled"
)

// newLatency makes the histogram of calls by method and outcome, and registers it unless r is nil.
// What an operator is woken for is there from the start, so that the first of it shows in a rate;
// each of the rest would be another dozen and a half of series that mostly stay empty.
func newLatency(r prometheus.Registerer) *prometheus.HistogramVec {
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hubcloud_hubbridge_call_duration_seconds",
		Help: "Seconds that requests to hubs took, by method and outcome (ok, canceled, or the " +
			"type of the error). A rise of hub_timeout or " +
			"hub_error is hubs that hang; of hub_offline, consumers that ask for hubs that are not there.",
		// From a hub beside the broker to the longest time-out there is.
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "outcome"})
	for _, method := range protocol.Methods() {
		for _, outcome := range []string{
			outcomeOK, string(domain.CodeHubOffline), string(domain.CodeHubTimeout),
			string(domain.CodeHubError),
		} {
			latency.WithLabelValues(method, outcome)
		}
	}
	if r != nil {
		r.MustRegister(latency)
	}
	return latency
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return outcomeCanceled
	}
	return string(domain.CodeOf(err))
}
