package commands

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"hubcloud/domain"
)

// A hub that does not answer gets no further commands, and the others get all of theirs, in order.
func TestSendAll(t *testing.T) {
	t.Parallel()
	timeout := domain.Errorf(domain.CodeHubTimeout, "late")
	offline := domain.Errorf(domain.CodeHubOffline, "away")
	rejected := domain.Errorf(domain.CodeCommandRefused, "no")
	fails := map[string]error{"late 1": timeout, "away 0": offline, "fine 1": rejected}
	var all []domain.Command
	for device := range int64(3) {
		for _, hub := range []domain.HubID{"late", "away", "fine"} {
			all = append(all, domain.Command{HubID: hub, DeviceID: device})
		}
	}
	name := func(c domain.Command) string { return string(c.HubID) + " " + string('0'+rune(c.DeviceID)) }
	var mu sync.Mutex
	sent := map[domain.HubID][]int64{}
	results := sendAll(all, func(c domain.Command) (domain.SentCommand, error) {
		mu.Lock()
		defer mu.Unlock()
		sent[c.HubID] = append(sent[c.HubID], c.DeviceID)
		return domain.SentCommand{ID: name(c)}, fails[name(c)]
	})
	for hub, want := range map[domain.HubID][]int64{"late": {0, 1}, "away": {0}, "fine": {0, 1, 2}} {
		if !slices.Equal(sent[hub], want) {
			t.Errorf("%s got commands %v, want %v", hub, sent[hub], want)
		}
	}
	wants := map[string]error{
		"late 2": domain.ErrCommandSkipped, "away 1": offline, "away 2": offline,
		"late 1": timeout, "away 0": offline, "fine 1": rejected,
	}
	for i, result := range results {
		if want := wants[name(all[i])]; !errors.Is(result.Err, want) || (want == nil) != (result.Err == nil) {
			t.Errorf("%s: got %v, want %v", name(all[i]), result.Err, want)
		}
	}
}
