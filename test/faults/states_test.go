package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// shownState is an item of GET /state.
type shownState struct {
	ID      string
	HubID   string `json:"hub_id"`
	Certain bool
	Device  struct{ ID int64 }
	Channel struct {
		Key            string
		Endpoint       int
		Available      bool
		Value, Desired json.RawMessage
		Status         string
	}
}

// text returns what the item says of its channel, as channelsOf does.
func (s shownState) text() string {
	c := s.Channel
	return fmt.Sprintf("%s, desired %s, %s, available %t", c.Value, c.Desired, c.Status, c.Available)
}

// channelsOf returns what a hub knows of its channels, by the ids of their states.
func channelsOf(t *testing.T, hub *virtualhub.Hub) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, id := range hub.DeviceIDs() {
		device, ok := hub.Device(id)
		if !ok {
			continue
		}
		for _, c := range device.Channels {
			value, err := json.Marshal(c.Value)
			harness.Must(t, err)
			wanted, err := json.Marshal(c.Desired)
			harness.Must(t, err)
			all[fmt.Sprintf("%s/%d/%d/%s", hub.ID(), id, c.Endpoint, c.Key)] = fmt.Sprintf(
				"%s, desired %s, %s, available %t", value, wanted, c.Status, c.Available,
			)
		}
	}
	return all
}

// shownStates reads all states of a tenant, and the position of the feed from which to follow them;
// false while the service does not answer.
func shownStates(tenant *harness.Tenant) (all []shownState, position string, ok bool) {
	for after := ""; ; {
		path := "/state?limit=500"
		if after != "" {
			path += "&starting_after=" + url.QueryEscape(after)
		}
		answer, err := tenant.Client.Do(http.MethodGet, path, nil)
		if err != nil || answer.Status != http.StatusOK {
			return nil, "", false
		}
		position = cmp.Or(position, answer.Header.Get("Event-Cursor"))
		var page struct {
			Data    []shownState
			HasMore bool `json:"has_more"`
		}
		if json.Unmarshal(answer.Body, &page) != nil {
			return nil, "", false
		}
		all = append(all, page.Data...)
		if !page.HasMore {
			return all, position, true
		}
		after = page.Data[len(page.Data)-1].ID
	}
}

// Hubs report, are commanded, lose events, are reset and lose their connections, while the service
// is killed again and again. Whatever happened, the states that the service calls certain are what
// the hubs know, and all of them become certain. A dashboard that is made from the states and the
// feed alone shows the same. The state at an instant is what the hub knew then, or is not certain.
func TestStatesAreWhatHubsKnow(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(t, "--hub-read-interval", "1s")
	service, tenant := c.OwnService(), c.Tenant("States")
	var hubs []*virtualhub.Hub
	for range 3 {
		hubs = append(hubs, c.VirtualHub(tenant, virtualhub.Config{
			Config: hub.Config{
				Dir: t.TempDir(), BackoffMin: 100 * time.Millisecond,
				BackoffMax: 300 * time.Millisecond,
			},
			GiveUp: 100 * time.Millisecond,
		}))
	}
	past := &histories{hubs: hubs}
	for round := range 4 {
		shown := newDashboard(t, tenant)
		for range 25 {
			disturb(t, hubs[rand.IntN(len(hubs))])
			past.note(t)
		}
		if round%2 == 1 {
			service.Kill()
			for range 10 {
				disturb(t, hubs[rand.IntN(len(hubs))])
				past.note(t)
			}
			service.Begin()
		}
		for _, hub := range hubs {
			hub.Offline(false)
		}
		if differences := awaitTruth(t, tenant, hubs); differences != "" {
			t.Fatalf("round %d: states are not what the hubs know: %s", round, differences)
		}
		shown.follow(t)
		if differences := shown.differences(t, hubs); differences != "" {
			t.Fatalf("round %d: a dashboard is not what the hubs know: %s", round, differences)
		}
	}
	certain := past.check(t, tenant)
	if certain == 0 {
		t.Error("no state at an instant is certain")
	}
	t.Logf("%d instants known, %d channels certain at those tried", len(past.known), certain)
}

// disturb makes one thing happen at a hub.
func disturb(t *testing.T, hub *virtualhub.Hub) {
	t.Helper()
	var err error
	on := rand.IntN(2) == 0
	switch rand.IntN(12) {
	case 0:
		hub.Offline(on)
	case 1:
		_, _, err = hub.LoseEvents(1)
		if err != nil { // there was no event to lose
			err = nil
		}
	case 2:
		err = hub.Unreachable(7)
	case 3:
		err = hub.Reachable(7)
	case 4:
		if rand.IntN(5) == 0 {
			err = hub.FactoryReset()
		}
	case 5, 6:
		// A hub that rejects the command has nothing to show.
		_ = hub.Command(t.Context(), 1, virtualhub.ChannelRef{Key: "lock"}, on)
	case 7:
		hub.CutConnection()
	default:
		err = hub.Report(11, virtualhub.ChannelRef{Key: "temperature"}, float64(rand.IntN(400))/10)
	}
	if err != nil {
		t.Logf("%s: %v", hub.ID(), err) // the device has gone
	}
}

// awaitTruth waits until all states are certain, and are what the hubs know. It returns the
// differences that are left after two minutes.
func awaitTruth(t *testing.T, tenant *harness.Tenant, hubs []*virtualhub.Hub) (left string) {
	t.Helper()
	streamstest.Poll(2*time.Minute, func() bool {
		all, _, ok := shownStates(tenant)
		if !ok {
			left = "GET /state does not answer"
			return false
		}
		left = stateDifferences(t, all, hubs)
		return left == ""
	})
	return left
}

// stateDifferences describes how states differ from what the hubs know, one example of each kind
// and hub; empty if they do not.
func stateDifferences(t *testing.T, all []shownState, hubs []*virtualhub.Hub) string {
	t.Helper()
	want := map[string]string{}
	for _, hub := range hubs {
		maps.Copy(want, channelsOf(t, hub))
	}
	found := map[string][]string{}
	add := func(id, what, example string) {
		hub, channel, _ := strings.Cut(id, "/")
		key := hub + ": " + what
		found[key] = append(found[key], channel+example)
	}
	for _, s := range all {
		if got := s.text(); !s.Certain {
			add(s.ID, "not certain", "")
		} else if want[s.ID] == "" {
			add(s.ID, "not at the hub", " is "+got)
		} else if got != want[s.ID] {
			add(s.ID, "different", " is "+got+", want "+want[s.ID])
		} else if s.Channel.Status == string(domain.ChannelPending) {
			add(s.ID, "pending", "")
		}
		delete(want, s.ID)
	}
	for id := range want {
		add(id, "missing", "")
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(found)) {
		examples := found[key]
		slices.Sort(examples)
		lines = append(lines, fmt.Sprintf("%s: %d, such as %s", key, len(examples), examples[0]))
	}
	return strings.Join(lines, "; ")
}
