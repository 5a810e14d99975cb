package journal

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are named hubcloud_journal_….
type metrics struct {
	commits       prometheus.Counter
	records       prometheus.Counter
	commitBytes   prometheus.Histogram
	commitTime    prometheus.Histogram
	retries       prometheus.Counter
	fenced        prometheus.Counter
	notStored     prometheus.Counter
	unknown       prometheus.Counter
	delivered     prometheus.Counter
	feedGaps      prometheus.Counter
	missing       prometheus.Counter
	lost          prometheus.Counter
	reads         prometheus.Counter
	cacheHits     prometheus.Counter
	snapshots     prometheus.Counter
	position, end *prometheus.GaugeVec
	hubs          *prometheus.GaugeVec
}

// newMetrics creates the metrics and registers them with r, unless r is nil. It panics if r has
// them already.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(r, "journal")
	const by = "group"
	failures := metric.Counters("commit_failures_total", "Failed commits, by cause. `fenced`: another process has "+
		"taken over the journal. `not_stored`: the broker's disk is full or the journal has no leader; hubs get "+
		"no acks meanwhile. `unknown`: the broker did not answer for long.", "cause")
	return &metrics{
		commits: metric.Counter("commits_total", "Commits that this process stored in journals."),
		records: metric.Counter("records_total", "Records in these commits: events and records of commands, of "+
			"all hubs."),
		commitBytes: metric.Histogram("commit_bytes", "Bytes of the commits that this process stored.",
			prometheus.ExponentialBuckets(256, 4, 7)),
		commitTime: metric.Histogram("commit_duration_seconds", "Seconds to store one commit. A rise means a slow "+
			"disk: the broker syncs before it confirms.", telemetry.LatencyBuckets(.0001, 10)),
		retries:   metric.Counter("commit_retries_total", "Times that a commit was sent again, as no answer came."),
		fenced:    failures.WithLabelValues("fenced"),
		notStored: failures.WithLabelValues("not_stored"),
		unknown:   failures.WithLabelValues("unknown"),
		delivered: metric.Counter("delivered_total", "Commits that this process has followed."),
		feedGaps: metric.Counter("feed_gaps_total", "Times that the feed of new commits lost some. They were read "+
			"from the journal instead."),
		missing: metric.Counter("missing_total", "Commits that expired before this process could follow them. "+
			"Above 0 means that the process was cut off, or without a snapshot, for longer than the retention."),
		lost: metric.Counter("lost_total", "Commits that this process could not follow since they are damaged on "+
			"the broker's disk. The hubs' own streams may have their records."),
		reads: metric.Counter("reads_total", "Commits read from journals for pages and repairs of logs."),
		cacheHits: metric.Counter("cache_hits_total", "Commits for pages and repairs of logs that were in the "+
			"cache."),
		snapshots: metric.Counter("snapshots_total", "Snapshots of the index of a journal that this process "+
			"stored."),
		position: metric.Gauges("position", "The sequence of the last commit that this process has followed.", by),
		end: metric.Gauges("end", "The sequence of the last commit that this process knows to be stored. The "+
			"distance to hubcloud_journal_position is how far the process is behind.", by),
		hubs: metric.Gauges("hubs", "Hubs whose last sequence this process knows from the journal.", by),
	}
}

// label returns the label of a group.
func label(group int) string { return strconv.Itoa(group) }
