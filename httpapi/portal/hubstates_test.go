package portal

import (
	"testing"
	"time"

	"hubcloud/domain"
)

// TestReconnectingEnds checks that a hub counts as reconnecting for a while after a restart.
func TestReconnectingEnds(t *testing.T) {
	t.Parallel()
	since := time.Now()
	state := hubState{
		Status: domain.HubOffline,
		Reconnecting: domain.ReconnectingUntil(
			domain.HubOffline, since, new(string(domain.ReasonServerShutdown)),
		),
	}
	for after, want := range map[time.Duration]domain.HubStatus{
		domain.ReconnectTime - time.Second: statusReconnecting,
		domain.ReconnectTime:               domain.HubOffline,
	} {
		if got := state.Shown(since.Add(after)); got != want {
			t.Errorf("%s after the restart: got %s, want %s", after, got, want)
		}
	}
}
