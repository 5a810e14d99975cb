package observe

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestStory runs the service through a story and then checks its telemetry.
func TestStory(t *testing.T) {
	t.Parallel()
	s := runStory(t)
	t.Run("metrics", s.metrics)
	t.Run("lint", s.lint)
	t.Run("documented", s.documented)
	t.Run("shares", s.shares)
	t.Run("profiles", s.profiles)
	t.Run("health", s.health)
	t.Run("request ids", s.requestIDs)
	s.service.Stop() // writes the last lines and spans
	t.Run("lines", s.lines)
	t.Run("traces", s.traces)
	t.Run("secrets", s.noSecrets)
}

// metrics checks that every metric family that the story affects has changed.
func (s *story) metrics(t *testing.T) {
	for _, family := range []struct {
		name   string
		labels []string
	}{
		// requests by route pattern and code
		{"httpapi_requests_total", []string{"route", "/v1/sites", "method", "POST", "code", "201"}},
		{
			"httpapi_requests_total",
			[]string{"route", "/v1/hubs/{hub_id}/devices/{device_id}/commands", "code", "202"},
		},
		{"httpapi_requests_total", []string{"code", "429"}},
		{"httpapi_requests_total", []string{"code", "401"}},
		{"httpapi_request_duration_seconds", []string{"route", "/v1/sites", "method", "POST"}},
		// stream readers
		{"httpapi_stream_events_total", nil},
		{"httpapi_streams_ended_total", []string{"reason", "client"}},
		// reads of hub logs
		{"feed_ring_overruns_total", nil},
		{"feed_pages_total", nil},
		{"feed_messages_read_total", nil},
		{"feed_cache_misses_total", nil},
		// ingest: events, acks, repeats, gaps
		{"hubbridge_events_stored_total", nil},
		{"hubbridge_batch_duration_seconds", nil},
		{"hubbridge_acks_total", nil},
		{"hubbridge_acks_withheld_total", nil},
		{"hubbridge_events_repeated_total", nil},
		{"hubbridge_gaps_total", []string{"cause", "lost"}},
		{"hubbridge_gaps_total", []string{"cause", "malformed"}},
		{"hubbridge_events_lost_total", nil},
		{"hubbridge_events_malformed_total", []string{"flaw", "type"}},
		{"hubbridge_hellos_total", []string{"outcome", "ok"}},
		// presence transitions
		{"hubbridge_presence_transitions_total", []string{"status", "online"}},
		{"hubbridge_presence_transitions_total", []string{"status", "offline"}},
		{"presence_hubs", nil},
		// hub call latency by method and outcome, commands
		{"hubbridge_call_duration_seconds", []string{"method", "devices.list", "outcome", "ok"}},
		{
			"hubbridge_call_duration_seconds",
			[]string{"method", "channels.command", "outcome", "ok"},
		},
		{"hubbridge_commands_total", []string{"outcome", "accepted"}},
		{"hubbridge_command_duration_seconds", nil},
		{"hubbridge_commands_repeated_total", nil},
		// the projector
		{"projections_sequence", []string{"projection", "directory"}},
		{"projections_events_total", []string{"projection", "directory"}},
		{"projections_events_total", []string{"projection", "presence"}},
		{"projections_commit_duration_seconds", []string{"projection", "directory"}},
		{"projections_access_sequence", nil},
		{"projections_access_keys", nil},
		// append latency
		{"feed_append_duration_seconds", nil},
		{"feed_append_failures_total", []string{"cause", "error"}},
		{"feed_messages_appended_total", nil},
		// the journal and what is written from it
		{"journal_commits_total", nil},
		{"journal_records_total", nil},
		{"journal_commit_duration_seconds", nil},
		{"journal_commit_failures_total", []string{"cause", "not_stored"}},
		{"journal_position", []string{"group", "0"}},
		{"views_records_written_total", nil},
		{"views_feed_messages_total", nil},
		{"directory_append_duration_seconds", nil},
		{"directory_events_appended_total", nil},
		{"directory_effect_wait_duration_seconds", nil},
		// requests over a rate limit
		{"httpapi_rate_limited_total", []string{"allowance", "key"}},
		{"httpapi_rate_limited_total", []string{"allowance", "address"}},
		// mail and sign-in
		{"outbox_mails_total", []string{"outcome", "queued"}},
		{"outbox_mails_total", []string{"outcome", "delivered"}},
		{"outbox_delivery_duration_seconds", nil},
		{"portal_sign_ins_total", []string{"step", "asked"}},
		{"portal_sign_ins_total", []string{"step", "signed_in"}},
		// enrolments and connections of hubs
		{"identity_enrolments_total", []string{"result", "issued"}},
		{"identity_callouts_total", []string{"result", "accepted"}},
		{"identity_callout_duration_seconds", nil},
		// the broker
		{"broker_api_requests_total", nil},
		{"broker_messages", nil},
		{"broker_streams", nil},
		{"streams_sent_bytes_total", nil},
	} {
		name := "hubcloud_" + family.name
		before, after := 0.0, s.after.Value(t, name, family.labels...)
		if _, ok := s.before[name]; ok {
			before = s.before.Value(t, name, family.labels...)
		}
		if after <= before {
			t.Errorf("%s %v: got %v, want more than %v", name, family.labels, after, before)
		}
	}
	for name, want := range map[string]float64{
		"hubcloud_projections_leading": 1, "hubcloud_projections_lag_events": 0,
		"hubcloud_projections_lag_seconds": 0, "hubcloud_projections_stopped": 0,
		"hubcloud_lease_groups_held": 1, "hubcloud_streams_connections_down": 0,
		"hubcloud_build_info": 1, "hubcloud_presence_hubs_online": 0,
		"hubcloud_ready": 5, "hubcloud_hubbridge_inbox_bytes": 0,
	} {
		if got := s.after.Value(t, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	end := s.after.Value(t, "hubcloud_identity_authority_expiry_timestamp_seconds")
	if end < float64(time.Now().AddDate(1, 0, 0).Unix()) {
		t.Errorf("the authority expires at %v, want in more than a year", end)
	}
	for _, name := range []string{
		"go_goroutines", "process_open_fds", "process_start_time_seconds",
	} {
		s.after.Value(t, name)
	}
}

// lint checks that the metrics of hubcloud follow Prometheus' conventions and have a help text, and
// that no label has the id of a hub, an organization or a key.
func (s *story) lint(t *testing.T) {
	answer, err := http.Get("http://" + s.service.Admin + "/metrics")
	harness.Must(t, err)
	defer answer.Body.Close()
	problems, err := promlint.New(answer.Body).Lint()
	harness.Must(t, err)
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "hubcloud_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
	for name, family := range s.after {
		if !strings.HasPrefix(name, "hubcloud_") {
			continue
		}
		if !strings.HasSuffix(family.GetHelp(), ".") {
			t.Errorf("%s: help must be a sentence, got %q", name, family.GetHelp())
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if value := label.GetValue(); strings.Contains(value, s.hub.ID) ||
					strings.Contains(value, s.tenant.Org) ||
					strings.Contains(value, s.tenant.KeyID) {
					t.Errorf("%s: got label %s=%q, want no ids", name, label.GetName(), value)
				}
			}
		}
	}
}

// profiles checks that the admin port serves every profile and the public port none.
func (s *story) profiles(t *testing.T) {
	for _, name := range []string{
		"", "cmdline", "symbol", "heap", "allocs", "goroutine", "threadcreate", "block", "mutex",
		"profile?seconds=1", "trace?seconds=0.1",
	} {
		for address, want := range map[string]int{
			s.service.Admin: http.StatusOK, s.service.HTTP: http.StatusNotFound,
		} {
			answer, err := http.Get("http://" + address + "/debug/pprof/" + name)
			harness.Must(t, err)
			size, _ := io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != want || size == 0 && name != "symbol" {
				t.Errorf(
					"profile %q at %s: got status %d and %d bytes, want %d", name, address,
					answer.StatusCode, size, want,
				)
			}
		}
	}
}

// health checks that the admin port serves the health checks of the public port, with the state of
// each component.
func (s *story) health(t *testing.T) {
	for address, ready := range map[string]string{
		s.service.HTTP:  `{"status":"ready"}`,
		s.service.Admin: `{"ready":true,"degraded":false,"components":[{"name":"broker"`,
	} {
		for path, want := range map[string]string{"/healthz": `{"ok":true,"version":"`, "/readyz": ready} {
			answer := harness.Open(t, http.MethodGet, "http://"+address+path)
			if answer.Status != http.StatusOK || !strings.Contains(string(answer.Body), want) {
				t.Errorf(
					"%s%s: got %d %s, want 200 and %s", address, path, answer.Status, answer.Body,
					want,
				)
			}
		}
	}
}

// requestIDs checks that the X-Request-Id of an answer is also in the request to the hub, in the
// directory and in the log.
func (s *story) requestIDs(t *testing.T) {
	methods := map[string]string{}
	for len(s.requests) > 0 {
		r := <-s.requests
		methods[r.ID] = r.Method
	}
	if methods[s.listed] != "devices.list" || methods[s.commanded] != "channels.command" {
		t.Errorf(
			"requests to the hub: got %v, want devices.list %s and channels.command %s", methods,
			s.listed, s.commanded,
		)
	}
	streamstest.Eventually(t, "the directory has the request's id", func() bool {
		return s.service.FindInFiles(`"request_id":"`+s.created+`"`) != ""
	})
	for _, id := range []string{s.listed, s.commanded, s.created} {
		if lines := s.of(t, "request", "request_id", id); len(lines) != 1 {
			t.Errorf("request %s: got %d lines, want 1", id, len(lines))
		}
	}
}

// of returns the log lines with a message in which a field has a value. An empty field matches any
// line.
func (s *story) of(t *testing.T, msg, field string, value any) (lines []map[string]any) {
	t.Helper()
	for _, text := range strings.Split(strings.TrimSpace(s.service.Log()), "\n") {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			continue // the oldest line may be cut
		}
		if line["msg"] == msg && (field == "" || line[field] == value) {
			lines = append(lines, line)
		}
	}
	return lines
}

