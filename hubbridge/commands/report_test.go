package commands_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestLogLines: each command has one log line and is counted by its outcome, also a command that is
// answered from memory, a concurrent duplicate, and one that is rejected before it has an ID.
func TestLogLines(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	log := &streamstest.LogLines{}
	p := cloud.replica("r1", func(s *setup) {
		s.Logger = log.Logger()
	})
	channel, err := p.send(cloud.command("k"))
	cloud.wantAccepted(channel, err)
	channel, err = p.send(cloud.command("k"))
	cloud.wantAccepted(channel, err)
	other := cloud.command("k")
	other.Value = json.RawMessage(`true`)
	_, err = p.send(other)
	wantCode(t, err, domain.CodeIdempotencyConflict)

	release := make(chan struct{})
	cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { p.sent(cloud.command("duplicates")) })
	}
	streamstest.Eventually(
		t, "the duplicate shares the call", func() bool { return p.count("shared_total") == 1 },
	)
	if got := p.count("under_way"); got != 1 {
		t.Errorf("in flight: got %v, want 1", got)
	}
	close(release)
	both.Wait()
	cloud.hub.set(func(h *hub) { h.offline = true })
	_, err = p.send(cloud.command("offline"))
	wantCode(t, err, domain.CodeHubOffline)

	want := []string{
		"accepted hub",
		"accepted remembered",
		"idempotency_conflict ",
		"accepted hub",
		"accepted shared",
		"hub_offline ",
	}
	streamstest.Eventually(t, "six lines", func() bool { return len(log.Of(t, "command")) == len(want) })
	var got []string
	ids := map[any]bool{}
	for _, line := range log.Of(t, "command") {
		got = append(got, line["outcome"].(string)+" "+line["answer"].(string))
		if (line["command_id"] == "") != (line["answer"] == "") || line["request_id"] != "R1" ||
			line["key"] != "lock" || line["duration_ms"].(float64) < 0 {
			t.Errorf("log line: got %v", line)
		}
		ids[line["command_id"]] = true
	}
	otherOrder := []string{want[0], want[1], want[2], want[4], want[3], want[5]}
	if !slices.Equal(got, want) && !slices.Equal(got, otherOrder) {
		t.Errorf("log lines: got %q, want %q", got, want)
	}
	if len(ids) != 3 { // two IDs and ""
		t.Errorf("log lines: got the command IDs %v, want two and none", ids)
	}
	streamstest.Eventually(t, "six are counted", func() bool { return p.count("total") == 6 })
}
