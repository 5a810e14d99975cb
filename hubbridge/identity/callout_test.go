package identity_test

import (
	"testing"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/streams"
)

// TestHubTopics publishes and receives on every topic of the hub protocol at each quality of
// service.
func TestHubTopics(t *testing.T) {
	t.Parallel()
	i := start(t)
	for n, c := range []struct {
		name string
		qos  byte
	}{
		{"qos 0", 0},
		{"qos 1", 1},
		{"qos 2 is granted as 1", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := i.newHub(t, n)
			shard := i.conns.Shard(h.id)
			received, err := shard.SubscribeSync("hub." + string(h.id) + ".>")
			if err != nil {
				t.Fatal(err)
			}
			client, _ := mustConnect(t, h.options())
			got := make(chan string, 10)
			for _, topic := range []string{"ack", "request"} {
				token := client.Subscribe(
					"hub/"+string(h.id)+"/"+topic, c.qos,
					func(_ mqtt.Client, m mqtt.Message) { got <- m.Topic() + " " + string(m.Payload()) },
				)
				if err := wait(t, token); err != nil {
					t.Fatalf("subscribe %s: %v", topic, err)
				}
				for name, granted := range token.(*mqtt.SubscribeToken).Result() {
					if granted != min(c.qos, 1) {
						t.Fatalf("subscribe %s: granted %#x", name, granted)
					}
				}
			}
			for _, topic := range []string{"hello", "events", "response/a/b.c"} {
				if err := wait(
					t, client.Publish("hub/"+string(h.id)+"/"+topic, min(c.qos, 1), false, "hello"),
				); err != nil {
					t.Fatalf("publish %s: %v", topic, err)
				}
				if msg, err := received.NextMsg(testTimeout); err != nil || string(msg.Data) != "hello" {
					t.Fatalf("publish %s: the cloud got %v, %v", topic, msg, err)
				}
			}
			for subject, want := range map[string]string{
				streams.AckSubject(h.id):     "hub/" + string(h.id) + "/ack hi",
				streams.RequestSubject(h.id): "hub/" + string(h.id) + "/request hi",
			} {
				if err := shard.Publish(subject, []byte("hi")); err != nil {
					t.Fatal(err)
				}
				if text := <-got; text != want {
					t.Fatalf("the hub got %q, want %q", text, want)
				}
			}
		})
	}
}