// noSecrets checks that neither the log nor a span has a credential.
func (s *story) noSecrets(t *testing.T) {
	if len(s.secrets) < 6 {
		t.Errorf("secrets of the story: got %v, want at least 6", s.secrets)
	}
	text := s.service.Log()
	for _, span := range s.collector.all() {
		text += "\n" + span.String()
	}
	for what, secret := range s.secrets {
		if len(secret) < 16 {
			t.Errorf("%s: got %q, want at least 16 characters", what, secret)
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the telemetry", what)
		}
		if key, rest, ok := strings.Cut(secret, "_dev_"); ok && key == "hc" &&
			strings.Contains(text, rest[12:]) {
			t.Errorf("the secret of %s is in the telemetry", what)
		}
	}
}

// traces checks the story's spans, their parents and attributes.
func (s *story) traces(t *testing.T) {
	command := s.span(
		t, "POST /v1/hubs/{hub_id}/devices/{device_id}/commands", "hubcloud.request_id",
		s.commanded,
	)
	if got := hex.EncodeToString(command.GetTraceId()); got != traceID {
		t.Errorf("trace of the command's request: got %s, want the client's %s", got, traceID)
	}
	if got := hex.EncodeToString(command.GetParentSpanId()); got != "00f067aa0ba902b7" {
		t.Errorf("parent of the command's request: got %s, want the client's span", got)
	}
	for key, want := range map[string]string{
		"http.request.method":       "POST",
		"http.route":                "/v1/hubs/{hub_id}/devices/{device_id}/commands",
		"http.response.status_code": "int_value:202",
		"client.address":            "127.0.0.1", "hubcloud.key_id": s.tenant.KeyID,
		"hubcloud.org_id": s.tenant.Org, "network.protocol.version": "1.1",
	} {
		if got := attributes(command.GetAttributes())[key]; strings.ReplaceAll(
			got, " ", "",
		) != want {
			t.Errorf("attribute %s: got %q, want %q", key, got, want)
		}
	}
	inFlight := s.child(t, command.GetSpanId(), "command")
	for _, step := range []string{
		"reserve idempotency key", "record command", "channels.command", "remember answer",
		"record outcome",
	} {
		span := s.child(t, inFlight.GetSpanId(), step)
		if strings.HasPrefix(step, "record") {
			s.child(t, span.GetSpanId(), "send hub log")
		}
	}
	if got := attributes(inFlight.GetAttributes()); got["hubcloud.outcome"] != "accepted" ||
		got["hubcloud.answer"] != "hub" ||
		got["hubcloud.command_id"] == "" {
		t.Errorf(
			"span of the command: got attributes %v, want accepted by the hub, with an id", got,
		)
	}
	created := s.span(t, "POST /v1/sites", "hubcloud.request_id", s.created)
	s.child(t, created.GetSpanId(), "send DIRECTORY")
	s.child(t, created.GetSpanId(), "await effect")
	batch := s.span(t, "process hub events", "hubcloud.hub_id", s.hub.ID)
	s.child(t, batch.GetSpanId(), "send hub log")
	invited := s.collector.of("POST /v1/invitations")
	if len(invited) != 1 {
		t.Fatalf("spans of POST /v1/invitations: got %d, want 1", len(invited))
	}
	queued := s.child(t, invited[0].GetSpanId(), "send mails")
	s.child(t, queued.GetSpanId(), "deliver mail")
	for _, name := range []string{"project directory", "project presence"} {
		if len(s.collector.of(name)) == 0 {
			t.Errorf("span %q: not found", name)
		}
	}
	if len(s.collector.of("GET /readyz"))+len(s.collector.of("GET /healthz")) > 0 {
		t.Error("health checks: got spans, want none")
	}
	for _, resource := range s.collector.resources {
		if resource["service.name"] != "hubcloud" || resource["service.instance.id"] == "" ||
			resource["telemetry.sdk.language"] != "go" {
			t.Errorf("resource: got %v, want service hubcloud with an instance id", resource)
		}
	}
	line := s.of(t, "request", "request_id", s.commanded)
	if len(line) != 1 || line[0]["trace_id"] != traceID ||
		line[0]["span_id"] != hex.EncodeToString(command.GetSpanId()) {
		t.Errorf("request line of the command: got %v, want one with trace and span", line)
	}
	if line := s.of(t, "command", "request_id", s.commanded); len(line) != 1 ||
		line[0]["trace_id"] != traceID {
		t.Errorf("command line: got %v, want one with the trace", line)
	}
}

// names returns the names of all spans, for failure messages.
func (s *story) names() string {
	var names []string
	for _, span := range s.collector.all() {
		names = append(names, span.GetName())
	}
	slices.Sort(names)
	return fmt.Sprint(slices.Compact(names))
}
