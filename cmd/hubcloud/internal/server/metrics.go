package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// newBuildInfo returns a gauge with the program's version and the replica's roles.
func newBuildInfo(cfg Config) prometheus.Collector {
	version, revision := "unknown", "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hubcloud_build_info",
		Help: "Always 1. The labels have the program's version and the replica's roles.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": revision, "go_version": runtime.Version(),
			"roles": strings.Join(cfg.Roles, ","),
		},
	})
	info.Set(1)
	return info
}

// readiness exports the health of the components at each scrape.
type readiness struct {
	health *health
	desc   *prometheus.Desc
}

func newReadiness(h *health) *readiness {
	return &readiness{h, prometheus.NewDesc(
		"hubcloud_ready",
		"Whether a component is healthy, 1 or 0. /readyz has details and advice.",
		[]string{"component"}, nil,
	)}
}

// Describe implements prometheus.Collector.
func (r *readiness) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector.
func (r *readiness) Collect(ch chan<- prometheus.Metric) {
	for _, c := range r.health.check(context.Background()) {
		value := 0.0
		if c.OK {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, value, c.Name)
	}
}
