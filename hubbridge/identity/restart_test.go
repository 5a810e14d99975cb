package identity_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/streams/streamstest"
)

// TestStopWhileHubsConnect stops the broker while hubs wait for the callout. Such a hub once
// crashed the process: the server used a nil pointer.
func TestStopWhileHubsConnect(t *testing.T) {
	t.Parallel()
	i := start(t)
	hubs := make([]*hub, 10)
	for n := range hubs {
		hubs[n] = i.newHub(t, n)
	}
	for range 3 {
		done := make(chan struct{})
		var connected atomic.Int64
		var together sync.WaitGroup
		for _, h := range hubs {
			together.Go(func() {
				for {
					client := mqtt.NewClient(h.options())
					if token := client.Connect(); token.Wait() && token.Error() == nil {
						connected.Add(1)
					}
					client.Disconnect(0)
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
		streamstest.Eventually(t, "every hub is connected", func() bool {
			return connected.Load() >= int64(len(hubs))
		})
		addr := i.broker.MQTTAddr()
		i.down(t)
		close(done)
		together.Wait()
		i.up(t, addr)
	}
}
