package calls

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

// newLatency makes the histogram of calls by method and outcome, and registers it unless r is nil.
func newLatency(r prometheus.Registerer) *prometheus.HistogramVec {
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hubcloud_hubbridge_call_seconds",
		Help: "How long requests to hubs took, by method and outcome (ok, canceled, or the type of the error).",
		// From a hub beside the broker to the longest time-out there is.
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "outcome"})
	if r != nil {
		r.MustRegister(latency)
	}
	return latency
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	}
	return string(domain.CodeOf(err))
}
