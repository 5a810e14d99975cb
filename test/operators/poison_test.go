package operators

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/population"
)

// TestRepair breaks the read models of one service in two ways.
func TestRepair(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, unlimited...)
	written := populate(t, s, scale{events: 1_000, orgs: 3, clients: 1}, 1)
	t.Run("rows changed by hand", func(t *testing.T) { changedByHand(t, s.For(t), written) })
	t.Run("a poisoned event", func(t *testing.T) { poisonedEvent(t, s.For(t), written) })
}

// poisonedEvent appends an unknown event to the directory: "everything else still answers, the
// operator sees why, and gets past it".
func poisonedEvent(t *testing.T, s *harness.Service, written population.Population) {
	tenant := harness.NewTenant(t, s, "Poisoned")
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.GoOnline()
	tenant.Add(hub.Serial)
	sequence := poison(t, s)
	var stopped map[string]any
	streamstest.Eventually(t, "the status names the stopped projection", func() bool {
		for _, line := range s.CLI("projections", "status") {
			if line["name"] == "directory" && line["state"] == "stopped" {
				stopped = line
			}
		}
		return stopped != nil
	})
	if stopped["stopped_sequence"] != float64(sequence) ||
		stopped["stopped_type"] != "no.such_fact" ||
		stopped["stopped_error"] == "" {
		t.Errorf("got %v, want it stopped at %d, no.such_fact", stopped, sequence)
	}
	metrics := harness.Open(t, http.MethodGet, "http://"+s.Admin+"/metrics")
	if !strings.Contains(
		string(metrics.Body), `hubcloud_projections_stopped{projection="directory"} 1`,
	) {
		t.Error("metrics: want the stopped projection")
	}
	ready := harness.Open(t, http.MethodGet, "http://"+s.Admin+"/readyz")
	if !strings.Contains(string(ready.Body), fmt.Sprint(sequence)) {
		t.Errorf("readiness: want the reason, got %s", ready.Body)
	}

	// Reads, hubs and their events still work.
	client := &orgClient{
		t:       t,
		org:     written.Orgs[0],
		writeTo: harness.NewClient(t, s.Base(), written.Orgs[0].Key),
	}
	client.readFrom = client.writeTo
	if !client.readSites() || !client.readHubs() {
		t.Fatal("reads fail while the projection is stopped")
	}
	hub.EventsFrom("log-1", 1, 20)
	hub.WaitAck("log-1", 20)
	hub.Disconnect()
	hub.Connect()
	hub.Hello("log-1", 1, 20)
	hub.WaitAck("log-1", 20)
	// Changes are stored and answered without a server error.
	began := time.Now()
	var site struct{ ID string }
	tenant.Must(http.MethodPost, "/sites", map[string]string{
		"name": "Created meanwhile",
	}, http.StatusCreated).
		JSON(t, &site)
	keyID, key := s.Key(tenant.Org)
	harness.NewClient(t, s.Base(), key).Must(http.MethodGet, "/sites", nil, http.StatusOK)
	s.CLI("key", "revoke", keyID)
	harness.NewClient(t, s.Base(), key).
		Rejected(http.MethodGet, "/sites", nil, "unauthenticated")
	t.Logf(
		"a site, a key and its revocation while the projection is stopped: %s",
		time.Since(began).Round(time.Millisecond),
	)

	// Only the event that stops the projection can be skipped, and only with a reason.
	for _, wrong := range [][]string{
		{fmt.Sprint(sequence + 1), "--why", "a trial"}, {fmt.Sprint(sequence)},
	} {
		if out, _, code := harness.RunBinary(t, append([]string{
			"projections", "skip", "--data-dir", s.Dir,
		}, wrong...)...); code == 0 {
			t.Errorf("skip %v: got exit code 0: %s", wrong, out)
		}
	}
	s.CLI("projections", "skip", fmt.Sprint(sequence), "--why", "written by a trial")
	streamstest.Eventually(t, "the site created meanwhile is listed", func() bool {
		answer, err := tenant.Do(http.MethodGet, "/sites/"+site.ID, nil)
		return err == nil && answer.Status == http.StatusOK
	})
	tenant.NewSite("After it")
	if differences := verify(t, s); len(differences) != 0 {
		t.Errorf("differences after the skip: got %s, want none", differences)
	}
	// A rebuild and a restarted service skip the event too.
	rebuild(t, s)
	s.Kill()
	s.Begin()
	tenant.NewSite("After a restart")
	if differences := verify(t, s); len(differences) != 0 {
		t.Errorf("differences after the restart: got %s, want none", differences)
	}
}
