package replicas_test

import (
	"testing"
	"time"

	"hubcloud/streams/replicas"
	"hubcloud/streams/streamstest"
)

// A replica that was cut off from its broker during a write did not notice for a minute, and its
// event streams stayed open. The write had locked the connection, and Reach waited for the lock to
// read the server's name.
func TestReachNoticesACutDuringAWrite(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	between := streamstest.NewNetwork(t, broker)
	conns := between.Connect(t)
	reach := replicas.NewReach(streamstest.Logger(), conns)
	writing := make(chan struct{})
	defer func() {
		between.Hold(false)
		<-writing
	}()
	streamstest.Run(t, "reach", reach.Run)

	between.Hold(true)
	cut := time.Now()
	go func() { // more than the system keeps for a connection
		defer close(writing)
		for range 64 {
			if err := conns.Cloud.Publish("into.the.void", make([]byte, 512<<10)); err != nil {
				return
			}
		}
	}()
	streamstest.Eventually(t, "the process counts as cut off", reach.CutOff)
	if took := time.Since(cut); took > 30*time.Second {
		t.Errorf("the process counts as cut off after %v; want within 30 s", took)
	}
}
