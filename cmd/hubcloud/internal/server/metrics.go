package server

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// newBuildInfo returns a gauge with what identifies the program and the replica's roles.
func newBuildInfo(cfg Config) prometheus.Collector {
	program := installation.Program()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hubcloud_build_info",
		Help: "Always 1. The labels have what `hubcloud version` prints, and the replica's roles.",
		ConstLabels: prometheus.Labels{
			"version": program.Version, "revision": program.Commit, "build_date": program.Date,
			"go_version": program.Go, "schema": program.Schema,
			"roles": strings.Join(cfg.Roles, ","),
		},
	})
	info.Set(1)
	return info
}

// readiness exports the health of the components at each scrape.
type readiness struct {
	health          *health
	ready, degraded *prometheus.Desc
}

func newReadiness(h *health) *readiness {
	return &readiness{h, prometheus.NewDesc(
		"hubcloud_ready",
		"Whether a component is healthy, 1 or 0. /readyz has details and advice.",
		[]string{"component"}, nil,
	), prometheus.NewDesc(
		"hubcloud_degraded",
		"Whether a component is unhealthy and the replica serves what does not need it, 1 or 0.",
		[]string{"component"}, nil,
	)}
}

// Describe implements prometheus.Collector.
func (r *readiness) Describe(ch chan<- *prometheus.Desc) {
	ch <- r.ready
	ch <- r.degraded
}

// Collect implements prometheus.Collector.
func (r *readiness) Collect(ch chan<- prometheus.Metric) {
	for _, c := range r.health.check(context.Background()) {
		for _, gauge := range []struct {
			desc *prometheus.Desc
			on   bool
		}{{r.ready, c.OK}, {r.degraded, c.Degraded}} {
			value := 0.0
			if gauge.on {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(gauge.desc, prometheus.GaugeValue, value, c.Name)
		}
	}
}
