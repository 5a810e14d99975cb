package faults

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

var (
	cuts = flag.Int(
		"faults.cuts", 1, "how often a broker is isolated in TestPresenceAfterAPartition",
	)
	presenceRecovery = flag.Duration(
		"faults.presence",
		time.Minute,
		"maximum time until every hub's status is right after a partition; 10s is the promise for "+
			"an idle machine",
	)
)

// TestPresenceAfterAPartition isolates a broker, whose hubs stay connected to it. Regression: a
// replica took the hubs for gone once the other brokers could not reach theirs, and never noticed
// them again: they stayed offline, with 503 hub_offline for every request, for as long as they
// stayed connected. Meanwhile one hub leaves and one changes to another broker, which the others do
// not hear. The first partition lasts until a replica must take the hubs for gone, the others 20 s.
func TestPresenceAfterAPartition(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	if o.net == nil {
		t.Skip("NOT TRIED: a broker cannot be isolated here")
	}
	hubs := make([]*harness.RawHub, 12)
	for i := range hubs {
		hubs[i] = adopted(t, o.replicas[0], o.tenant)
		hubs[i].Disconnect()
		hubs[i].OnRequest(func(harness.Request) harness.Response {
			return harness.Response{Result: map[string]any{"devices": []any{}}}
		})
		hubs[i].Through(o.broker.MQTT[i%3])
		hubs[i].GoOnline()
	}
	online := map[string]bool{}
	for _, h := range hubs {
		online[h.ID] = true
	}
	o.awaitStatus("at the start", online, *recoveryTime)
	for cut := range *cuts {
		node := cut % 3
		lasts := 20 * time.Second
		if cut == 0 {
			lasts = 45 * time.Second
		}
		isolated := o.isolate("a broker", o.nodes[node], lasts)
		leaves, moves := hubs[node], hubs[node+3]
		isolated.begin()
		harness.Elapse(isolated.lasts / 2)
		leaves.Disconnect()
		moves.Disconnect()
		moves.Through(o.broker.MQTT[(node+1)%3])
		connect(t, moves)
		harness.Elapse(isolated.lasts / 2)
		isolated.end()
		online[leaves.ID] = false
		o.awaitStatus(fmt.Sprintf("after cut %d", cut), online, *presenceRecovery)
		connect(t, leaves)
		online[leaves.ID] = true
		moves.Disconnect()
		moves.Through(o.broker.MQTT[node])
		connect(t, moves)
		o.awaitStatus(fmt.Sprintf("before cut %d", cut+1), online, *recoveryTime)
	}
}

// connect connects a hub as soon as the brokers can ask whether it may.
func connect(t *testing.T, hub *harness.RawHub) {
	t.Helper()
	streamstest.Eventually(t, hub.ID+" connects", func() bool {
		return hub.TryConnect(hub.ID) == nil
	})
}

// awaitStatus waits until every replica reports the right status of every hub, and reaches those
// that are online.
func (o *outages) awaitStatus(when string, online map[string]bool, within time.Duration) {
	o.t.Helper()
	began := time.Now()
	var wrong []string
	right := func() bool {
		wrong = wrong[:0]
		for i, client := range o.clients {
			answer, err := client.Do(http.MethodGet, "/hubs?limit=50", nil)
			if err != nil || answer.Status != http.StatusOK {
				wrong = append(wrong, fmt.Sprintf("replica %d: %d %v", i, answer.Status, err))
				continue
			}
			var list struct {
				Data []struct {
					ID         string
					Connection struct{ Status string }
				}
			}
			answer.JSON(o.t, &list)
			for _, hub := range list.Data {
				want := map[bool]string{true: "online", false: "offline"}[online[hub.ID]]
				if got := hub.Connection.Status; got != want {
					wrong = append(wrong, fmt.Sprintf(
						"replica %d: %s is %s, want %s", i, hub.ID, got, want,
					))
				}
				status := map[bool]int{true: 200, false: 503}[online[hub.ID]]
				asked, err := client.Do(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil)
				if err != nil || asked.Status != status {
					wrong = append(wrong, fmt.Sprintf(
						"replica %d: devices of %s: got %d %s, want %d", i, hub.ID, asked.Status,
						asked.ErrorType(), status,
					))
				}
			}
		}
		return len(wrong) == 0
	}
	if !streamstest.Poll(within, right) {
		o.t.Fatalf("%s: after %s:\n%s", when, within, strings.Join(wrong, "\n"))
	}
	o.t.Logf("%s: every status is right after %s", when, time.Since(began).Round(time.Millisecond))
}
