package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// newBuildInfo tells which program this is, and what it does.
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
		Help: "Always 1; its labels say which program runs, and in which roles.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": revision, "go_version": runtime.Version(),
			"roles": strings.Join(cfg.Roles, ","),
		},
	})
	info.Set(1)
	return info
}

// readiness tells at each scrape how the parts of the service are doing.
type readiness struct {
	health *health
	desc   *prometheus.Desc
}

func newReadiness(h *health) *readiness {
	return &readiness{h, prometheus.NewDesc(
		"hubcloud_ready",
		"1 while a part of the service is well, by part; /readyz says what is wrong and what to do.",
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
