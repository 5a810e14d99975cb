package identity_test

import (
	"testing"
	"time"

	"hubcloud/streams/broker"
)

// TestViolationsAreReported: the broker reports what a hub does that it may not, with the hub. A
// hub that keeps to the protocol is not reported.
func TestViolationsAreReported(t *testing.T) {
	t.Parallel()
	i := start(t)
	good, wrong, loud := i.newHub(t, 1), i.newHub(t, 2), i.newHub(t, 3)
	client, _ := mustConnect(t, good.options())
	for _, topic := range []string{"ack", "request"} {
		if err := wait(t, client.Subscribe("hub/"+string(good.id)+"/"+topic, 1, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{"hello", "events", "response/k3/17"} {
		if err := wait(
			t, client.Publish("hub/"+string(good.id)+"/"+topic, 1, false, "{}"),
		); err != nil {
			t.Fatal(err)
		}
	}
	want := map[broker.Violation]bool{
		{ClientID: string(wrong.id), Kind: broker.ViolationPublish, Topic: "hub/x/hello"}: true,
		{ClientID: string(wrong.id), Kind: broker.ViolationSubscribe, Topic: "hub/x/ack"}: true,
		{ClientID: string(loud.id), Kind: broker.ViolationQoS2}:                           true,
	}
	client, _ = mustConnect(t, wrong.options())
	_ = client.Publish("hub/x/hello", 0, false, "{}")
	_ = client.Subscribe("hub/x/ack", 0, nil)
	client, lost := mustConnect(t, loud.options())
	_ = client.Publish("hub/"+string(loud.id)+"/hello", 2, false, "{}")
	mustEnd(t, "a publish at QoS 2, which the server would keep until the client releases it", lost)
	timeout := time.After(testTimeout)
	for len(want) > 0 {
		select {
		case v := <-i.broker.Violations():
			if !want[v] {
				t.Errorf("got %+v, want one of %v", v, want)
			}
			delete(want, v)
		case <-timeout:
			t.Fatalf("not reported: %v", want)
		}
	}
}
