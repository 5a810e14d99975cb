package identity_test

import (
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// TestViolationsAreReported: the broker reports what a hub does that it may not, with the hub. A
// hub that keeps to the protocol is not reported, and reaches all of its topics. The broker retains none of its
// messages: otherwise a hub could store one for every topic below response/.
func TestViolationsAreReported(t *testing.T) {
	t.Parallel()
	i := start(t)
	good, wrong, loud := i.newHub(t, 1), i.newHub(t, 2), i.newHub(t, 3)
	shard := i.conns.Shard(good.id)
	received, err := shard.SubscribeSync("hub." + string(good.id) + ".>")
	streamstest.Must(t, err)
	client, _ := mustConnect(t, good.options())
	got := make(chan string, 10)
	for topic, qos := range map[string]byte{"ack": 1, "request": 2} {
		topic = "hub/" + string(good.id) + "/" + topic
		token := client.Subscribe(topic, qos, func(_ mqtt.Client, m mqtt.Message) {
			got <- m.Topic()
		})
		granted := token.(*mqtt.SubscribeToken)
		if err := wait(t, token); err != nil || granted.Result()[topic] != 1 { // 2 is granted as 1
			t.Fatalf("subscribe %s: granted %v, %v", topic, granted.Result(), err)
		}
	}
	for _, topic := range []string{"hello", "events", "response/k3/17.b"} {
		streamstest.Must(t, wait(
			t, client.Publish("hub/"+string(good.id)+"/"+topic, 1, true, topic),
		))
		if msg, err := received.NextMsg(testTimeout); err != nil || string(msg.Data) != topic {
			t.Errorf("publish %s: the cloud got %v, %v", topic, msg, err)
		}
	}
	mustHaveNothingRetained(t, i)
	for _, subject := range []string{streams.AckSubject(good.id), streams.RequestSubject(good.id)} {
		streamstest.Must(t, shard.Publish(subject, nil))
		if topic := <-got; topic != strings.ReplaceAll(subject, ".", "/") {
			t.Errorf("the hub got a message on %q, want that of %q", topic, subject)
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
